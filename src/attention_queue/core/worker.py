"""The worker: few slots, many resources. It begins requests, runs their cycles and drains."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from attention_queue.clock import Clock
from attention_queue.contract import CycleEnd, new_id
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    HandlerStuck,
    LoopFailed,
    WorkerDraining,
    WorkerStarted,
    WorkerStopped,
)
from attention_queue.core.call import LET_GO, Calls
from attention_queue.core.cycle import TAKE, Cycle
from attention_queue.core.reconciler import Reconciler
from attention_queue.core.service import Service
from attention_queue.ports import Begun, Ending, Engine, Keeper, Want

IDLE = 5.0  # seconds between two looks when nothing stirs; every wake-up is an event besides
FAILED_WAITS = (0.1, 0.5, 2.0, 5.0)  # seconds after the 1st, 2nd, 3rd and every later failure
WATCH = 0.005  # seconds between two looks at who waits, while somebody may have to yield
YIELD_AFTER = 0.25  # seconds of a slice after which it yields to any other resource that waits
WAITED = 0.05  # seconds that another resource must have waited for that
WAITED_EXTRA = 0.005  # the same, before a second or later consumer of a resource makes room


class AttentionWorker:
    """Serves the groups of ``services`` from one engine until ``drain``.

    ``slots`` cycles run at once in this process. A second or later consumer of a resource gets
    only what is free, and never the last slots.
    """

    def __init__(
        self,
        engine: Engine,
        services: Sequence[Service],
        *,
        clock: Clock,
        bus: Bus,
        slots: int = 16,
        grace: timedelta = timedelta(seconds=25),
        owner: str | None = None,
        chance: random.Random | None = None,
        sweep_every: timedelta = timedelta(seconds=30),
    ) -> None:
        self.owner = f"{owner or 'worker'}-{new_id()}"  # unique to this start
        self.slots = slots
        self.stuck = 0  # handlers that were let go and still run
        self._engine, self._clock, self._bus = engine, clock, bus
        self._services: Mapping[str, Service] = {s.group.name: s for s in services}
        self._grace, self._chance = grace, chance or random.Random()
        self._calls = Calls(clock, bus, slots)
        self._reserve = min(max(slots // 8, 1), slots - 1)  # never for an extra consumer
        self._running: dict[Cycle, asyncio.Task[CycleEnd]] = {}
        self._let_go: set[asyncio.Task[CycleEnd]] = set()
        self._failures = 0
        self._draining = False
        self._stirred = asyncio.Event()  # a slot is free, or the worker drains
        self._busy = asyncio.Event()  # something runs, so there is something to watch
        self._reconciler = Reconciler(engine, clock, bus, owner=self.owner, every=sweep_every)

    def drain(self) -> None:
        """Begin nothing more; let what runs finish within the grace."""
        if not self._draining:
            self._draining = True
            self._bus.emit(WorkerDraining(self.owner))
            self._stirred.set()

    async def run(self) -> None:
        """Serve until drained. Afterwards every token is released or left to its lease."""
        async with self.attending() as keeper:
            await self._dispatch(keeper)

    @asynccontextmanager
    async def attending(self) -> AsyncIterator[Keeper]:
        """What stands around the turns of ``run``: lifespans, leases, the watch, the leaving."""
        async with AsyncExitStack() as stack:
            for service in self._services.values():
                await self._engine.open_group(service.group)
                for lifespan in service.lifespans:
                    await stack.enter_async_context(lifespan())
            keeper = await stack.enter_async_context(self._engine.keeper())
            stack.callback(self._calls.close)
            async with asyncio.TaskGroup() as tasks:
                helpers = [
                    tasks.create_task(self._watch(keeper)),
                    tasks.create_task(self._reconciler.run()),
                ]
                self._bus.emit(WorkerStarted(self.owner, self.slots))
                yield keeper
                abandoned = await self._leave()
                for helper in helpers:
                    helper.cancel()
            self._bus.emit(WorkerStopped(self.owner, abandoned))

    async def idle(self) -> None:
        """Return when none of its cycles runs."""
        while self._running:
            self._stirred.clear()
            await self._stirred.wait()

    async def turn(self, keeper: Keeper) -> int:
        """Begin what is due and fits into the free slots; how many requests were looked at."""
        free = self.slots - len(self._running)
        extra = max(free - self._reserve, 0)
        groups = tuple(self._services)
        want = Want(owner=self.owner, groups=groups, limit=free, extra=extra, take=TAKE)
        found = await self._engine.begin(want)
        for begun in found:
            if isinstance(begun, Begun):
                await self._start(begun, keeper)
        return len(found)

    async def _dispatch(self, keeper: Keeper) -> None:
        while not self._draining:
            self._stirred.clear()
            if len(self._running) >= self.slots:
                await self._stirred.wait()
                continue
            try:
                found = await self.turn(keeper)
                self._set_free_slots(bool(found))
                if not found:
                    await self._rest()
                self._failures = 0
            except Exception as exc:  # the loop must outlive whatever happened
                await self._failed("dispatch", exc)

    async def _rest(self) -> None:
        """Until a request may be due, or the worker drains."""
        resting = asyncio.ensure_future(self._engine.wait(tuple(self._services), IDLE))
        stirred = asyncio.ensure_future(self._stirred_to_leave())
        try:
            await asyncio.wait((resting, stirred), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stirred.cancel()
            if not resting.done():
                resting.cancel()
            await asyncio.gather(resting, stirred, return_exceptions=True)
        if resting.done() and not resting.cancelled():
            resting.result()

    async def _stirred_to_leave(self) -> None:
        while not self._draining:
            self._stirred.clear()
            await self._stirred.wait()

    async def _start(self, begun: Begun, keeper: Keeper) -> None:
        if self._draining:  # it came while the worker was told to drain: back, unserved
            await self._engine.finish(begun, [], Ending(end=CycleEnd.SHUTDOWN))
            return
        service = self._services[begun.group]
        cycle = Cycle(
            begun,
            service,
            engine=self._engine,
            clock=self._clock,
            bus=self._bus,
            calls=self._calls,
            chance=self._chance,
        )
        keeper.keep(begun)
        task = asyncio.get_running_loop().create_task(cycle.run())
        self._running[cycle] = task
        self._busy.set()
        task.add_done_callback(lambda task: self._ended(cycle, task, keeper))

    def _ended(self, cycle: Cycle, task: asyncio.Task[CycleEnd], keeper: Keeper) -> None:
        keeper.drop(cycle.begun)
        if self._running.pop(cycle, None) is None:
            self.stuck -= 1
            self._let_go.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bus.emit(LoopFailed("cycle", f"{type(error).__name__}: {error}"))
        self._stirred.set()

    def _set_free_slots(self, others_wait: bool) -> None:
        free = self.slots - len(self._running) > self._reserve and not others_wait
        for cycle in self._running:
            cycle.turn.free_slots = free

    async def _watch(self, keeper: Keeper) -> None:
        """Time-outs, stuck handlers, and who has to make room; asleep while nothing runs."""
        while True:
            if not self._running:
                self._busy.clear()
                await self._busy.wait()
            try:
                self._watch_handlers(keeper)
                pressed = await self._watch_waiting()
                await self._clock.sleep(WATCH if pressed else self._watch_every())
            except Exception as exc:
                await self._failed("watch", exc)

    def _watch_every(self) -> float:
        """One coarse timer for all slots: an eighth of the shortest time-out."""
        timeouts = (c.begun.policy.handler_timeout.total_seconds() for c in self._running)
        return min(max(min(timeouts, default=1.0) / 8, 0.01), 0.25)

    def _watch_handlers(self, keeper: Keeper) -> None:
        now = self._clock.monotonic()
        for cycle in list(self._running):
            call = cycle.call
            if call is None:
                continue
            limit = cycle.begun.policy.handler_timeout.total_seconds()
            if now - call.started >= limit and not call.timed_out:
                call.time_out()
            elif now - call.started >= limit + LET_GO and call.timed_out:
                self._give_up(cycle, keeper)

    def _give_up(self, cycle: Cycle, keeper: Keeper) -> None:
        """It ignores being cancelled: its lease ends by itself and its slot is free."""
        keeper.drop(cycle.begun)
        self._let_go.add(self._running.pop(cycle))
        self.stuck += 1
        begun = cycle.begun
        self._bus.emit(HandlerStuck(begun.group, begun.resource, begun.loan[0].message.type))
        self._stirred.set()

    async def _watch_waiting(self) -> bool:
        """Ask for room where plans have bought more than the first slot; True: look again soon."""
        if len(self._running) < self.slots - self._reserve:
            return False
        now = self._clock.monotonic()
        may_yield = [
            (cycle, WAITED_EXTRA if cycle.begun.extra else WAITED)
            for cycle in self._running
            if cycle.begun.extra or now - cycle.started > YIELD_AFTER
        ]
        if not may_yield:
            return True
        waiting = await self._engine.waiting(tuple(self._services))
        for cycle, enough in may_yield:
            if any(
                resource != cycle.begun.resource and waited >= enough
                for resource, waited in waiting
            ):
                cycle.turn.yielding = True
        return True

    async def _failed(self, loop: str, error: Exception) -> None:
        self._bus.emit(LoopFailed(loop, f"{type(error).__name__}: {error}"))
        wait = FAILED_WAITS[min(self._failures, len(FAILED_WAITS) - 1)]
        self._failures += 1
        await self._clock.sleep(wait)

    async def _leave(self) -> int:
        """Let cycles end at their next message within the grace, then leave the rest unsettled."""
        for cycle in self._running:
            cycle.turn.leave = True
        tasks = set(self._running.values())
        if tasks:
            alarm = asyncio.ensure_future(self._clock.sleep(self._grace.total_seconds()))
            pending: set[asyncio.Future[object]] = {*tasks, alarm}  # type: ignore[arg-type]
            while pending != {alarm} and not alarm.done():
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            alarm.cancel()
            await asyncio.gather(alarm, return_exceptions=True)
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1)
        return len(late) + len(self._let_go)
