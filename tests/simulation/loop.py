"""An event loop without real time: the next callback is picked by seed, timers jump."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

MICRO = 1_000_000  # loop time is kept in whole microseconds, so that no sum of floats drifts


class Lane:
    """Whose callbacks run: one simulated process. While ``stopped`` its callbacks are kept back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopped = False
        self.kept: list[asyncio.Handle] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}


LANE: ContextVar[Lane | None] = ContextVar("lane", default=None)


class NumberedTask(asyncio.Task[Any]):
    """Hashes by its number: the order of a set of tasks is then the same in every run."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SeededLoop(asyncio.BaseEventLoop):
    """Runs one callback at a time, chosen by ``chance`` from all that are ready.

    A callback belongs to the lane in whose context it was made. ``before_jump`` is called when
    nothing is ready, before time moves to the next timer.
    """

    def __init__(self, chance: random.Random, before_jump: Callable[[], None]) -> None:
        super().__init__()
        self._chance, self._before_jump = chance, before_jump
        self._micros = 0
        self._tasks_made = 0
        self.offset_ms = 0  # of the wall clock
        self.set_back_ms = 0  # in all
        self.steps = 0
        self.limit = 0  # of steps; ``exhausted`` is called at it
        self.exhausted: Callable[[], None] = self.stop
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self._micros / MICRO

    @property
    def millis(self) -> int:
        return self._micros // 1000

    def set_clock(self, by_ms: int) -> None:
        """The wall clock is set forward, or back; timers go on as they do."""
        self.offset_ms += by_ms
        self.set_back_ms += max(-by_ms, 0)

    def unpark(self, lane: Lane) -> None:
        """The lane goes on, with all that became ready meanwhile."""
        lane.stopped = False
        self._ready.extend(lane.kept)
        lane.kept.clear()

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        task = NumberedTask(coroutine, loop=loop, **options)
        self._tasks_made += 1
        task.number = self._tasks_made
        if (lane := LANE.get()) is not None:
            lane.tasks[task] = None
            task.add_done_callback(lane.tasks.pop)
        return task

    def _run_once(self) -> None:
        """One turn of the loop, as ``run_forever`` wants it."""
        while not self._ready:
            self._jump()
            if self._stopping:
                return
        handle = self._pick()
        if handle._cancelled:
            return
        lane = handle._context.get(LANE)
        if lane is not None and lane.stopped:
            lane.kept.append(handle)
            return
        self.steps += 1
        if self.steps == self.limit:
            self.exhausted()
        handle._run()
        if self._scheduled and self._scheduled[0]._when <= self.time():
            self._fire()

    def _pick(self) -> asyncio.Handle:
        ready = self._ready
        if len(ready) > 1 and (n := int(self._chance.random() * len(ready))):
            ready.rotate(-n)
            handle = ready.popleft()
            ready.rotate(n)
            return handle
        return ready.popleft()

    def _jump(self) -> None:
        """To the next timer; without one there is nothing left that could ever happen."""
        self._drop_cancelled()
        if not self._scheduled:
            raise RuntimeError("deadlock: nothing is ready and no timer is set")
        self._before_jump()
        ahead = -(-int(self._scheduled[0]._when * MICRO * 1000) // 1000)
        self._micros = max(self._micros, ahead)
        if self._scheduled[0]._when > self.time():
            self._micros += 1
        self._fire()

    def _drop_cancelled(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            heapq.heappop(self._scheduled)._scheduled = False

    def _fire(self) -> None:
        now = self.time()
        while self._scheduled and self._scheduled[0]._when <= now:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                self._ready.append(handle)

    def _write_to_self(self) -> None:
        """Nobody has to be woken: there is no other thread."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when they come to the front."""
