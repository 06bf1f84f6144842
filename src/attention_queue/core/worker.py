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
    LoopFailed,
    WorkerDraining,
    WorkerStarted,
    WorkerStopped,
)
from attention_queue.core.call import Calls
from attention_queue.core.cycle import TAKE, Cycle
from attention_queue.core.operations import Operations
from attention_queue.core.reconciler import Reconciler
from attention_queue.core.service import Service
from attention_queue.core.slots import Slots
from attention_queue.core.watch import Watch
from attention_queue.errors import ContractError
from attention_queue.ports import Begun, Ending, Engine, Keeper, Want

IDLE = 5.0  # seconds between two looks when nothing stirs; every wake-up is an event besides
FAILED_WAITS = (0.1, 0.5, 2.0, 5.0)  # seconds after the 1st, 2nd, 3rd and every later failure


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
        if slots < 1:
            raise ContractError(f"worker: slots: want at least 1, got {slots}")
        self.owner = f"{owner or 'worker'}-{new_id()}"  # unique to this start
        self._engine, self._clock, self._bus = engine, clock, bus
        self._services: Mapping[str, Service] = {s.group.name: s for s in services}
        self._groups = tuple(self._services)
        self._grace, self._chance = grace, chance or random.Random()
        self._calls = Calls(clock, bus, slots)
        self._slots = Slots(slots, bus)
        self._watch = Watch(
            self._slots, self._calls, engine=engine, clock=clock, groups=self._groups
        )
        self._failures, self._draining = 0, False
        self._resting: asyncio.Task[None] | None = None
        self._operations = Operations(engine, clock, bus, owner=self.owner)
        self._reconciler = Reconciler(engine, clock, bus, owner=self.owner, every=sweep_every)

    @property
    def slots(self) -> int:
        return self._slots.count

    @property
    def busy(self) -> int:
        """Slots in which a cycle runs."""
        return len(self._slots)

    @property
    def stuck(self) -> int:
        """Handlers that were let go and still run."""
        return self._slots.stuck

    def drain(self) -> None:
        """Begin nothing more; let what runs finish within the grace."""
        if not self._draining:
            self._draining = True
            self._bus.emit(WorkerDraining(self.owner))
            self._slots.stirred.set()
            if self._resting is not None:
                self._resting.cancel()

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
                beside = [
                    tasks.create_task(self._keep_watch(keeper)),
                    tasks.create_task(self._reconciler.run()),
                    tasks.create_task(self._operations.run()),
                ]
                self._bus.emit(WorkerStarted(self.owner, self.slots))
                try:
                    yield keeper
                    await self._leave()
                finally:
                    abandoned = await self._slots.cancel() + self._slots.stuck
                    for task in beside:
                        task.cancel()
            self._bus.emit(WorkerStopped(self.owner, abandoned))

    async def turn(self, keeper: Keeper) -> int:
        """Begin what is due and fits into the free slots; how many requests were looked at."""
        want = Want(
            owner=self.owner,
            groups=self._groups,
            limit=self._slots.free,
            extra=self._slots.extra,
            take=TAKE,
        )
        found = await self._engine.begin(want)
        for begun in found:
            if isinstance(begun, Begun):
                await self._start(begun, keeper)
        return len(found)

    async def idle(self) -> None:
        """Return when none of its cycles runs."""
        while len(self._slots):
            await self._slots.until_stirred()

    async def _dispatch(self, keeper: Keeper) -> None:
        while not self._draining:
            if not self._slots.free:
                await self._slots.until_stirred()
                continue
            try:
                found = await self.turn(keeper)
                self._offer_slots(bool(found))
                if not found:
                    await self._rest()
                self._failures = 0
            except Exception as exc:  # the loop must outlive whatever happened
                await self._failed("dispatch", exc)

    def _offer_slots(self, others_wait: bool) -> None:
        for cycle in self._slots:
            cycle.turn.free_slots = self._slots.extra > 0 and not others_wait

    async def _rest(self) -> None:
        """Until a request may be due, or the worker drains."""
        if self._draining:
            return
        loop = asyncio.get_running_loop()
        self._resting = loop.create_task(self._engine.wait(self._groups, IDLE))
        try:
            await self._resting
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
        finally:
            self._resting = None

    async def _start(self, begun: Begun, keeper: Keeper) -> None:
        if self._draining:  # it came while the worker was told to drain: back, unserved
            try:
                await self._engine.finish(begun, [], Ending(end=CycleEnd.SHUTDOWN))
            except Exception as exc:  # its lease ends it; the others are to go back all the same
                self._bus.emit(LoopFailed("drain", f"{type(exc).__name__}: {exc}"))
            return
        cycle = Cycle(
            begun,
            self._services[begun.group],
            engine=self._engine,
            clock=self._clock,
            bus=self._bus,
            calls=self._calls,
            chance=self._chance,
        )
        self._slots.run(cycle, keeper)

    async def _keep_watch(self, keeper: Keeper) -> None:
        while True:
            try:
                await self._watch.round(keeper)
            except Exception as exc:
                await self._failed("watch", exc)

    async def _failed(self, loop: str, error: Exception) -> None:
        self._bus.emit(LoopFailed(loop, f"{type(error).__name__}: {error}"))
        wait = FAILED_WAITS[min(self._failures, len(FAILED_WAITS) - 1)]
        self._failures += 1
        await self._clock.sleep(wait)

    async def _leave(self) -> None:
        """Let the cycles end at their next message, within the grace."""
        for cycle in self._slots:
            cycle.turn.leave = True
        loop = asyncio.get_running_loop()
        alarm = loop.create_task(self._clock.sleep(self._grace.total_seconds()))
        alarm.add_done_callback(lambda _: self._slots.stirred.set())
        try:
            while len(self._slots) and not alarm.done():
                await self._slots.until_stirred()
        finally:
            alarm.cancel()
