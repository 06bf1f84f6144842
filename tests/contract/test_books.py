"""The books: what happened, by group and by resource, right after every commit and every crash."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import (
    DONE,
    CycleEnd,
    Failure,
    Hold,
    Order,
    Rate,
    Reject,
    Resource,
    Retry,
    State,
)
from attention_queue.contract.operation import Kind
from attention_queue.ports import Engine
from contract.orders import complete, die
from contract.stage import LEASE, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A = shop("a")
BROKEN = Failure("ValueError", "no such order", "Traceback")


def ledger(stage: Stage, *names: str) -> dict[str, int]:
    """The names asked for, or all that are not of cycles."""
    found = dict(stage.rows("SELECT name, value FROM ledger ORDER BY name"))
    if names:
        return {name: found.get(name, 0) for name in names}
    return {name: value for name, value in found.items() if not name.startswith("cycles_")}


def stats(stage: Stage, resource: Resource = A) -> dict[str, float]:
    """The resource's totals, with what its request has counted in since the last cycle."""
    columns = ("arrived", "done", "failed", "dead", "arrival", "service")
    (row,) = stage.rows(
        f"SELECT {', '.join('s.' + c for c in columns)}, coalesce(a.arrived, 0) FROM stats s "
        "JOIN resource r ON r.rid = s.rid LEFT JOIN attention a ON a.rid = s.rid WHERE r.id = ?",
        resource.id,
    )
    found = dict(zip(columns, row, strict=False))
    return {**found, "arrived": found["arrived"] + row[-1]}


def totals(stage: Stage) -> tuple[float, ...]:
    found = stats(stage)
    return tuple(found[name] for name in ("arrived", "done", "failed", "dead"))


def cycles(stage: Stage) -> list[tuple[str, int]]:
    ((text,),) = stage.rows("SELECT cycles FROM stats")
    return [(end, handled) for _at, end, handled, _took in json.loads(text)]


async def test_publishes_are_entered_with_what_coalesced_and_what_was_there(stage: Stage) -> None:
    await stage.open()

    await stage.put(*messages(A, 2), message(shop("b"), "b"))
    await stage.put(message(A, "a-1"), message(A, "a-3"))

    assert ledger(stage) == {
        "messages_published": 4,
        "messages_duplicate": 1,
        "requests_published": 2,
        "requests_coalesced": 1,
    }
    await stage.serve()


async def test_a_request_with_nothing_to_take_is_entered_as_wasted(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    stage.rows("DELETE FROM message")

    assert await stage.serve() == []

    assert ledger(stage, "requests_wasted") == {"requests_wasted": 1}


@pytest.mark.parametrize("state", [State.PAUSED, State.CREDENTIALS_ERROR])
async def test_a_request_that_is_discarded_is_entered_with_the_state(
    stage: Stage, state: State
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    await stage.set_state(A, state)

    await stage.serve()

    name = f"requests_discarded_{state.value}"
    assert ledger(stage, name) == {name: 1}


async def test_a_block_is_entered_with_its_limit(stage: Stage) -> None:
    await stage.open(rates={"resource": Rate(1, 3600 * SECOND)}, max_messages=1)
    await stage.put(*messages(A, 2))

    await stage.serve()

    assert ledger(stage, "requests_blocked_rate", "requests_republished") == {
        "requests_blocked_rate": 1,
        "requests_republished": 1,
    }


async def test_a_request_that_stands_again_is_entered_with_its_reason(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(*messages(A, 2))
    more = await stage.begin_one()
    await stage.finish(more, [(more.loan[0], DONE)])
    later = await stage.begin_one()
    await stage.finish(later, [(later.loan[0], Retry(after=SECOND))])
    names = [f"requests_republished{why}" for why in ("", "_more", "_later")]
    assert ledger(stage, *names) == {
        "requests_republished": 2,
        "requests_republished_more": 1,
        "requests_republished_later": 1,
    }


async def test_what_is_settled_is_entered_by_outcome(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 4))
    begun = await stage.begin_one()
    first, second, third, fourth = begun.loan

    await stage.engine.settle(begun, [(first, DONE), (second, Reject("bad", BROKEN))])
    await stage.finish(begun, [(third, Retry(after=SECOND)), (fourth, DONE)])

    names = ("messages_done", "messages_retried", "messages_dead", "cycles_messages")
    assert tuple(ledger(stage, *names).values()) == (2, 1, 1, 1)
    assert totals(stage) == (4, 2, 1, 1)


async def test_arrivals_are_counted_however_the_request_stood(stage: Stage, passes: Passes) -> None:
    await stage.open()
    later = stage.clock.now() + 60 * SECOND
    await stage.put(message(A, "asks", not_before=later))
    await stage.put(message(A, "counted in", not_before=later))
    await stage.put(message(A, "pulls forward"))

    await stage.serve()
    await stage.put(message(A, "pulls again"))

    assert totals(stage) == (4, 1, 0, 0)
    await stage.serve()
    passes(60 * SECOND)
    await stage.serve()
    assert totals(stage) == (4, 4, 0, 0)


async def test_outcomes_that_are_told_twice_are_entered_once(stage: Stage) -> None:
    """The answer to the first was lost, so the finish says them again."""
    await stage.open()
    await stage.put(*messages(A, 3))
    begun = await stage.begin_one()
    verdicts = [
        (begun.loan[0], Retry(after=SECOND, failure=BROKEN)),
        (begun.loan[1], Reject("bad", BROKEN)),
        (begun.loan[2], DONE),
    ]

    await stage.engine.settle(begun, verdicts)
    await stage.finish(begun, verdicts)

    assert totals(stage) == (3, 1, 1, 1)
    assert stage.rows("SELECT failed FROM message") == [(1,)]


async def test_in_strict_order_a_retry_that_is_told_twice_is_one_attempt(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(order=Order.STRICT)
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    verdicts = [(begun.loan[0], Retry(after=SECOND, failure=BROKEN))]

    await stage.engine.settle(begun, verdicts)
    await stage.finish(begun, verdicts, CycleEnd.HEAD, not_before=SECOND, hold=Hold.HEAD)

    ((failed, history),) = stage.rows("SELECT failed, history FROM message")
    assert (failed, len(json.loads(history))) == (1, 1)
    assert totals(stage) == (1, 0, 1, 0)
    passes(SECOND)
    await stage.serve()


async def test_the_death_of_a_holder_is_entered_as_what_it_was(
    stage: Stage, passes: Passes
) -> None:
    """The first only makes it a suspect; the next is charged; the last makes it a dead letter."""
    await stage.open(max_crashes=2)
    await stage.put(message(A, "1"))

    for _ in range(3):
        await stage.begin_one()
        passes(LEASE)
    assert await stage.serve() == []

    assert [letter["reason"] for letter in stage.dead()] == ["poison"]
    assert totals(stage) == (1, 0, 1, 1)
    assert ledger(stage, "messages_dead") == {"messages_dead": 1}


async def test_the_totals_are_right_after_a_crash(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(A, 5))
    crashed = await stage.begin_one(take=3)
    await stage.engine.settle(crashed, done(crashed.loan[:1]))

    passes(LEASE)
    handled = await stage.serve()

    assert len(handled) == 4
    assert totals(stage) == (5, 5, 0, 0)


async def test_a_finish_that_is_fenced_out_enters_nothing(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    late = await stage.begin_one()
    passes(LEASE)
    assert await stage.serve() == ["1"]
    before = (totals(stage), ledger(stage), cycles(stage))

    with pytest.raises(Exception, match="lease"):
        await stage.finish(late, done(late.loan))

    assert (totals(stage), ledger(stage), cycles(stage)) == before


async def test_dead_letters_of_expiry_and_retirement_are_entered(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(ttl=SECOND)
    await stage.put(message(A, "expires"))
    passes(2 * SECOND)
    await stage.serve()
    await stage.put(message(A, "retires"))

    await complete(stage, Kind.RETIRE, resource=A)

    assert totals(stage) == (2, 0, 0, 2)
    assert ledger(stage, "messages_dead") == {"messages_dead": 2}


async def test_discarded_and_redriven_messages_are_entered(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")
    await complete(stage, Kind.REDRIVE, resource=A)

    await complete(stage, Kind.DISCARD, resource=A)

    assert totals(stage) == (2, 0, 0, 1)
    assert ledger(stage, "messages_discarded", "messages_redriven") == {
        "messages_discarded": 1,
        "messages_redriven": 1,
    }


async def test_rates_are_of_about_the_last_minute(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(A, 60))
    await stage.serve()
    busy = stats(stage)

    passes(60 * SECOND)
    await stage.put(message(A, "one"))
    await stage.serve()
    quiet = stats(stage)

    assert (busy["arrival"], busy["service"]) == (pytest.approx(1), pytest.approx(1))
    assert quiet["arrival"] == quiet["service"] == pytest.approx(math.exp(-1) + 1 / 60)


async def test_the_newest_eight_cycles_are_kept_with_their_ends(stage: Stage) -> None:
    await stage.open(max_messages=2)
    await stage.put(*messages(A, 16))
    for _ in range(7):
        begun = await stage.begin_one()
        await stage.finish(begun, done(begun.loan))
    begun = await stage.begin_one()
    await stage.finish(begun, done(begun.loan[:1]), CycleEnd.YIELDED)

    await stage.finish(last := await stage.begin_one(), done(last.loan), CycleEnd.DRAINED)

    assert ids(last.loan) == ["a-16"]
    assert cycles(stage) == [("messages", 2)] * 6 + [("yielded", 1), ("drained", 1)]
