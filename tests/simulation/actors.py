"""Who acts in a schedule: publishers, workers with their handlers, and a person."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from attention_queue import AttentionQueue
from attention_queue.contract import Outcome, Plan, Reject, ResourceState, Retry, State, Stop
from attention_queue.contract.events import HandlerEnded, LoopFailed, SweepFinished
from attention_queue.core.context import Context
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import EngineUnavailable
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
    for step in steps:
        await process.clock.sleep(step.wait)
        world.ledger.publish(entry_of(step, process.name))
        if await _put(process, queue, step):
            world.ledger.entries[step.id].acked = True
            process.note(f"published {step.id} for {step.shop.name}")
        if step.again:
            await _put(process, queue, step)
    await engine.close()


async def _put(process: Process, queue: AttentionQueue, step: Publish) -> bool:
    delay = timedelta(seconds=step.delay) if step.delay is not None else None
    for _ in range(1 if step.gives_up else 5):
        with suppress(EngineUnavailable):
            await queue.publish(step.shop.name, "job", step.id.encode(), id=step.id, delay=delay)
            return True
        await process.clock.sleep(0.01)
    return False


def entry_of(step: Publish, publisher: str) -> Entry:
    return Entry(
        id=step.id,
        shop=step.shop.name,
        publisher=publisher,
        number=step.number,
        ordered=step.shop.ordered and step.delay is None,
        strict=step.shop.plan == "strict",
    )


async def act(world: World, process: Process, engine: SimulatedEngine, acts: list[Act]) -> None:
    """A person, who repeats what was not answered; at the end every shop is active again."""
    queue = queue_on(process)
    await queue.open(engine)
    for each in acts:
        await process.clock.sleep(each.wait)
        await _insist(process, queue, each)
    for shop in world.scenario.shops:
        await _insist(process, queue, Act(0.0, "resume", shop))
    await engine.close()


async def _insist(process: Process, queue: AttentionQueue, act: Act) -> None:
    for _ in range(5):
        with suppress(EngineUnavailable):
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

    async def serve(self, slots: int) -> None:
        queue = queue_on(self.process)
        queue.handler("job")(self._handler())
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

    def _handler(self) -> object:
        async def handle(payload: bytes, context: Context) -> Outcome | None:
            return await self._handle(payload.decode(), context)

        return handle

    async def _handle(self, id: str, context: Context) -> Outcome | None:
        process = self.process
        process.check()
        word = self._world.behaviour(id)
        process.note(f"handles {id} under fence {context.fence}: {word}")
        self._attempts[id] = context.attempt
        self._world.ledger.start(id)
        match word:
            case "crash":
                self._world.ledger.crash(id)
                process.kill()
                process.check()
            case "fail":
                raise ValueError(id)
            case "retry":
                return Retry(timedelta(milliseconds=self._world.chance.randint(0, 200)))
            case "stop":
                return Stop(
                    "down", after=timedelta(milliseconds=self._world.chance.randint(20, 500))
                )
            case "reject":
                return Reject("bad")
            case "slow":
                await process.clock.sleep(self._world.chance.uniform(0.05, 0.45))
            case "hang":
                await process.clock.sleep(30)
            case _:
                await process.clock.sleep(self._world.chance.choice((0, 0.002, 0.02)))
        return None

    def _ended(self, event: HandlerEnded) -> None:
        if not self.process.dead:
            (id,), (word,) = event.messages, event.outcomes
            last = self._attempts[id] >= ONE.policy.retry.attempts
            self._world.ledger.end(id, word, last)

    def _failed(self, event: LoopFailed) -> None:
        expected = event.error.startswith(("EngineUnavailable:", "TokenLost:"))
        if not expected and not self.process.dead:
            self._world.report(("loop_failed", f"{event.loop}: {event.error}"))

    def _swept(self, event: SweepFinished) -> None:
        if event.repairs and not self.process.dead:
            self._world.report(("sweep_found", f"{event.repairs}"))
