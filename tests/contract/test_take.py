"""Loans: which messages a cycle gets, in which order, and what nobody else may take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import DONE, CycleEnd, Hold, Order, Rate, Retry
from attention_queue.ports import Begun, Declined
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]


async def test_the_loans_of_all_slots_are_disjoint_and_cover_the_backlog(stage: Stage) -> None:
    await stage.open(max_consumers=4, max_messages=3)
    await stage.put(*messages(shop("a"), 12))

    held = [begun for _ in range(4) for begun in await stage.begin(limit=4)]

    assert [len(begun.loan) for begun in held] == [3, 3, 3, 3]
    assert sorted(i for begun in held for i in ids(begun.loan)) == sorted(
        f"a-{n}" for n in range(1, 13)
    )
    for begun in held:
        await stage.finish(begun, done(begun.loan))


async def test_more_is_taken_around_the_loans_of_others(stage: Stage) -> None:
    await stage.open(max_consumers=2, max_messages=100)
    await stage.put(*messages(shop("a"), 8))
    first = await stage.begin_one(take=2)
    await stage.put(message(shop("a"), "nudge"))
    second = await stage.begin_one(take=2)

    more = await stage.engine.settle(first, done(first.loan), take=4)

    assert ids(second.loan) == ["a-3", "a-4"]
    assert ids(more) == ["a-5", "a-6", "a-7", "a-8"]
    await stage.finish(first, done(more))
    await stage.finish(second, done(second.loan))
    assert await stage.serve() == ["nudge"]


async def test_a_returned_loan_is_taken_again_before_what_is_behind_it(stage: Stage) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("a"), 6))
    first = await stage.begin_one(take=2)
    await stage.put(message(shop("a"), "nudge"))
    second = await stage.begin_one(take=2)
    await stage.finish(first)

    again = await stage.begin_one(take=3)

    assert ids(again.loan) == ["a-1", "a-2", "a-5"]
    await stage.finish(again, done(again.loan))
    assert stage.rows("SELECT count(*) FROM message") == [(4,)]
    await stage.finish(second, done(second.loan))


async def test_what_comes_while_a_loan_is_out_is_never_settled_with_it(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()
    await stage.put(*messages(shop("a"), 2, start=4))

    await stage.finish(begun, done(begun.loan))

    assert await stage.serve() == ["a-4", "a-5"]


async def test_delayed_messages_that_fell_due_come_before_the_others(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    now = stage.clock.now()
    await stage.put(
        message(shop("a"), "now"),
        message(shop("a"), "second", not_before=now + 2 * SECOND),
        message(shop("a"), "first", not_before=now + SECOND),
        message(shop("a"), "never", not_before=now + timedelta(days=1)),
    )
    passes(2 * SECOND)

    begun = await stage.begin_one()

    assert ids(begun.loan) == ["first", "second", "now"]
    await stage.finish(begun, done(begun.loan))


async def test_a_retried_message_comes_back_at_its_millisecond(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    await stage.finish(begun, [(begun.loan[0], Retry(1500 * MS))])

    passes(1499 * MS)
    early = await stage.serve()
    passes(MS)
    again = await stage.begin_one()

    assert early == []
    assert [(d.message.id, d.attempt) for d in again.loan] == [("1", 2)]
    await stage.finish(again, done(again.loan))


async def test_a_message_retried_into_anothers_loan_is_late_but_never_lost(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_consumers=2)
    moment = stage.clock.now() + SECOND
    await stage.put(message(shop("a"), "d-1", not_before=moment), message(shop("a"), "now"))
    await stage.put(message(shop("a"), "d-2", not_before=moment))
    first = await stage.begin_one(limit=2)
    passes(SECOND)
    await stage.put(message(shop("a"), "nudge"))
    second = await stage.begin_one(take=2)
    assert (ids(first.loan), ids(second.loan)) == (["now"], ["d-1", "d-2"])

    await stage.finish(first, [(first.loan[0], Retry(timedelta(0)))])
    await stage.finish(second, done(second.loan))

    assert await stage.serve() == ["now", "nudge"]


async def test_what_a_dead_holder_had_comes_back_one_at_a_time(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    await stage.begin_one()
    passes(LEASE)
    await stage.put(message(shop("a"), "new"))

    begun = await stage.begin_one()
    taken = [ids(begun.loan)]
    loan = begun.loan
    for _ in range(3):
        loan = list(await stage.engine.settle(begun, done(loan), take=10))
        taken.append(ids(loan))

    assert taken == [["a-1"], ["a-2"], ["a-3"], ["new"]]
    assert begun.loan[0].suspect
    assert not loan[0].suspect
    await stage.finish(begun, done(loan))


async def test_a_rate_lends_what_it_allows_and_no_more(stage: Stage, passes: Passes) -> None:
    await stage.open(rates={"resource": Rate(5)})
    await stage.put(*messages(shop("a"), 20))

    begun = await stage.begin_one()
    first = len(begun.loan)
    more = await stage.engine.settle(begun, done(begun.loan), take=10)

    assert (first, len(more)) == (5, 0)
    assert begun.limited is not None
    assert timedelta(0) < begun.limited <= 201 * MS
    await stage.finish(begun, end=CycleEnd.RATE, not_before=begun.limited, hold=Hold.RATE)
    assert await stage.look() == []
    passes(begun.limited)
    assert len(await stage.serve()) == 1


async def test_an_empty_bucket_holds_the_request_until_it_fills(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(rates={"resource": Rate(2)})
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()
    await stage.finish(begun, done(begun.loan))

    (declined,) = await stage.look()

    assert isinstance(declined, Declined)
    assert declined.why is Hold.RATE
    passes(declined.until - stage.clock.now() - MS)
    assert await stage.look() == []
    passes(MS)
    assert await stage.serve() == ["a-3"]


async def test_what_was_not_handled_is_given_back_to_the_rate(stage: Stage) -> None:
    await stage.open(rates={"resource": Rate(5)})
    await stage.put(*messages(shop("a"), 9))
    begun = await stage.begin_one()

    await stage.finish(begun, done(begun.loan[:2]))

    again = await stage.begin_one()
    assert len(again.loan) == 3
    await stage.finish(again)


async def test_a_rate_of_a_routing_value_is_shared_by_all_its_resources(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(rates={"routing.marketplace": Rate(5)})
    for name, place in (("a", "amazon"), ("b", "amazon"), ("c", "ebay")):
        await stage.register(shop(name), routing={"marketplace": place})
        await stage.put(*messages(shop(name), 4))

    served = await stage.serve()

    assert sum(i.startswith(("a-", "b-")) for i in served) == 5
    assert sum(i.startswith("c-") for i in served) == 4
    passes(SECOND)
    assert len(await stage.serve()) == 3


async def test_a_resource_without_the_routing_value_is_not_limited_by_it(stage: Stage) -> None:
    await stage.open(rates={"routing.marketplace": Rate(1)})
    await stage.put(*messages(shop("a"), 4))

    assert len(await stage.serve()) == 4


async def test_empty_is_only_said_when_nothing_is_due(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)

    second = await stage.engine.settle(begun, done(begun.loan), take=1)
    await stage.put(message(shop("a"), "late"))
    third = await stage.engine.settle(begun, done(second), take=1)
    fourth = await stage.engine.settle(begun, done(third), take=1)

    assert [ids(loan) for loan in (second, third, fourth)] == [["a-2"], ["late"], []]
    assert not (await stage.finish(begun)).republished


async def test_strict_a_retried_head_keeps_its_place_and_holds_the_rest(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(order=Order.STRICT)
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()

    await _hold_back(stage, begun, 10 * SECOND)
    passes(10 * SECOND - MS)
    early = await stage.look()
    passes(MS)
    again = await stage.begin_one()

    assert early == []
    assert [(d.message.id, d.attempt) for d in again.loan] == [("a-1", 2), ("a-2", 1), ("a-3", 1)]
    await stage.finish(again, done(again.loan))


async def _hold_back(stage: Stage, begun: Begun, wait: timedelta) -> None:
    outcomes = [(begun.loan[0], Retry(wait))]
    await stage.finish(begun, outcomes, CycleEnd.HEAD, not_before=wait, hold=Hold.HEAD)


async def test_relaxed_the_rest_goes_on_while_one_waits_for_its_retry(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one(take=1)

    await stage.finish(begun, [(begun.loan[0], Retry(10 * SECOND))])

    assert await stage.serve() == ["a-2", "a-3"]


async def test_no_more_bytes_are_on_loan_than_four_mebibytes_and_one_message(stage: Stage) -> None:
    await stage.open(max_messages=100)
    big = b"x" * 256 * 1024
    await stage.put(*(message(shop("a"), str(n), payload=big) for n in range(40)))

    begun = await stage.begin_one()

    assert sum(len(d.message.payload) for d in begun.loan) <= 4 * 1024 * 1024 + len(big)
    await stage.finish(begun, [(d, DONE) for d in begun.loan])
    assert len(await stage.serve()) == 40 - len(begun.loan)
