"""Publishing from code that is not async: from a thread of its own, and beside an open loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_queue import AttentionQueue, BlockingQueue, Context, Resource
from attention_queue.contract.events import HandlerEnded
from attention_queue.errors import ContractError, EngineUnavailable, InvalidUrl, UnknownResource
from attention_queue.testkit import Attn
from unit.core.serving import of_kind, started


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/a.db"


@pytest.fixture(autouse=True)
def leaves_no_thread() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = {t.name for t in threading.enumerate() if t not in before}
    assert not {name for name in left if name.startswith("attn-")}


def test_what_sync_code_publishes_is_there_for_whoever_serves(url: str) -> None:
    with BlockingQueue(AttentionQueue("market", url=url)) as blocking:
        id = blocking.publish("t/1", "it", {"n": 1}, headers={"trace": "z"})
        put = blocking.publish_many(
            [AttentionQueue("market").message("t/2", "it", n) for n in range(3)]
        )
    seen: list[str] = []

    async def serve() -> None:
        queue = AttentionQueue("market", url=url)
        done = asyncio.Event()

        @queue.handler("it")
        async def it(message: object, context: Context) -> None:
            seen.append(context.message.id)
            if len(seen) == 4:
                done.set()

        async with queue, asyncio.TaskGroup() as tasks, asyncio.timeout(20):
            worker = queue.worker()
            tasks.create_task(worker.run())
            await done.wait()
            worker.drain()

    asyncio.run(serve())
    assert (put.stored, put.requests) == (3, 1)
    assert id in seen


def test_it_may_be_opened_again(url: str) -> None:
    queue = AttentionQueue("market", url=url)
    for n in range(2):
        with BlockingQueue(queue) as blocking:
            assert blocking.publish("t/1", "it", n, id=f"m{n}") == f"m{n}"


def test_errors_come_through_as_they_are(url: str) -> None:
    with BlockingQueue(AttentionQueue("market", url=url, register="explicit")) as blocking:
        with pytest.raises(UnknownResource):
            blocking.publish("t/1", "it")
        with pytest.raises(ContractError):
            blocking.publish("no resource", "it")


def test_an_engine_that_cannot_be_opened_leaves_no_thread() -> None:
    queue = AttentionQueue("market", url="sqlite:////no/such/folder/a.db")

    with pytest.raises(InvalidUrl), BlockingQueue(queue):
        raise AssertionError("it was opened")

    with pytest.raises(EngineUnavailable):
        _ = queue.engine


def test_it_is_used_inside_its_with_alone(url: str) -> None:
    blocking = BlockingQueue(AttentionQueue("market", url=url))
    with pytest.raises(ContractError, match="with BlockingQueue"):
        blocking.publish("t/1", "it")

    with blocking:
        pass
    with pytest.raises(ContractError, match="with BlockingQueue"):
        blocking.publish("t/1", "it")


async def test_a_sync_handler_publishes_beside_the_loop_that_serves_it(attn: Attn) -> None:
    queue = AttentionQueue("market")

    @queue.handler("order")
    def order(message: dict[str, object]) -> None:
        with BlockingQueue(queue) as blocking:
            blocking.publish("t/2", "invoice", {}, id="invoice")

    @queue.handler("invoice")
    async def invoice(message: dict[str, object]) -> None: ...

    await attn.open(queue)
    await attn.publish("t/1", "order", {}, id="order")
    await attn.drain()

    assert started(attn) == ["order", "invoice"]
    assert [event.failure for event in of_kind(attn, HandlerEnded)] == [None, None]


async def test_from_the_queues_own_loop_it_is_refused_instead_of_waiting_for_ever(
    attn: Attn,
) -> None:
    queue = AttentionQueue("market")
    await attn.open(queue)

    with (
        BlockingQueue(queue) as blocking,
        pytest.raises(ContractError, match="own event loop"),
    ):
        blocking.publish(Resource("t", "1"), "it")


async def test_inside_another_loop_it_has_its_own(url: str) -> None:
    with BlockingQueue(AttentionQueue("market", url=url)) as blocking:
        assert blocking.publish("t/1", "it", id="m") == "m"


FORKED = """
import asyncio, os, sys
from attention_queue import AttentionQueue, BlockingQueue
from attention_queue.errors import AttentionQueueError

def in_child(publish):
    if os.fork() == 0:
        try:
            publish()
        except AttentionQueueError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()

queue = AttentionQueue("market", url=sys.argv[1])
with BlockingQueue(queue) as blocking:
    in_child(lambda: blocking.publish("t/1", "it"))
    blocking.publish("t/1", "it")

asyncio.run(queue.open())
in_child(lambda: asyncio.run(queue.publish("t/1", "it")))
os._exit(0)
"""


def test_what_was_opened_before_a_fork_says_so_in_the_child(url: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    first, second = ran.stdout.splitlines()
    assert first == "it was opened before this process was forked: open one here"
    assert "opened before this process was forked: open it here" in second
