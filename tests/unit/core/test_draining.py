"""How a worker leaves: what runs finishes, what is on loan goes back, nothing new begins."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Context, Plan, Policy
from attention_queue.contract.events import CycleStarted, WorkerStopped
from attention_queue.errors import ContractError
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, rest, serving, started


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    """``wait`` waits ten virtual seconds."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(max_messages=10))])

    @queue.handler("wait")
    async def wait(message: int) -> None:
        await attn.clock.sleep(10)

    await attn.open(queue)
    return queue


async def publish(attn: Attn, count: int) -> None:
    for n in range(count):
        await attn.publish("t/1", "wait", n, id=str(n))


async def test_a_drained_worker_finishes_the_message_it_is_at_and_gives_the_rest_back(
    attn: Attn, queue: AttentionQueue
) -> None:
    await publish(attn, 5)
    async with serving(queue) as worker:
        await attn.advance(5 * SECOND)
        worker.drain()
        await attn.advance(5 * SECOND)
        assert len(of_kind(attn, WorkerStopped)) == 1

    assert ends(attn) == ["shutdown"]
    assert [event.abandoned for event in of_kind(attn, WorkerStopped)] == [0]
    assert await attn.backlog("t/1") == 4


async def test_what_was_given_back_is_served_at_once_by_another_and_is_no_attempt(
    attn: Attn, queue: AttentionQueue
) -> None:
    attempts: list[int] = []

    @queue.handler("look")
    async def look(message: int, context: Context) -> None:
        attempts.append(context.attempt)

    await publish(attn, 1)
    await attn.publish("t/1", "look", 1)
    async with serving(queue) as worker:
        await rest(attn)
        worker.drain()
        await attn.advance(10 * SECOND)
    await attn.drain()

    assert attempts == [1]
    assert await attn.backlog("t/1") == 0


async def test_a_draining_worker_begins_nothing_new(attn: Attn, queue: AttentionQueue) -> None:
    await publish(attn, 1)
    async with serving(queue) as worker:
        await rest(attn)
        worker.drain()
        await attn.publish("t/2", "wait", 1)
        await attn.advance(10 * SECOND)

    assert [event.resource.id for event in of_kind(attn, CycleStarted)] == ["1"]


async def test_an_idle_worker_leaves_at_once(attn: Attn, queue: AttentionQueue) -> None:
    async with serving(queue) as worker:
        await rest(attn)
        worker.drain()
        await rest(attn)
        assert len(of_kind(attn, WorkerStopped)) == 1


async def test_a_worker_that_is_told_to_drain_before_it_starts_serves_nothing(
    attn: Attn, queue: AttentionQueue
) -> None:
    await publish(attn, 1)
    worker = queue.worker()
    worker.drain()

    await worker.run()

    assert of_kind(attn, CycleStarted) == []


async def test_what_is_not_finished_within_the_grace_is_abandoned_without_an_attempt(
    attn: Attn, queue: AttentionQueue
) -> None:
    seen: list[int] = []

    @queue.handler("long")
    async def long(message: int, context: Context) -> None:
        seen.append(context.attempt)
        if len(seen) == 1:
            await attn.clock.sleep(3600)

    await attn.publish("t/1", "long", 1)
    async with serving(queue, grace=3 * SECOND) as worker:
        await rest(attn)
        worker.drain()
        await attn.advance(timedelta(seconds=2.9))
        assert of_kind(attn, WorkerStopped) == []
        await attn.advance(timedelta(seconds=0.2))
    assert [event.abandoned for event in of_kind(attn, WorkerStopped)] == [1]

    await attn.drain()
    assert seen == [1, 1]


async def test_a_thread_that_outlives_the_grace_keeps_its_token_until_the_lease_ends(
    attn: Attn, queue: AttentionQueue
) -> None:
    release, began = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    calls: list[int] = []

    @queue.handler("quick")
    def quick(message: int) -> None: ...

    @queue.handler("thread")
    def thread(message: int) -> None:
        calls.append(message)
        loop.call_soon_threadsafe(began.set)
        release.wait(30)

    await attn.publish("t/1", "thread", 1)
    try:
        async with serving(queue, grace=SECOND) as worker:
            async with asyncio.timeout(20):
                await began.wait()
            worker.drain()
            await attn.advance(2 * SECOND)
        assert ends(attn) == []
        assert await attn.drain() == []

        release.set()
        await attn.advance(31 * SECOND)
        await attn.drain()
        assert calls == [1, 1]
    finally:
        release.set()


async def test_a_cancelled_worker_leaves_nothing_running_and_no_token_out(
    attn: Attn, queue: AttentionQueue
) -> None:
    await publish(attn, 3)
    async with asyncio.TaskGroup() as tasks:
        serves = tasks.create_task(queue.worker().run())
        await rest(attn)
        serves.cancel()

    assert len(asyncio.all_tasks()) == 1
    assert ends(attn) == ["shutdown"]
    await queue.nudge("t/1")
    assert await attn.crash() == ["0", "1", "2"]
    assert len(started(attn)) == 1


@pytest.mark.parametrize("slots", [0, -1])
def test_a_worker_without_slots_is_refused(slots: int) -> None:
    queue = AttentionQueue("market")
    queue._engine = object()  # type: ignore[assignment]

    with pytest.raises(ContractError, match="slots"):
        queue.worker(slots=slots)
