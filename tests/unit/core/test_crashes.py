"""A worker that dies with messages in hand: what comes back, when, and who is blamed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Context, Plan, Policy
from attention_queue.contract.events import LoansRescued, MessagesTaken
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, of_kind, started

LEASE = timedelta(seconds=31)  # and a little more


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    plan = Plan("plan", Policy(max_crashes=3, max_messages=10))
    queue = AttentionQueue("market", plans=[plan])
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    return queue


async def test_what_a_dead_worker_had_comes_back_with_its_lease_and_without_an_attempt(
    attn: Attn, queue: AttentionQueue
) -> None:
    attempts: list[int] = []

    @queue.handler("look")
    async def look(message: int, context: Context) -> None:
        attempts.append(context.attempt)

    ids = [await attn.publish("t/1", "look", n) for n in range(4)]
    assert await attn.crash() == ids
    await attn.advance(29 * SECOND)
    assert await attn.drain() == []

    await attn.advance(2 * SECOND)
    await attn.drain()

    assert started(attn) == ids
    assert attempts == [1, 1, 1, 1]
    assert await attn.backlog("t/1") == 0


async def test_what_is_published_meanwhile_is_not_forgotten(
    attn: Attn, queue: AttentionQueue
) -> None:
    first = await attn.publish("t/1", "it", {})
    await attn.crash()
    second = await attn.publish("t/1", "it", {})

    await attn.advance(LEASE)
    await attn.drain()

    assert started(attn) == [first, second]


async def test_the_death_of_a_worker_holds_only_its_resource(
    attn: Attn, queue: AttentionQueue
) -> None:
    await attn.publish("t/1", "it", {})
    await attn.crash()
    await attn.publish("t/2", "it", {})

    await attn.drain()

    assert await attn.backlog("t/2") == 0
    assert await attn.backlog("t/1") == 1


async def test_suspects_are_taken_alone_and_each_settled_before_the_next(
    attn: Attn, queue: AttentionQueue
) -> None:
    for n in range(3):
        await attn.publish("t/1", "it", {}, id=str(n))
    await attn.crash()
    await attn.advance(LEASE)

    assert await attn.crash() == ["0"]

    await attn.advance(LEASE)
    await attn.drain()
    assert started(attn) == ["0", "1", "2"]
    assert {event.loaned for event in of_kind(attn, MessagesTaken)} <= {1}


async def test_the_message_that_kills_is_found_and_its_neighbours_lose_nothing(
    attn: Attn, queue: AttentionQueue
) -> None:
    for id in ("kills", "a", "b", "c"):
        await attn.publish("t/1", "it", {}, id=id)

    in_hand = []
    for _ in range(4):
        in_hand.append(await attn.crash())
        await attn.advance(LEASE)
    await attn.drain()

    assert in_hand == [["kills", "a", "b", "c"], ["kills"], ["kills"], ["kills"]]
    (letter,) = await attn.dead()
    assert (letter.id, letter.reason) == ("kills", "poison")
    assert started(attn) == ["a", "b", "c"]
    assert [event.charged for event in of_kind(attn, LoansRescued)] == [0, 1, 1, 1]


async def test_a_suspect_that_is_handled_clears_itself(attn: Attn, queue: AttentionQueue) -> None:
    await attn.publish("t/1", "it", {}, id="0")
    for _ in range(2):
        await attn.crash()
        await attn.advance(LEASE)
    await attn.drain()

    assert await attn.dead() == []
    assert await attn.backlog("t/1") == 0
