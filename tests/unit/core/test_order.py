"""Which message comes next: strict and relaxed order, and types that nobody here handles."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Backoff, Context, Order, Plan, Policy, Stop
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, started

FAILS = Backoff(attempts=3, first=10 * SECOND, factor=1)


async def opened(attn: Attn, **policy: object) -> AttentionQueue:
    """Type ``bad`` always fails, ``good`` never."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(**policy))])  # type: ignore[arg-type]
    queue.handler("good")(lambda message: None)

    @queue.handler("bad")
    async def bad(message: dict[str, object]) -> None:
        raise ValueError

    await attn.open(queue)
    return queue


async def publish(attn: Attn, *types: str, to: str = "t/1") -> None:
    """Ids are the place and the type: ``0good``."""
    for n, type in enumerate(types):
        await attn.publish(to, type, {}, id=f"{n}{type}")


async def test_in_strict_order_the_rest_waits_for_the_first_until_it_is_a_dead_letter(
    attn: Attn,
) -> None:
    await opened(attn, order=Order.STRICT, retry=FAILS)
    await publish(attn, "bad", "good", "good")

    for _ in range(2):
        assert [end.value for end in await attn.drain()] == ["head"]
        assert await attn.drain() == []
        await attn.advance(10 * SECOND)
    await attn.drain()

    assert started(attn) == ["0bad", "0bad", "0bad", "1good", "2good"]
    assert [letter.id for letter in await attn.dead()] == ["0bad"]
    assert ends(attn) == ["head", "head", "drained"]


async def test_a_new_message_does_not_pull_a_held_head_forward(attn: Attn) -> None:
    await opened(attn, order=Order.STRICT, retry=FAILS)
    await publish(attn, "bad")
    await attn.drain()

    await attn.publish("t/1", "good", {})

    assert await attn.drain() == []


async def test_in_strict_order_the_order_of_publishing_is_kept_over_slices(attn: Attn) -> None:
    queue = await opened(attn, order=Order.STRICT, max_messages=3, retry=FAILS)
    seen: list[int] = []

    @queue.handler("count")
    async def count(message: int, context: Context) -> Stop | None:
        if message % 4 == 0 and message not in seen and context.attempt == 1:
            seen.append(message)
            return Stop("wait") if message % 8 else None
        if message % 4 == 2 and context.attempt < 3:
            raise ConnectionError
        if message not in seen:
            seen.append(message)
        return None

    for n in range(20):
        await attn.publish("t/1", "count", n)
    for _ in range(40):
        await attn.drain()
        await attn.advance(10 * SECOND)

    assert seen == list(range(20))


async def test_in_relaxed_order_the_rest_goes_on_while_one_waits(attn: Attn) -> None:
    await opened(attn, retry=FAILS)
    await publish(attn, "bad", "good", "good")

    await attn.drain()

    assert started(attn) == ["0bad", "1good", "2good"]
    assert await attn.backlog("t/1") == 1


async def test_a_failing_head_holds_its_own_resource_only(attn: Attn) -> None:
    await opened(attn, order=Order.STRICT, retry=FAILS)
    await publish(attn, "bad", "good")
    await publish(attn, "good", to="t/2")

    await attn.drain()

    assert await attn.backlog("t/2") == 0
    assert await attn.backlog("t/1") == 2


async def test_of_delayed_messages_the_first_to_fall_due_is_the_first(attn: Attn) -> None:
    await opened(attn)
    for id, seconds in (("late", 9), ("soon", 3), ("sooner", 2)):
        await attn.publish("t/1", "good", {}, id=id, delay=timedelta(seconds=seconds))
    assert await attn.drain() == []

    await attn.advance(2 * SECOND)
    await attn.drain()
    assert started(attn) == ["sooner"]
    await attn.advance(10 * SECOND)
    await attn.drain()
    assert started(attn) == ["sooner", "soon", "late"]


async def test_an_unknown_type_waits_for_another_process_and_the_rest_goes_on(attn: Attn) -> None:
    queue = await opened(attn)
    await publish(attn, "new", "good", "new", "good")

    await attn.drain()
    assert {id for id in started(attn) if "good" in id} == {"1good", "3good"}
    assert await attn.backlog("t/1") == 2
    assert await attn.dead() == []

    queue.handler("new")(lambda message: None)  # the deploy has come
    await attn.advance(2 * SECOND)
    await attn.drain()
    assert await attn.backlog("t/1") == 0
    assert await attn.dead() == []


async def test_in_strict_order_the_rest_waits_behind_an_unknown_type(attn: Attn) -> None:
    queue = await opened(attn, order=Order.STRICT)
    await publish(attn, "new", "good")

    await attn.drain()
    assert ends(attn) == ["unknown_type"]
    assert await attn.backlog("t/1") == 2

    queue.handler("new")(lambda message: None)
    await attn.advance(2 * SECOND)
    await attn.drain()
    assert await attn.backlog("t/1") == 0
    assert started(attn)[-2:] == ["0new", "1good"]


@pytest.mark.parametrize("order", list(Order))
async def test_a_type_unknown_for_the_whole_grace_is_a_dead_letter(
    attn: Attn, order: Order
) -> None:
    await opened(attn, order=order)
    await attn.publish("t/1", "os.system", {}, id="bad")
    await attn.publish("t/1", "good", {}, id="good")

    for _ in range(12):
        await attn.drain()
        assert await attn.dead() == []
        await attn.advance(timedelta(seconds=49))
    await attn.advance(timedelta(seconds=12))
    await attn.drain()

    (letter,) = await attn.dead()
    assert (letter.id, letter.reason) == ("bad", "unknown_type")
    await attn.advance(2 * SECOND)
    await attn.drain()
    assert await attn.backlog("t/1") == 0


async def test_an_unknown_type_does_not_spin(attn: Attn) -> None:
    await opened(attn)
    await publish(attn, "new", "new", "new")

    for _ in range(10):
        await attn.drain()
        await attn.advance(SECOND)

    assert len(ends(attn)) <= 3 * 5 + 3
