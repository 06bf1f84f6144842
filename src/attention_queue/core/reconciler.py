"""Reconciliation: the belt beside the trousers, in every worker, under a leader lease."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from attention_queue.clock import Clock
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import LoopFailed, SweepFinished
from attention_queue.ports import Engine

PAGE = 200  # resources with work looked at in one transaction
PAUSE = 0.02  # seconds between two pages


class Reconciler:
    """Sweeps ``every`` so often while it leads. Two leaders at once are harmless."""

    def __init__(
        self, engine: Engine, clock: Clock, bus: Bus, *, owner: str, every: timedelta
    ) -> None:
        self._engine, self._clock, self._bus = engine, clock, bus
        self._owner, self._every = owner, every

    async def run(self) -> None:
        """Until cancelled; no error ends it."""
        while True:
            await self._clock.sleep(self._every.total_seconds())
            try:
                if await self._engine.lead("sweep", self._owner, self._every * 3):
                    await self.sweep()
            except Exception as exc:  # the next one tries again
                self._bus.emit(LoopFailed("sweep", f"{type(exc).__name__}: {exc}"))

    async def sweep(self) -> Counter[str]:
        """One pass over all resources that have work; what was repaired, by reason."""
        repairs: Counter[str] = Counter()
        after: int | None = -1
        while after is not None:
            page = await self._engine.sweep(after, PAGE)
            repairs.update(page.repairs)
            after = page.after
            if after is not None:
                await self._clock.sleep(PAUSE)
        self._bus.emit(SweepFinished(dict(repairs)))
        return repairs
