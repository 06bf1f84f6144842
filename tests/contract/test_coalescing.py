"""Coalescing: a request that stands is used if it is early enough; no hold is pulled through."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, Hold, Priority
from attention_queue.ports import Put
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]


async def test_a_second_publish_finds_the_request_that_stands(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))

    put = await stage.put(message(shop("a"), "2"))

    assert put == Put(stored=1, duplicates=0, requests=0, coalesced=1)
    assert stage.requests() == 1
    assert await stage.serve() == ["1", "2"]


async def test_a_batch_asks_once_for_each_resource(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("b"), "0"))

    put = await stage.put(*messages(shop("a"), 3), *messages(shop("b"), 2))

    assert put == Put(stored=5, duplicates=0, requests=1, coalesced=1)


async def test_an_immediate_publish_is_not_swallowed_by_a_later_request(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    hour = timedelta(hours=1)
    await stage.put(message(shop("a"), "late", not_before=stage.clock.now() + hour))

    put = await stage.put(message(shop("a"), "now"))

    assert put.requests == 1
    assert await stage.serve() == ["now"]
    passes(hour)
    assert await stage.serve() == ["late"]


async def test_a_delayed_publish_pulls_a_later_request_forward_to_its_own_moment(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    now = stage.clock.now()
    await stage.put(message(shop("a"), "late", not_before=now + 60 * SECOND))

    put = await stage.put(message(shop("a"), "sooner", not_before=now + SECOND))

    assert put.requests == 1
    assert await stage.serve() == []
    passes(SECOND)
    assert await stage.serve() == ["sooner"]


async def test_a_later_delayed_publish_leaves_the_request_where_it_is(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    now = stage.clock.now()
    await stage.put(message(shop("a"), "sooner", not_before=now + SECOND))

    put = await stage.put(message(shop("a"), "late", not_before=now + 60 * SECOND))

    assert (put.requests, put.coalesced) == (0, 1)
    passes(SECOND)
    assert await stage.serve() == ["sooner"]


@pytest.mark.parametrize("hold", [Hold.RATE, Hold.STOP, Hold.HEAD])
async def test_a_publish_never_pulls_a_request_through_a_hold(
    stage: Stage, passes: Passes, hold: Hold
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one()
    await stage.finish(begun, end=CycleEnd.STOPPED, not_before=10 * SECOND, hold=hold)

    put = await stage.put(message(shop("a"), "new"))

    assert (put.requests, put.coalesced) == (0, 1)
    assert await stage.look() == []
    passes(10 * SECOND - MS)
    assert await stage.look() == []
    passes(MS)
    assert await stage.serve() == ["a-1", "a-2", "new"]


async def test_a_publish_while_all_tokens_are_out_asks_for_nothing_more(stage: Stage) -> None:
    await stage.open(max_consumers=1)
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    put = await stage.put(message(shop("a"), "2"))

    assert (put.requests, put.coalesced) == (0, 1)
    assert await stage.look() == []
    left = await stage.finish(begun, done(begun.loan))
    assert left.republished
    assert await stage.serve() == ["2"]


async def test_a_publish_after_the_end_of_a_hold_is_served_at_once(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    passes(LEASE + MS)

    await stage.put(message(shop("a"), "2"))

    (successor,) = await stage.begin()
    assert ids(successor.loan) == ["1"]  # a suspect, and suspects come alone
    assert successor.token.fence > begun.token.fence
    await stage.finish(successor, done(successor.loan))
    assert await stage.serve() == ["2"]


async def test_a_publish_of_a_higher_class_raises_the_request_that_stands(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "a"))
    await stage.put(message(shop("b"), "b"))

    await stage.put(message(shop("b"), "urgent", priority=Priority.HIGH))

    assert await stage.serve() == ["b", "urgent", "a"]


async def test_a_publish_of_a_lower_class_lowers_nothing(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "a", priority=Priority.LOW))
    await stage.put(message(shop("b"), "b"))

    assert await stage.serve() == ["a", "b"]
