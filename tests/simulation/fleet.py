"""The life of a schedule: set up, disturb, heal, drain, leave, judge."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any

from attention_queue import AttentionQueue
from attention_queue.clock import Clock
from simulation.actors import Shopfloor, act, publish, queue_on
from simulation.process import Process

if TYPE_CHECKING:
    from simulation.world import World

DRAINED_WITHIN = 180.0  # virtual seconds after the last fault; a type that few know takes long
LEFT_WITHIN = 60.0  # virtual seconds in which a worker that is told to drain is gone
DISTURBED_FOR = 6.0  # virtual seconds; then whatever did not happen yet will not
LOOKS = 40, 12, 10  # at requests: so many, and so many for each message, and for each second


class Fleet:
    """All actors of one world."""

    def __init__(self, world: World) -> None:
        self._world, self._scenario = world, world.scenario
        self._floors: dict[int, tuple[Shopfloor, asyncio.Task[Any]]] = {}
        self._starts = 0
        self._leaving = False

    async def live(self) -> None:
        process, engine = self._world.process("setup", safe=True)
        queue = queue_on(process)
        await queue.open(engine)
        for shop in self._scenario.shops:
            await queue.register(shop.name, plan=shop.plan, routing={"market": "m"})
        for number in range(len(self._scenario.slots)):
            self._start(number)
        await asyncio.wait(self._others(), timeout=DISTURBED_FOR)
        while self._running() and process.clock.monotonic() < DISTURBED_FOR:
            await process.clock.sleep(0.1)
        self._world.faults.left = self._world.faults.kept = 0
        self._world.note("healed")
        for number, (floor, _) in self._floors.items():
            if floor.process.dead:
                self._start(number)
        await self._drain(process, queue)
        self._judge()
        await self._leave(process.clock)
        await engine.close()

    def _others(self) -> list[asyncio.Task[Any]]:
        tasks = []
        for number, steps in enumerate(self._scenario.publishers):
            process, engine = self._world.process(f"p{number}")
            tasks.append(process.run(publish(self._world, process, engine, steps)))
        if self._scenario.acts:
            process, engine = self._world.process("person")
            tasks.append(process.run(act(self._world, process, engine, self._scenario.acts)))
        return tasks

    def _start(self, number: int) -> None:
        """Start a worker; it is started again when it dies."""
        self._starts += 1
        process, engine = self._world.process(f"w{number}.{self._starts}")
        floor = Shopfloor(self._world, process, engine)
        types = ["job", "batch"] + ["odd"] * (number == 0)  # a rolling deploy
        task = process.run(floor.serve(types, self._scenario.slots[number]))
        self._floors[number] = floor, task
        task.add_done_callback(lambda task: self._ended(task, number, process), context=Context())

    def _ended(self, task: asyncio.Task[Any], number: int, process: Process) -> None:
        if process.dead and not self._leaving and not self._world.over:
            wait = self._world.chance.uniform(0.02, 0.8)
            self._world.loop.call_later(wait, self._start_again, number, process)
        elif not process.dead and not task.cancelled() and task.exception() is not None:
            self._world.report(("worker_failed", f"{process.name}: {task.exception()!r}"))

    def _start_again(self, number: int, process: Process) -> None:
        if self._floors[number][0].process is process and not self._leaving:
            self._start(number)

    async def _drain(self, process: Process, queue: AttentionQueue) -> None:
        """Until nothing is left; with no fault any more that takes bounded time."""
        deadline = process.clock.monotonic() + DRAINED_WITHIN
        wait = 0.05
        while process.clock.monotonic() < deadline:
            last = self._world.audit.last
            at_work = last.messages or last.tokens or last.requests
            if not at_work and not self._running():
                return
            for shop in last.shops.values():
                if shop.state not in ("active", "retiring", "removed"):
                    await queue.resume(shop.name)
            await process.clock.sleep(wait)
            wait = min(wait * 1.5, 2.0)
        last = self._world.audit.last
        kind = "not_drained" if last.messages else "leaked"
        kind = "operation_stays" if self._running() else kind
        left = f"{last.messages} {last.tokens} {last.requests} {last.operations}"
        self._world.report((kind, left))

    def _running(self) -> bool:
        rows = self._world.audit.last.operations.values()
        return any(row.state == "running" for row in rows)

    async def _leave(self, clock: Clock) -> None:
        """Workers leave when they are told to, and nothing of them stays."""
        self._world.note("leaves")
        self._leaving = True
        for floor, _ in self._floors.values():
            floor.leave()
        tasks = [task for _, task in self._floors.values()]
        await asyncio.wait(tasks, timeout=LEFT_WITHIN)
        await clock.sleep(0.01)  # for callbacks that are on their way
        for floor, _ in self._floors.values():
            if left := [task for task in floor.process.tasks if not task.done()]:
                self._world.report(("worker_stays", f"{floor.process.name} {left}"))

    def _judge(self) -> None:
        world = self._world
        for entry in world.ledger.entries.values():
            if entry.acked and not (entry.done or entry.buried or entry.discarded):
                world.report(("lost", f"{entry}"))
            if entry.refused and (entry.starts or entry.buried or entry.discarded):
                world.report(("refused_but_stored", f"{entry}"))
        if world.scenario.life:
            for fault in world.audit.judge():
                world.report(fault)
        messages = len(world.ledger.entries)
        weight = LOOKS[0] + LOOKS[1] * (messages + world.faults.happened + len(world.scenario.acts))
        if world.looks > weight + LOOKS[2] * world.loop.time():
            world.report(("spin", f"{world.looks} looks at requests for {messages} messages"))
