"""The watch over a worker's slots: time-outs, stuck handlers, and who has to make room."""

from __future__ import annotations

from collections.abc import Collection

from attention_queue.clock import Clock
from attention_queue.core.call import LET_GO, Calls
from attention_queue.core.slots import Slots
from attention_queue.ports import Engine, Keeper

PRESSED = 0.005  # seconds between two looks at who waits, while somebody may have to yield
YIELD_AFTER = 0.25  # seconds of a slice after which it yields to any other resource that waits
WAITED = 0.05  # seconds that another resource must have waited for that
WAITED_EXTRA = 0.005  # the same, before a second or later consumer of a resource makes room
_OFTEN, _SELDOM = 0.01, 0.25  # seconds between two looks at the handlers' time


class Watch:
    """One coarse timer for all slots; asleep while nothing runs."""

    def __init__(
        self, slots: Slots, calls: Calls, *, engine: Engine, clock: Clock, groups: Collection[str]
    ) -> None:
        self._slots, self._calls = slots, calls
        self._engine, self._clock, self._groups = engine, clock, groups

    async def round(self, keeper: Keeper) -> None:
        """Wait until something runs, look once, and sleep until the next look."""
        if not len(self._slots):
            self._slots.busy.clear()
            await self._slots.busy.wait()
        self._look_at_handlers(keeper)
        await self._look_at_states()
        pressed = await self._look_at_waiting()
        await self._clock.sleep(PRESSED if pressed else self._until_next())

    def _until_next(self) -> float:
        """An eighth of the shortest time-out."""
        timeouts = (cycle.begun.policy.handler_timeout.total_seconds() for cycle in self._slots)
        return min(max(min(timeouts, default=1.0) / 8, _OFTEN), _SELDOM)

    def _look_at_handlers(self, keeper: Keeper) -> None:
        now = self._clock.monotonic()
        for cycle in self._slots:
            call = cycle.call
            if call is None:
                continue
            limit = cycle.begun.policy.handler_timeout.total_seconds()
            if not call.timed_out and now - call.started >= limit:
                call.time_out()
            elif call.timed_out and now - call.started >= limit + LET_GO:
                if call.in_thread:
                    self._calls.let_go()
                self._slots.let_go(cycle, keeper)

    async def _look_at_states(self) -> None:
        """Cancel the handlers of resources that a person has stopped at once."""
        for cycle in self._slots:
            call = cycle.call
            if call is None or call.stopped or call.timed_out:
                continue
            if self._engine.changed(cycle.begun):
                await cycle.reload()
            stopped = not cycle.begun.active and cycle.begun.stop_now
            if stopped and cycle.call is call:
                call.stop()

    async def _look_at_waiting(self) -> bool:
        """Ask for room where plans have bought more than the first slot; True: look again soon."""
        if self._slots.extra:
            return False
        now = self._clock.monotonic()
        may_yield = [
            (cycle, WAITED_EXTRA if cycle.begun.extra else WAITED)
            for cycle in self._slots
            if cycle.begun.extra or now - cycle.started > YIELD_AFTER
        ]
        if not may_yield:
            return True
        waiting = await self._engine.waiting(self._groups)
        for cycle, enough in may_yield:
            if any(
                resource != cycle.begun.resource and waited >= enough
                for resource, waited in waiting
            ):
                cycle.turn.yielding = True
        return True
