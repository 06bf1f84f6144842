"""Each verb under publishes and workers, while the processes that carry it out are killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from attention_queue import AttentionQueue, Reject, Resource
from attention_queue.clock import SystemClock
from attention_queue.contract.operation import (
    Kind,
    Operation,
    OperationFigures,
    Progress,
    Selection,
)
from attention_queue.contract.outcome import CycleEnd
from attention_queue.core.operations import run_to_end
from attention_queue.ports import Begun, Ending, Want
from scenario.processes import assert_at_rest, rows
from scenario.stage import Stage
from scenario.victim import GROUP

TESTS = Path(__file__).parents[1]
SHOP = Resource("t", "a")
COUNT = 40
OLD = [f"old-{n}" for n in range(COUNT)]
DEATHS = pytest.mark.parametrize("die_at", ["commit", "after"])


async def die_changing(stage: Stage, role: str, die_at: str, nth: int, **spec: Any) -> None:
    """A process that is killed on the way."""
    url = f"sqlite:///{stage.path}"
    text = json.dumps({"role": role, "url": url, "die_at": die_at, "nth": nth, **spec})
    command = (sys.executable, "-X", "dev", "-m", "scenario.changer", text)
    process = await asyncio.create_subprocess_exec(*command, cwd=TESTS)
    async with asyncio.timeout(30):
        assert await process.wait() == -signal.SIGKILL


async def die_stepping(stage: Stage, number: int, die_at: str) -> None:
    """Two processes, each killed at another step."""
    for nth in (2, 1):
        await die_changing(stage, "step", die_at, nth, number=number, limit=7)


async def put_old(queue: AttentionQueue) -> None:
    await queue.publish_many(queue.message(SHOP, "work", {}, id=id) for id in OLD)


async def bury_old(queue: AttentionQueue) -> None:
    await put_old(queue)
    want = Want(owner="test", groups=(GROUP,), limit=1, extra=0)
    while found := await queue.engine.begin(want):
        for begun in found:
            assert isinstance(begun, Begun)
            verdicts = [(delivery, Reject("bad")) for delivery in begun.loan]
            await queue.engine.finish(begun, verdicts, Ending(end=CycleEnd.MESSAGES))


async def start(queue: AttentionQueue, kind: Kind) -> int:
    order = Operation(
        kind=kind, group=GROUP, selection=Selection(resource=SHOP), reason="test", per_second=100
    )
    return await queue.start(order, actor="ann")


async def end(queue: AttentionQueue, number: int) -> OperationFigures:
    async with asyncio.timeout(30):
        figures = await run_to_end(queue.engine, SystemClock(), number)
    assert figures.progress is Progress.DONE
    return figures


def effects(stage: Stage) -> Counter[str]:
    return Counter(effect.message for effect in stage.witness.effects)


def dead(stage: Stage) -> list[str]:
    return [id for (id,) in rows(stage.path, "SELECT id FROM dead ORDER BY dead_id")]


@DEATHS
async def test_a_redrive_brings_each_dead_letter_back_once(stage: Stage, die_at: str) -> None:
    async with stage.queue() as queue:
        await bury_old(queue)
        number = await start(queue, Kind.REDRIVE)
        publisher = await stage.start("publisher", prefix="p", resource="a", messages=COUNT)

        await die_stepping(stage, number, die_at)
        worker = await stage.start("worker")  # which goes on with it too
        figures = await end(queue, number)
        assert await publisher.ended() == 0
        await stage.witness.until_effects([*OLD, *publisher.said])
        assert await worker.leave() == 0

    assert (figures.done, figures.skipped, dead(stage)) == (COUNT, 0, [])
    assert effects(stage) == Counter([*OLD, *publisher.said])
    assert_at_rest(stage.path)


@DEATHS
async def test_a_discard_takes_what_nobody_has_handled_and_nothing_that_came_later(
    stage: Stage, die_at: str
) -> None:
    async with stage.queue() as queue:
        await put_old(queue)
        number = await start(queue, Kind.DISCARD)
        publisher = await stage.start("publisher", prefix="p", resource="a", messages=COUNT)

        await die_stepping(stage, number, die_at)
        worker = await stage.start("worker", work=0.002)
        figures = await end(queue, number)
        assert await publisher.ended() == 0
        await stage.witness.until_effects(publisher.said)
        assert await worker.leave() == 0

    handled = effects(stage)
    assert set(handled.values()) == {1}
    assert figures.done + sum(handled[id] for id in OLD) == COUNT
    assert figures.done > 0
    assert_at_rest(stage.path)


@DEATHS
async def test_a_retirement_loses_nothing_that_was_accepted(stage: Stage, die_at: str) -> None:
    """I6, with workers at work and a publisher that finds out by being refused."""
    async with stage.queue() as queue:
        await put_old(queue)
        publisher = await stage.start("publisher", prefix="p", resource="a", messages=100_000)
        workers = [await stage.start("worker", work=0.002) for _ in range(2)]
        await stage.witness.until_entered(5)

        number = await start(queue, Kind.RETIRE)
        await die_stepping(stage, number, die_at)
        await end(queue, number)
        assert await publisher.ended() == 1  # ResourceRetired
        assert [await worker.leave() for worker in workers] == [0, 0]

    accounted = effects(stage) + Counter(dead(stage))
    assert accounted == Counter([*OLD, *publisher.said])
    assert len(dead(stage)) > 0
    assert rows(stage.path, "SELECT state FROM resource") == [("removed",)]
    assert_at_rest(stage.path)


@DEATHS
async def test_a_resume_that_dies_half_way_is_repeated_and_each_message_handled_once(
    stage: Stage, die_at: str
) -> None:
    async with stage.queue() as queue:
        await put_old(queue)
        await queue.pause(SHOP, reason="test")
        worker = await stage.start("worker")
        publisher = await stage.start("publisher", prefix="p", resource="a", messages=COUNT)

        await die_changing(stage, "resume", die_at, 1, resource=str(SHOP))
        for _ in range(2):
            await queue.resume(SHOP)
        assert await publisher.ended() == 0
        await stage.witness.until_effects([*OLD, *publisher.said])
        assert await worker.leave() == 0

    assert effects(stage) == Counter([*OLD, *publisher.said])
    assert stage.witness.most_at_once[str(SHOP)] == 1
    assert_at_rest(stage.path)


async def test_a_worker_that_is_killed_while_it_is_stopped_loses_nothing(stage: Stage) -> None:
    async with stage.queue() as queue:
        await put_old(queue)
        worker = await stage.start("worker", work=5, lease=0.5)
        await stage.witness.until_entered(1)
        await queue.pause(SHOP, reason="test", stop_now=True)
        await worker.kill()
        await queue.resume(SHOP)

        survivor = await stage.start("worker", lease=0.5)
        await stage.witness.until_effects(OLD)
        assert await survivor.leave() == 0

    assert stage.witness.order_of(str(SHOP)) == OLD
    assert_at_rest(stage.path)
