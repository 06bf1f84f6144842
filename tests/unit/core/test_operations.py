"""Who steps long operations: a worker that leads, or whoever started one and waits for its end."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from attention_queue import AttentionQueue, Plan, Policy, Reject, Resource
from attention_queue.contract.events import LoopFailed
from attention_queue.contract.operation import (
    Kind,
    Operation,
    OperationFigures,
    Progress,
    Selection,
)
from attention_queue.core.operations import EVERY, LEASE, Operations, run_to_end
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, of_kind, rest, serving

SHOP = Resource("t", "1")


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    """A group whose type ``bad`` is always rejected."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy())])
    queue.handler("bad")(lambda message: Reject("bad"))
    await attn.open(queue)
    return queue


async def die(attn: Attn, count: int) -> None:
    for n in range(count):
        await attn.publish("t/1", "bad", {}, id=f"{n}")
    await attn.drain()


def order(kind: Kind, **fields: Any) -> Operation:
    of = Selection(resource=SHOP)
    return Operation(kind=kind, group="market", selection=of, reason="why", **fields)


async def test_a_worker_steps_what_is_under_way(attn: Attn, queue: AttentionQueue) -> None:
    await die(attn, 3)
    number = await queue.start(order(Kind.DISCARD_DEAD), actor="ann")

    async with serving(queue):
        await attn.advance(LEASE)  # of the worker that has served before

        figures = await attn.insight.operation(number)
        assert figures is not None
        assert (figures.progress, figures.done) == (Progress.DONE, 3)


async def test_of_two_workers_one_steps(attn: Attn, queue: AttentionQueue) -> None:
    loops = [Operations(attn.engine, attn.clock, attn.bus, owner=f"w{n}") for n in range(2)]
    failures = []
    attn.bus.on(LoopFailed, failures.append)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(loop.run()) for loop in loops]
        await rest(attn)
        first = await attn.engine.lead("operations", "w0", SECOND)
        second = await attn.engine.lead("operations", "w1", SECOND)
        for task in running:
            task.cancel()

    assert (first, second, failures) == (True, False, [])


class Counting:
    """The engine, with the number of times that somebody asked for the lead."""

    def __init__(self, engine: Any) -> None:
        self._engine, self.asked = engine, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def lead(self, *arguments: Any) -> bool:
        self.asked += 1
        return bool(await self._engine.lead(*arguments))


async def test_a_leader_that_has_nothing_to_do_writes_twice_in_a_lease(
    attn: Attn, queue: AttentionQueue
) -> None:
    await attn.advance(LEASE)
    engine: Any = Counting(attn.engine)
    loop = Operations(engine, attn.clock, attn.bus, owner="w0")

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(loop.run())
        for _ in range(int(LEASE.total_seconds() / EVERY)):
            await rest(attn)
            attn.clock.advance(timedelta(seconds=EVERY))
        running.cancel()

    assert engine.asked == 2


async def test_a_step_that_fails_is_told_and_tried_again(attn: Attn, queue: AttentionQueue) -> None:
    await die(attn, 1)
    number = await queue.start(order(Kind.DISCARD_DEAD), actor="ann")
    writer = attn.engine.writer  # type: ignore[attr-defined]  # the engine in memory has one
    writer.run_blocking(
        lambda tx: tx._db.execute(
            "CREATE TRIGGER broken BEFORE DELETE ON dead BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    )

    async with serving(queue):
        await attn.advance(LEASE)  # of the worker that has served before
        failed = of_kind(attn, LoopFailed)
        writer.run_blocking(lambda tx: tx._db.execute("DROP TRIGGER broken"))
        await attn.advance(timedelta(seconds=5 + 2 * EVERY))

    assert {event.loop for event in failed} == {"operations"}
    figures = await attn.insight.operation(number)
    assert figures is not None
    assert figures.progress is Progress.DONE


async def test_who_waits_hears_of_each_step_and_of_the_end(
    attn: Attn, queue: AttentionQueue
) -> None:
    await die(attn, 5)
    number = await queue.start(order(Kind.DISCARD_DEAD, per_second=10), actor="ann")
    heard: list[OperationFigures] = []

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(run_to_end(attn.engine, attn.clock, number, heard.append))
        await rest(attn)
        assert [figures.done for figures in heard] == [2]
        await attn.advance(SECOND)

    assert [figures.done for figures in heard] == [2, 4, 5]
    assert waiting.result().progress is Progress.DONE


async def test_who_waits_is_told_that_somebody_has_cancelled_it(
    attn: Attn, queue: AttentionQueue
) -> None:
    await die(attn, 5)
    number = await queue.start(order(Kind.DISCARD_DEAD, per_second=1), actor="ann")

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(run_to_end(attn.engine, attn.clock, number))
        await rest(attn)
        await attn.engine.cancel(number, actor="bob")
        await attn.advance(SECOND)

    assert (waiting.result().progress, waiting.result().done) == (Progress.CANCELLED, 1)


async def test_who_waits_and_a_worker_step_the_same_and_nothing_is_done_twice(
    attn: Attn, queue: AttentionQueue
) -> None:
    await die(attn, 7)
    number = await queue.start(order(Kind.DISCARD_DEAD, per_second=10), actor="ann")

    async with serving(queue), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(run_to_end(attn.engine, attn.clock, number))
        await rest(attn)
        await attn.advance(3 * SECOND)

    assert (waiting.result().done, waiting.result().total) == (7, 7)


async def test_one_that_always_fails_does_not_stop_the_others(
    attn: Attn, queue: AttentionQueue
) -> None:
    await die(attn, 1)
    await attn.publish("t/2", "bad", {}, id="other")
    await attn.drain()
    broken = await queue.start(order(Kind.DISCARD_DEAD), actor="ann")
    selection = Selection(resource=Resource("t", "2"))
    sound = Operation(kind=Kind.DISCARD_DEAD, group="market", selection=selection, reason="why")
    number = await queue.start(sound, actor="ann")
    attn.engine.writer.run_blocking(  # type: ignore[attr-defined]  # the engine in memory has one
        lambda tx: tx._db.execute(
            "CREATE TRIGGER broken BEFORE DELETE ON dead WHEN old.id = '0' "
            "BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    )

    async with serving(queue):
        await attn.advance(LEASE)  # of the worker that has served before
        await attn.advance(timedelta(seconds=2 * EVERY))

    states = [await attn.insight.operation(each) for each in (broken, number)]
    assert [each.progress for each in states if each] == [Progress.RUNNING, Progress.DONE]
    assert {event.loop for event in of_kind(attn, LoopFailed)} == {"operations"}


async def test_a_look_for_an_operation_wakes_nobody(attn: Attn, queue: AttentionQueue) -> None:
    stirred: list[None] = []
    attn.engine.writer.listeners.append(  # type: ignore[attr-defined]  # the engine in memory has them
        lambda: stirred.append(None)
    )

    assert await attn.engine.step(None, 10) is None
    assert not stirred

    await queue.register("t/1")
    await queue.start(order(Kind.DISCARD_DEAD), actor="ann")
    stirred.clear()
    assert await attn.engine.step(None, 10) is not None
    assert stirred
