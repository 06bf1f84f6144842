"""Every engine passes through the same tests: one line for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue.clock import ManualClock
from attention_queue.ports import Engine
from contract.stage import SqliteStage, Stage

ENGINES: dict[str, Callable[[ManualClock, Path], Stage]] = {
    "sqlite": lambda clock, folder: SqliteStage(clock, str(folder / "attention.db")),
    "memory": lambda clock, folder: SqliteStage(clock, ":memory:"),
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def passes(clock: ManualClock) -> Callable[[timedelta], None]:
    """Let time pass."""
    return clock.advance


@pytest.fixture(params=ENGINES)
async def stage(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[Stage]:
    stage = ENGINES[request.param](clock, tmp_path)
    yield stage
    faults = stage.faults()
    for engine in reversed(stage.engines):  # those that share a writer before its owner
        await engine.close()
    assert not faults


@pytest.fixture
def engines(stage: Stage) -> tuple[Engine, Engine]:
    """Two connections to one store."""
    return stage.engine, stage.connect()
