"""An engine in memory and a look at it: both on one connection, because memory has no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import apsw

from attention_queue.clock import Clock
from attention_queue.contract.bus import Bus
from attention_queue.engines.sqlite.database import MEMORY, connect
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.figures import Look
from attention_queue.engines.sqlite.insight import SqliteInsight
from attention_queue.engines.sqlite.writer import Group, InlineWriter

T = TypeVar("T")


class MemoryInsight(SqliteInsight):
    """Looks between two transactions of the engine, on the caller's own turn."""

    def __init__(self, db: apsw.Connection, clock: Clock) -> None:
        self._path, self._db, self._clock = MEMORY, db, clock

    async def close(self) -> None:
        """Forget everything, the engine's work too."""
        self._db.close()

    async def _look(self, read: Callable[[Look], T]) -> T:
        return self._read(read)


def open_in_memory(clock: Clock, bus: Bus) -> tuple[SqliteEngine, MemoryInsight]:
    db = connect(MEMORY)
    engine = SqliteEngine(MEMORY, clock, bus, InlineWriter(Group(db, MEMORY, clock, None)))
    return engine, MemoryInsight(db, clock)
