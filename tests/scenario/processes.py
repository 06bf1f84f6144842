"""Starting, watching and ending the processes of a scenario."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

VICTIM = Path(__file__).with_name("victim.py")


@dataclass(slots=True)
class Running:
    """One process of ours; ``said`` are the lines it has printed."""

    process: asyncio.subprocess.Process
    said: list[str]
    _reading: asyncio.Task[None]

    async def ended(self, seconds: float = 30) -> int:
        """Its exit code, negative for a signal."""
        async with asyncio.timeout(seconds):
            code = await self.process.wait()
            await self._reading
        return code

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def leave(self) -> int:
        self.send(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.send(signal.SIGCONT)
            self.send(signal.SIGKILL)
        await self.ended()


async def start(role: str, **spec: Any) -> Running:
    """Start a worker (and wait until it is ready) or a publisher."""
    text = json.dumps({"role": role, **spec})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "dev", str(VICTIM), text, stdout=asyncio.subprocess.PIPE
    )
    said: list[str] = []
    spoke = asyncio.Event()
    reading = asyncio.get_running_loop().create_task(_read(process, said, spoke))
    running = Running(process, said, reading)
    if role == "worker":
        async with asyncio.timeout(30):
            await spoke.wait()
    return running


async def _read(process: asyncio.subprocess.Process, said: list[str], spoke: asyncio.Event) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        said.append(line.decode().strip())
        spoke.set()
    spoke.set()


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """What stands in the file, read past the engine."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


def assert_at_rest(path: Path) -> None:
    """No leaks at idle (I8), nothing stranded (I5), one request at most per resource (I7)."""
    assert rows(path, "SELECT * FROM message") == []
    assert rows(path, "SELECT * FROM token") == []
    assert rows(path, "SELECT * FROM attention") == []
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
