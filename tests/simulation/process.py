"""A simulated process: it can be stopped for a while, or killed, at any point where it waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from attention_queue.clock import to_ms
from attention_queue.contract.bus import Bus
from attention_queue.errors import EngineUnavailable
from simulation.loop import LANE, Lane, SeededLoop

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = to_ms(START)


class Killed(BaseException):
    """Raised in a dead process wherever it waits for the world: it does nothing more."""


@dataclass(slots=True)
class Faults:
    """What may go wrong, how often, and how often at most."""

    chance: random.Random
    probability: float
    left: int
    kinds: tuple[str, ...]  # kill, pause, lose_reply, refuse, clock
    pause_for: tuple[float, float] = (0.7, 1.6)  # seconds; the leases are shorter
    happened: int = 0
    kept: int = 0  # for what happens seldom: steps of operations

    def draw(self, allowed: tuple[str, ...], *, seldom: bool = False) -> str | None:
        if seldom and self.kept > 0 and self.chance.random() < 0.25:
            self.kept -= 1
            self.happened += 1
            return self.chance.choice([kind for kind in self.kinds if kind in allowed])
        if self.left <= 0 or self.chance.random() >= self.probability:
            return None
        kinds = [kind for kind in self.kinds if kind in allowed]
        if not kinds:
            return None
        self.left -= 1
        self.happened += 1
        return self.chance.choice(kinds)


class Process(Lane):
    """A lane with a clock and a bus of its own. Nothing survives it but the database."""

    def __init__(
        self,
        name: str,
        loop: SeededLoop,
        chance: random.Random,
        faults: Faults,
        trace: list[str] | None,
    ) -> None:
        super().__init__(name)
        self.loop, self.faults, self.trace = loop, faults, trace
        self.dead = False
        self.bus = Bus()
        self.clock = VirtualClock(self)
        self._chance = chance
        self._context: Context = copy_context()
        self._context.run(LANE.set, self)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task in this process; it is cancelled when the process dies."""
        return self._context.run(self.loop.create_task, coroutine)

    def wake(self, callback: Any) -> None:
        """As when a signal of another process reaches this one."""
        if not self.dead:
            self._context.run(callback)

    def kill(self) -> None:
        """SIGKILL: the tasks unwind, and every port is shut while they do."""
        if self.dead:
            return
        self.note("is killed")
        self.dead = True
        self.loop.unpark(self)
        for task in list(self.tasks):
            task.cancel()

    def pause(self) -> None:
        """SIGSTOP, and SIGCONT after longer than a lease."""
        seconds = self._chance.uniform(*self.faults.pause_for)
        self.note(f"is stopped for {seconds:.2f} s")
        self.stopped = True
        Context().run(self.loop.call_later, seconds, self.loop.unpark, self)

    def check(self) -> None:
        if self.dead:
            raise Killed(self.name)

    async def point(self, where: str, *allowed: str) -> None:
        """A choice point: others may run, and one of the faults ``allowed`` may happen.

        Raises:
            Killed: The process is dead.
            EngineUnavailable: The call, or its reply, was lost.
        """
        self.check()
        if fault := self.faults.draw(allowed, seldom=where.endswith(" step")):
            self.note(f"{where}: {fault}")
            match fault:
                case "kill":
                    self.kill()
                case "pause":
                    self.pause()
                case "clock":
                    self.loop.set_clock(self._chance.choice((-2000, -300, 300, 2000)))
                case "refuse" | "lose_reply":
                    raise EngineUnavailable(f"{where}: {fault}")
        self.check()
        await asyncio.sleep(0)
        if self._chance.random() < 0.04:
            await self.clock.sleep(self._chance.uniform(0.001, 0.04))
        self.check()

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.loop.time():9.4f} {self.name:12} {text}")


class VirtualClock:
    """The loop's time; the wall clock, which is one for all processes, may have been set anew."""

    def __init__(self, process: Process) -> None:
        self._process, self._loop = process, process.loop

    def now(self) -> datetime:
        return START + timedelta(milliseconds=self._loop.millis + self._loop.offset_ms)

    def now_ms(self) -> int:
        return START_MS + self._loop.millis + self._loop.offset_ms

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        self._process.check()
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            woken = self._loop.create_future()
            timer = self._loop.call_later(seconds, _wake, woken)
            try:
                await woken
            finally:
                timer.cancel()
        self._process.check()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
