"""The fixture ``attn`` that applications test with."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Context, Retry
from attention_queue.clock import SystemClock
from attention_queue.contract.events import CycleFinished, Published
from attention_queue.core.insight import Word
from attention_queue.errors import ContractError
from attention_queue.testkit import Attn

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    queue = AttentionQueue("market")

    @queue.handler("price")
    async def price(message: dict[str, int], context: Context) -> Retry | None:
        return Retry(MINUTE) if message["cents"] < 0 else None

    await attn.open(queue)
    return queue


async def test_nothing_runs_until_it_is_told_to(attn: Attn, queue: AttentionQueue) -> None:
    await attn.publish("t/1", "price", {"cents": 5})

    assert await attn.backlog("t/1") == 1
    assert [type(event) for event in attn.events] == [Published]
    assert [end.value for end in await attn.drain()] == ["drained"]
    assert await attn.backlog("t/1") == 0
    assert any(isinstance(event, CycleFinished) for event in attn.events)


async def test_a_cycle_is_exactly_one_slice(attn: Attn, queue: AttentionQueue) -> None:
    for shop in ("t/1", "t/2"):
        await attn.publish(shop, "price", {"cents": 5})

    end = await attn.cycle()

    assert end and end.value == "drained"
    assert (await attn.backlog("t/1"), await attn.backlog("t/2")) == (0, 1)
    assert await attn.cycle() is not None
    assert await attn.cycle() is None


async def test_time_passes_only_when_it_is_moved(attn: Attn, queue: AttentionQueue) -> None:
    before = attn.clock.now()
    await attn.publish("t/1", "price", {"cents": -1})
    await attn.drain()
    assert await attn.drain() == []

    await attn.advance(MINUTE)

    assert attn.clock.now() - before == MINUTE
    assert [end.value for end in await attn.drain()] == ["drained"]


async def test_dead_letters_say_why(attn: Attn, queue: AttentionQueue) -> None:
    await attn.publish("t/1", "price", {"cents": "x"}, id="bad")
    await attn.drain()

    (letter,) = await attn.dead()
    assert (letter.id, letter.reason, letter.attempts) == ("bad", "undecodable", 1)
    assert "int" in letter.text


async def test_a_crash_returns_what_was_in_hand(attn: Attn, queue: AttentionQueue) -> None:
    id = await attn.publish("t/1", "price", {"cents": 5})

    assert await attn.crash() == [id]
    assert await attn.crash() == []
    assert await attn.drain() == []
    await attn.advance(MINUTE)
    assert len(await attn.drain()) == 1


async def test_it_explains_what_it_sees(attn: Attn, queue: AttentionQueue) -> None:
    await attn.publish("t/1", "price", {"cents": 5})

    assert (await attn.explain("t/1")).verdict is Word.WAITING_TURN
    assert (await attn.explain("t/9")).verdict is Word.UNKNOWN


async def test_several_queues_share_one_engine(attn: Attn, queue: AttentionQueue) -> None:
    other = AttentionQueue("billing")
    other.handler("invoice")(lambda message: None)
    await attn.open(other)

    await attn.publish("t/1", "price", {"cents": 5})
    await other.publish("t/1", "invoice", {})

    assert len(await attn.drain()) == 2
    assert await attn.backlog("t/1", queue=other) == 0


async def test_without_an_open_queue_it_says_what_to_do(attn: Attn) -> None:
    with pytest.raises(ContractError, match=r"await attn\.open\(queue\)"):
        await attn.publish("t/1", "price", {})


async def test_a_queue_gets_its_own_clock_and_bus_back() -> None:
    queue, attn = AttentionQueue("market"), Attn()
    own = queue.bus
    await attn.open(queue)
    assert queue.clock is attn.clock

    attn.close()

    assert isinstance(queue.clock, SystemClock)
    assert queue.bus is own


async def test_work_that_never_ends_is_an_error_and_not_an_endless_test(
    attn: Attn, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = AttentionQueue("market")

    @queue.handler("again")
    async def again(message: object, context: Context) -> None:
        await context.publish("t/1", "again", None)

    await attn.open(queue)
    monkeypatch.setattr("attention_queue.testkit.MANY", 20)
    await attn.publish("t/1", "again", None)

    with pytest.raises(AssertionError, match="still due after 20 cycles"):
        await attn.drain()


def test_loading_the_plugin_loads_no_engine() -> None:
    code = (
        "import sys, attention_queue.testing\n"
        "print([m for m in ('apsw', 'attention_queue.engines', 'msgspec') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
