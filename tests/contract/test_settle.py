"""Settling: what becomes of a message, under the fence of its token."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import (
    DONE,
    CycleEnd,
    Failure,
    Hold,
    Order,
    Reject,
    Retry,
    Settlement,
    Unknown,
)
from attention_queue.contract.events import DeadLettered, MessagesSettled
from attention_queue.errors import TokenLost
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
BROKEN = Failure("ValueError", "no such order", "Traceback ...")


async def test_done_is_gone(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one()

    await stage.engine.settle(begun, done(begun.loan))

    assert stage.rows("SELECT count(*) FROM message") == [(0,)]
    assert stage.of(MessagesSettled) == [MessagesSettled("shops", shop("a"), 2, 0, 0, 0)]
    await stage.finish(begun)


async def test_a_part_of_a_loan_may_be_settled_and_the_rest_comes_back(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 4))
    begun = await stage.begin_one()

    await stage.engine.settle(begun, done(begun.loan[:2]))
    await stage.engine.settle(begun, done(begun.loan[2:3]))
    await stage.finish(begun)

    assert await stage.serve() == ["a-4"]


async def test_retry_counts_an_attempt_and_keeps_the_failure(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))

    for attempt in (1, 2):
        begun = await stage.begin_one()
        assert begun.loan[0].attempt == attempt
        await stage.finish(begun, [(begun.loan[0], Retry(SECOND, BROKEN))])
        passes(SECOND)

    ((history,),) = stage.rows("SELECT history FROM message")
    kept = json.loads(history)
    assert [entry["attempt"] for entry in kept] == [1, 2]
    assert {entry["error"] for entry in kept} == {"ValueError"}


async def test_only_the_newest_twenty_failures_are_kept(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))

    for _ in range(25):
        begun = await stage.begin_one()
        await stage.finish(begun, [(begun.loan[0], Retry(MS, BROKEN))])
        passes(MS)

    ((history,),) = stage.rows("SELECT history FROM message")
    assert [entry["attempt"] for entry in json.loads(history)] == list(range(6, 26))


async def test_a_dead_letter_keeps_its_error_its_trace_and_its_attempts(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    first = await stage.begin_one()
    await stage.finish(first, [(first.loan[0], Retry(MS, Failure("OSError", "once")))])
    passes(MS)
    second = await stage.begin_one()

    left = await stage.finish(second, [(second.loan[0], Reject("bad_order", BROKEN))])

    (dead,) = stage.dead()
    assert json.loads(dead.pop("history"))[0]["error"] == "OSError"
    assert dead == {
        "id": "1",
        "attempts": 2,
        "reason": "bad_order",
        "error": "ValueError",
        "error_text": "no such order",
        "trace": "Traceback ...",
    }
    assert (left.backlog, left.republished) == (0, False)
    assert [event.reason for event in stage.of(DeadLettered)] == ["bad_order"]


async def test_many_outcomes_at_once_each_do_their_own(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 5))
    begun = await stage.begin_one()
    kinds: list[Settlement] = [DONE, Retry(SECOND), Reject("no"), DONE, Unknown(retry_in=SECOND)]

    await stage.engine.settle(begun, list(zip(begun.loan, kinds, strict=True)))

    assert stage.of(MessagesSettled) == [MessagesSettled("shops", shop("a"), 2, 1, 1, 1)]
    assert [dead["id"] for dead in stage.dead()] == ["a-3"]
    await stage.finish(begun)
    passes(SECOND)
    again = await stage.begin_one()
    assert [(d.message.id, d.attempt) for d in again.loan] == [("a-2", 2), ("a-5", 1)]
    await stage.finish(again, done(again.loan))


async def test_a_type_that_nobody_knows_waits_without_an_attempt_until_its_grace_is_over(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    unknown = Unknown(retry_in=2 * SECOND, grace=5 * SECOND)

    for _ in range(3):  # at 0, 2 and 4 seconds
        begun = await stage.begin_one()
        assert begun.loan[0].attempt == 1
        await stage.finish(begun, [(begun.loan[0], unknown)], CycleEnd.UNKNOWN_TYPE)
        assert stage.dead() == []
        passes(2 * SECOND)
    last = await stage.begin_one()
    await stage.finish(last, [(last.loan[0], unknown)], CycleEnd.UNKNOWN_TYPE)

    assert [dead["reason"] for dead in stage.dead()] == ["unknown_type"]


async def test_a_retry_begins_the_grace_of_an_unknown_type_anew(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    unknown = Unknown(retry_in=SECOND, grace=SECOND)
    for outcome in (unknown, Retry(SECOND), unknown):
        begun = await stage.begin_one()
        await stage.finish(begun, [(begun.loan[0], outcome)])
        passes(SECOND)

    assert stage.dead() == []


async def test_strict_a_type_that_nobody_knows_keeps_its_place(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(order=Order.STRICT)
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one()
    outcomes = [(begun.loan[0], Unknown())]
    await stage.finish(
        begun, outcomes, CycleEnd.UNKNOWN_TYPE, not_before=2 * SECOND, hold=Hold.HEAD
    )

    passes(2 * SECOND)

    assert await stage.serve() == ["a-1", "a-2"]


async def test_a_late_holder_is_fenced_out_and_nothing_of_it_is_recorded(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    late = await stage.begin_one()
    passes(LEASE)
    successor = await stage.begin_one()
    before = stage.rows("SELECT * FROM message ORDER BY seq")

    with pytest.raises(TokenLost):
        await stage.engine.settle(late, [(late.loan[0], DONE), (late.loan[1], Reject("no"))])

    assert stage.rows("SELECT * FROM message ORDER BY seq") == before
    assert stage.dead() == []
    await stage.finish(successor, done(successor.loan))
    assert await stage.serve() == ["a-2"]


async def test_a_late_holder_cannot_finish_its_successors_cycle(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    late = await stage.begin_one()
    passes(LEASE)
    successor = await stage.begin_one()

    with pytest.raises(TokenLost):
        await stage.finish(late, done(late.loan))

    assert stage.rows("SELECT slot, fence FROM token") == [(0, successor.token.fence)]
    await stage.finish(successor, done(successor.loan))
    assert stage.dead() == []


async def test_a_holder_that_nobody_replaced_may_still_settle(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    late = await stage.begin_one()
    passes(2 * LEASE)

    left = await stage.finish(late, done(late.loan))

    assert (left.backlog, left.republished) == (0, False)
    assert await stage.serve() == []


async def test_a_fenced_out_settle_fails_alone_in_its_group_of_commits(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    late = await stage.begin_one()
    passes(LEASE)
    successor = await stage.begin_one()
    await stage.finish(successor, done(successor.loan))

    with pytest.raises(TokenLost):
        await stage.finish(late, done(late.loan))
    put = await stage.put(message(shop("a"), "2"))

    assert put.stored == 1
    assert await stage.serve() == ["2"]


async def test_settling_again_after_an_answer_was_lost_counts_nothing_twice(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 5))
    begun = await stage.begin_one()
    outcomes = [(begun.loan[0], DONE), (begun.loan[1], Reject("no"))]
    await stage.engine.settle(begun, outcomes)

    await stage.engine.settle(begun, outcomes)

    assert stage.faults() == []
    assert len(stage.dead()) == 1
    await stage.finish(begun)
    assert await stage.serve() == ["a-3", "a-4", "a-5"]


async def test_finishing_again_after_an_answer_was_lost_changes_nothing(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    await stage.finish(begun, done(begun.loan))

    with pytest.raises(TokenLost):
        await stage.finish(begun, done(begun.loan))

    assert await stage.serve() == ["a-2"]


async def test_a_message_is_in_exactly_one_place_whatever_is_said_of_it(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()
    assert ids(begun.loan) == ["a-1", "a-2", "a-3"]

    await stage.finish(
        begun, [(begun.loan[0], DONE), (begun.loan[1], Reject("no")), (begun.loan[2], Retry(MS))]
    )

    assert stage.rows("SELECT id FROM message") == [("a-3",)]
    assert stage.rows("SELECT id FROM dead") == [("a-2",)]


async def test_while_a_message_waits_for_its_retry_strict_delivers_nothing_behind_it(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(order=Order.STRICT)
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()
    retry = [(begun.loan[0], Retry(SECOND))]
    await stage.finish(begun, retry, CycleEnd.HEAD, not_before=SECOND, hold=Hold.HEAD)
    assert await stage.serve() == []
    passes(SECOND)
    again = await stage.begin_one(take=1)

    await stage.finish(again, [(again.loan[0], Reject("attempts"))])

    assert await stage.serve() == ["a-2", "a-3"]
    assert [dead["id"] for dead in stage.dead()] == ["a-1"]
