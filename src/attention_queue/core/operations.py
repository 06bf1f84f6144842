"""Long operations, step by step: by a worker that leads, or by whoever started one and waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

from attention_queue.clock import Clock
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import LoopFailed
from attention_queue.contract.operation import OperationFigures, Progress
from attention_queue.ports import Engine

STEP = 500  # messages or dead letters in one transaction, at most
EVERY = 0.5  # seconds between two looks for an operation whose turn it is
LEASE = timedelta(seconds=10)


class Operations:
    """Steps the operations that are under way while it leads; a crash continues elsewhere."""

    def __init__(self, engine: Engine, clock: Clock, bus: Bus, *, owner: str) -> None:
        self._engine, self._clock, self._bus, self._owner = engine, clock, bus, owner
        self._renew_at = -math.inf  # monotonic; until then it leads and need not ask

    async def run(self) -> None:
        """Until cancelled; no error ends it."""
        while True:
            try:
                if not await self._leads() or await self._engine.step(None, STEP) is None:
                    await self._clock.sleep(EVERY)
            except Exception as exc:  # the next look tries again
                self._bus.emit(LoopFailed("operations", f"{type(exc).__name__}: {exc}"))
                await self._clock.sleep(EVERY)

    async def _leads(self) -> bool:
        """Renewed at half of the lease, so that an idle file is not written to at every look."""
        asked = self._clock.monotonic()
        if asked < self._renew_at:
            return True
        leads = await self._engine.lead("operations", self._owner, LEASE)
        self._renew_at = asked + LEASE.total_seconds() / 2 if leads else -math.inf
        return leads


async def run_to_end(
    engine: Engine,
    clock: Clock,
    number: int,
    tell: Callable[[OperationFigures], object] = lambda figures: None,
) -> OperationFigures:
    """Step one operation until it has ended, whoever else steps it too; ``tell`` hears of each."""
    while True:
        figures = await engine.step(number, STEP)
        assert figures is not None  # it has a number
        tell(figures)
        if figures.progress is not Progress.RUNNING:
            return figures
        wait = (figures.next - clock.now()).total_seconds()
        if wait > 0:
            await clock.sleep(wait)
