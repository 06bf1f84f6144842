"""Who acts in a schedule: publishers, workers with their handlers, and a person."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from attention_queue import AttentionQueue
from attention_queue.contract import (
    Outcome,
    Plan,
    Reject,
    Resource,
    ResourceState,
    Retry,
    State,
    Stop,
)
from attention_queue.contract.events import HandlerEnded, LoopFailed, SweepFinished
from attention_queue.contract.operation import Kind, Operation, Selection
from attention_queue.core.context import Context
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import BacklogFull, Conflict, EngineUnavailable, ResourceRetired
from simulation.engine import SimulatedEngine
from simulation.ledger import Entry
from simulation.process import Process
from simulation.scenario import GROUP, ONE, PLANS, TWO, Act, Publish

if TYPE_CHECKING:
    from simulation.world import World


def queue_on(process: Process) -> AttentionQueue:
    return AttentionQueue(GROUP, plans=PLANS, clock=process.clock, bus=process.bus)


async def publish(
    world: World, process: Process, engine: SimulatedEngine, steps: list[Publish]
) -> None:
    """One publisher: one message after the other, published again while it is unknown."""
    queue = queue_on(process)
    await queue.open(engine)
    waiting: list[Publish] = []
    for step in steps:
        waiting.append(step)
        world.ledger.publish(entry_of(step, process.name))
        if step.together and step is not steps[-1]:
            continue
        await process.clock.sleep(step.wait)
        answer = await _put(process, queue, waiting)
        for each in waiting:
            entry = world.ledger.entries[each.id]
            entry.acked, entry.refused = answer == "stored", answer == "refused"
            process.note(f"published {each.id} for {each.shop.name}: {answer}")
        if step.again and await _put(process, queue, [step]) != "refused":
            world.ledger.entries[step.id].refused = False
        waiting = []
    await engine.close()


async def _put(process: Process, queue: AttentionQueue, steps: list[Publish]) -> str:
    """Whether they are stored, refused (at once: nothing is stored), or that is unknown."""
    messages = [
        queue.message(
            step.shop.name,
            step.type,
            step.id.encode(),
            id=step.id,
            delay=None if step.delay is None else timedelta(seconds=step.delay),
            priority=step.priority,
        )
        for step in steps
    ]
    answer = "refused"
    for _ in range(1 if steps[-1].gives_up else 5):
        try:
            await queue.publish_many(messages)
            return "stored"
        except (BacklogFull, ResourceRetired):
            return answer
        except EngineUnavailable:
            answer = "unknown"
        await process.clock.sleep(0.01)
    return answer


def entry_of(step: Publish, publisher: str) -> Entry:
    return Entry(
        id=step.id,
        shop=step.shop.name,
        publisher=publisher,
        number=step.number,
        ordered=step.ordered,
        strict=step.shop.plan == "strict",
    )


async def act(world: World, process: Process, engine: SimulatedEngine, acts: list[Act]) -> None:
    """A person, who repeats what was not answered; at the end every shop is active again."""
    queue = queue_on(process)
    await queue.open(engine)
    for each in acts:
        await process.clock.sleep(each.wait)
        if each.kind == "cancel":
            await _cancel(world, engine)
        else:
            await _insist(process, queue, each)
    for shop in world.scenario.shops:
        await _insist(process, queue, Act(0.0, "resume", shop))
    await engine.close()


async def _cancel(world: World, engine: SimulatedEngine) -> None:
    """Whatever is under way; once."""
    for row in list(world.audit.last.operations.values()):
        if row.state == "running":
            with suppress(EngineUnavailable, Conflict):
                await engine.cancel(row.number, actor="person")


async def _insist(process: Process, queue: AttentionQueue, act: Act) -> None:
    for _ in range(5):
        with suppress(EngineUnavailable):
            with suppress(Conflict):  # done before, or it is retired
                await _change(process, queue, act)
            process.note(f"did {act.kind} {act.shop.name}")
            return
        await process.clock.sleep(0.01)


async def _change(process: Process, queue: AttentionQueue, act: Act) -> None:
    name = act.shop.name
    match act.kind:
        case "pause":
            await queue.pause(name, "a person said so")
        case "resume":
            await queue.resume(name)
        case "pause_until":
            until = process.clock.now() + timedelta(seconds=act.value)
            await queue.set_state(name, ResourceState(State.PAUSED, "for a while", until=until))
        case "nudge":
            await queue.nudge(name)
        case "pause_now":
            await queue.pause(name, "a person said so, now", stop_now=True)
        case "retire" | "discard" | "redrive" | "discard_dead":
            of = Selection(resource=Resource(*name.split("/")))
            order = Operation(kind=Kind(act.kind), group=GROUP, selection=of, reason="so")
            await queue.start(order, actor="person")
        case "move":
            await queue.register(name, plan="two" if act.value < 0.3 else "one")
        case _:
            plan, limit = (TWO, 1) if act.value < 0.3 else (ONE, 2)
            await queue.set_plan(Plan(plan.name, replace(plan.policy, max_consumers=limit)))


class Shopfloor:
    """One worker process, and what its handler does with each message."""

    def __init__(self, world: World, process: Process, engine: SimulatedEngine) -> None:
        self._world, self.process, self.engine = world, process, engine
        self._attempts: dict[str, int] = {}
        self._worker: AttentionWorker | None = None
        self._leaves = False
        process.bus.on(HandlerEnded, self._ended)
        process.bus.on(LoopFailed, self._failed)
        process.bus.on(SweepFinished, self._swept)

    async def serve(self, types: list[str], slots: int) -> None:
        queue = queue_on(self.process)
        for type in types:
            queue.handler(type)(self._list_handler() if type == "batch" else self._handler())
        await queue.open(self.engine)
        self._worker = queue.worker(
            slots=slots,
            chance=random.Random(self.process.name),
            sweep_every=timedelta(seconds=self._world.scenario.sweep_every),
        )
        if self._leaves:
            self._worker.drain()
        await self._worker.run()
        await self.engine.close()

    def leave(self) -> None:
        """SIGTERM."""
        self._leaves = True
        if self._worker is not None:
            self._worker.drain()

    def _handler(self) -> Callable[..., Awaitable[object]]:
        async def handle(payload: bytes, context: Context) -> Outcome | None:
            self._started([payload.decode()], context)
            return await self._handle(payload.decode(), context)

        return handle

    def _list_handler(self) -> Callable[..., Awaitable[object]]:
        async def handle(payloads: list[bytes], context: Context) -> list[Outcome | None]:
            ids = [payload.decode() for payload in payloads]
            self._started(ids, context)
            return [await self._handle(id, context) for id in ids]

        return handle

    def _started(self, ids: list[str], context: Context) -> None:
        self.process.check()
        for id, delivery in zip(ids, context.deliveries, strict=True):
            self._attempts[id] = delivery.attempt
            self._world.ledger.start(id, ids)

    async def _handle(self, id: str, context: Context) -> Outcome | None:
        process, chance = self.process, self._world.chance
        word = self._world.behaviour(id)
        process.note(f"handles {id} under fence {context.fence}: {word}")
        if word.startswith("stop"):
            return self._stop(word)
        match word:
            case "crash":
                self._world.ledger.crash(id)
                process.kill()
                process.check()
            case "fail":
                raise ValueError(id)
            case "retry":
                return Retry(timedelta(milliseconds=chance.randint(0, 200)))
            case "reject":
                return Reject("bad")
        waits = {"slow": chance.uniform(0.05, 0.45), "hang": 30.0}
        await process.clock.sleep(waits.get(word, chance.choice((0, 0.002, 0.02))))
        return None

    def _stop(self, word: str) -> Stop:
        return Stop(
            "down",
            after=timedelta(milliseconds=self._world.chance.randint(20, 500)),
            scope="routing.market" if word == "stop_scope" else None,
            state=State.CREDENTIALS_ERROR if word == "stop_state" else None,
        )

    def _ended(self, event: HandlerEnded) -> None:
        if self.process.dead:
            return
        for id, word in zip(event.messages, event.outcomes, strict=True):
            last = self._attempts.get(id, 0) >= ONE.policy.retry.attempts
            self._world.ledger.end(id, word, last)

    def _failed(self, event: LoopFailed) -> None:
        expected = event.error.startswith(("EngineUnavailable:", "TokenLost:"))
        if not expected and not self.process.dead:
            self._world.report(("loop_failed", f"{event.loop}: {event.error}"))

    def _swept(self, event: SweepFinished) -> None:
        if event.repairs and not self.process.dead:
            self._world.report(("sweep_found", f"{event.repairs}"))
