"""Expiry: a message that nobody wants any more is not delivered; judged when its turn comes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from attention_queue.contract import DONE, Hold, Order, Retry, WorkMessage
from attention_queue.contract.events import DeadLettered
from attention_queue.contract.operation import Kind
from attention_queue.contract.outcome import CycleEnd
from attention_queue.contract.policy import Expired
from contract.orders import complete
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
A = shop("a")
MINUTE = timedelta(minutes=1)


def until(id: str, expires_at: datetime) -> WorkMessage:
    return WorkMessage(id=id, resource=A, type="order", payload=b"{}", expires_at=expires_at)


def reasons(stage: Stage) -> list[tuple[str, str]]:
    return [(letter["id"], letter["reason"]) for letter in stage.dead()]


async def test_a_message_older_than_its_plans_ttl_is_dead_lettered(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=MINUTE)
    await stage.put(message(A, "old"))
    passes(MINUTE + MS)
    await stage.put(message(A, "new"))

    assert await stage.serve() == ["new"]
    assert reasons(stage) == [("old", "expired")]
    assert stage.of(DeadLettered) == [DeadLettered("shops", A, "old", "order", "expired", 0)]
    assert stage.requests() == 0


async def test_a_message_within_its_ttl_is_delivered(stage: Stage, passes: Passes) -> None:
    await stage.open(ttl=MINUTE)
    await stage.put(message(A, "1"))

    passes(MINUTE - MS)

    assert await stage.serve() == ["1"]


async def test_a_message_says_itself_when_it_expires(stage: Stage, passes: Passes) -> None:
    await stage.open()
    now = stage.clock.now()
    await stage.put(until("1", now + SECOND), until("2", now + SECOND + MS), message(A, "3"))

    passes(SECOND)

    assert await stage.serve() == ["2", "3"]
    assert reasons(stage) == [("1", "expired")]


async def test_the_sooner_of_the_two_counts(stage: Stage, passes: Passes) -> None:
    await stage.open(ttl=SECOND)
    now = stage.clock.now()
    await stage.put(until("by plan", now + MINUTE), until("by itself", now + 500 * MS))

    passes(500 * MS)
    begun = await stage.begin_one()

    assert ids(begun.loan) == ["by plan"]
    await stage.finish(begun)
    passes(501 * MS)
    assert await stage.serve() == []
    assert stage.requests() == 0


async def test_a_ttl_that_a_person_shortens_is_in_force_for_what_waits(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    passes(MINUTE)

    await stage.set_policy(ttl=SECOND)

    assert await stage.serve() == []
    assert reasons(stage) == [("1", "expired")]


async def test_expired_messages_are_dropped_if_the_policy_says_so(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=SECOND, expired=Expired.DROP)
    await stage.put(message(A, "1"))
    passes(SECOND + MS)

    assert await stage.serve() == []
    assert (stage.dead(), stage.requests()) == ([], 0)
    assert stage.rows("SELECT value FROM ledger WHERE name = 'messages_expired'") == [(1,)]


async def test_what_is_in_hand_is_handled_late_as_it_is(stage: Stage, passes: Passes) -> None:
    await stage.open(ttl=SECOND)
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()

    passes(2 * SECOND)
    left = await stage.finish(begun, done(begun.loan))

    assert (left.backlog, stage.dead()) == (0, [])


async def test_a_retried_message_is_judged_again_when_its_turn_comes(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=MINUTE)
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    await stage.finish(begun, [(begun.loan[0], Retry(after=2 * MINUTE))])

    passes(2 * MINUTE)

    assert await stage.serve() == []
    assert [(d["reason"], d["attempts"]) for d in stage.dead()] == [("expired", 1)]


async def test_a_cycle_that_takes_more_leaves_out_what_has_expired_since(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=MINUTE)
    await stage.put(message(A, "1"), until("2", stage.clock.now() + SECOND), message(A, "3"))
    begun = await stage.begin_one(take=1)
    passes(SECOND)

    more = await stage.engine.settle(begun, done(begun.loan), take=2)

    assert ids(more) == ["3"]
    await stage.finish(begun, done(more))
    assert reasons(stage) == [("2", "expired")]


@pytest.mark.parametrize("expired", Expired)
async def test_three_thousand_expired_ahead_of_one_that_lives_are_passed_in_bounded_steps(
    stage: Stage, passes: Passes, expired: Expired
) -> None:
    await stage.open(ttl=MINUTE, expired=expired)
    await stage.put(*messages(A, 3_000))
    passes(MINUTE + MS)
    await stage.put(message(A, "alive"))
    served, left = [], [3_001]

    while not served:
        served = await stage.serve()
        left += [n for (n,) in stage.rows("SELECT count(*) FROM message")]
        passes(MS)

    assert served == ["alive"]
    assert max(before - after for before, after in pairwise(left)) <= 1_001
    assert len(stage.dead()) == (3_000 if expired is Expired.DEAD_LETTER else 0)
    assert stage.requests() == 0


async def test_a_second_consumer_expires_only_what_nobody_holds(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=MINUTE, max_consumers=2, max_messages=2)
    await stage.put(*messages(A, 4))
    first = await stage.begin_one(limit=2, take=2)
    passes(LEASE - SECOND)
    await stage.engine.renew([first])
    passes(LEASE - SECOND)
    await stage.engine.renew([first])
    passes(3 * SECOND)
    await stage.put(message(A, "new"))

    second = await stage.begin_one()

    assert ids(second.loan) == ["new"]
    assert reasons(stage) == [("a-3", "expired"), ("a-4", "expired")]
    await stage.finish(second, done(second.loan))
    await stage.finish(first, done(first.loan))


async def test_in_strict_order_the_next_follows_a_head_that_has_expired(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(order=Order.STRICT)
    await stage.put(until("head", stage.clock.now() + 5 * SECOND), message(A, "2"), message(A, "3"))
    begun = await stage.begin_one(take=1)
    wait = {"not_before": 10 * SECOND, "hold": Hold.HEAD}
    verdict = [(begun.loan[0], Retry(after=10 * SECOND))]
    await stage.finish(begun, verdict, CycleEnd.HEAD, **wait)

    passes(5 * SECOND)
    early = await stage.serve()
    passes(5 * SECOND)

    assert early == []
    assert await stage.serve() == ["2", "3"]
    assert reasons(stage) == [("head", "expired")]


async def test_what_is_redriven_does_not_expire_again(stage: Stage, passes: Passes) -> None:
    await stage.open(ttl=MINUTE)
    await stage.put(message(A, "1"), until("2", stage.clock.now() + SECOND))
    passes(2 * MINUTE)
    await stage.serve()
    assert len(stage.dead()) == 2

    await complete(stage, Kind.REDRIVE, resource=A)

    assert await stage.serve() == ["1", "2"]


async def test_a_duplicate_of_an_expired_message_is_new_once_that_has_left(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=SECOND, expired=Expired.DROP)
    await stage.put(message(A, "1"))
    passes(2 * SECOND)
    assert await stage.serve() == []

    put = await stage.put(message(A, "1"))

    assert (put.stored, put.duplicates) == (1, 0)
    begun = await stage.begin_one()
    await stage.finish(begun, [(begun.loan[0], DONE)])
