"""The command in this process, in an empty folder, with nothing in its environment."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from attention_queue import AttentionQueue
from attention_queue.cli import program
from attention_queue.clock import ManualClock, SystemClock

URL = "sqlite:///attention.db"


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return msgspec.json.decode(self.out)


Cli = Callable[..., Ran]
Setup = Callable[..., None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("ATTN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("USER", "kim")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = program.main(arguments)
        captured = capfdbinary.readouterr()
        return Ran(code, captured.out.decode(), captured.err.decode())

    return run


@pytest.fixture
def given() -> Setup:
    """Do something with an open group first, some time ago."""

    def run(
        act: Callable[[AttentionQueue], Awaitable[object]],
        *,
        group: str = "marketplace",
        ago: timedelta = timedelta(),
    ) -> None:
        async def opened() -> None:
            clock = ManualClock(SystemClock().now() - ago)
            async with AttentionQueue(group, type="store", url=URL, clock=clock) as queue:
                await act(queue)

        asyncio.run(opened())

    return run
