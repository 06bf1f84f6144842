"""Leases: who renews keeps its token; who dies loses it, and its work comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract.events import LoansRescued, TokensRenewed, TokenWasLost
from attention_queue.errors import TokenLost
from attention_queue.ports import Declined, Engine
from contract.stage import LEASE, MS, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]


async def test_a_renewed_lease_outlives_its_first_end(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    for _ in range(60):  # ten minutes with a lease of thirty seconds
        passes(LEASE / 3)
        assert await stage.engine.renew([begun]) == []
        assert not [f for f in await stage.look() if not isinstance(f, Declined)]

    assert len(stage.of(TokensRenewed)) == 60
    assert stage.of(LoansRescued) == []
    await stage.finish(begun, done(begun.loan))
    assert await stage.serve() == []


async def test_a_lease_that_was_taken_over_is_told_as_lost(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 1), *messages(shop("b"), 1))
    late, other = await stage.begin()
    passes(LEASE)
    await stage.engine.renew([other])
    successor = await stage.begin_one()

    lost = await stage.engine.renew([late, other])

    assert lost == [late]
    assert [event.fence for event in stage.of(TokenWasLost)] == [late.token.fence]
    await stage.finish(successor, done(successor.loan))
    await stage.finish(other, done(other.loan))


async def test_the_work_of_a_dead_holder_comes_back_by_itself(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    await stage.begin_one()

    passes(LEASE)

    assert await stage.serve() == ["a-1", "a-2", "a-3"]
    assert stage.of(LoansRescued) == [LoansRescued("shops", shop("a"), 3, 0)]


async def test_what_came_while_the_dead_one_held_its_token_comes_too(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.begin_one()
    await stage.put(message(shop("a"), "2"))

    passes(LEASE)

    assert await stage.serve() == ["1", "2"]


async def test_nothing_about_a_worker_is_needed_to_rescue_its_work(
    stage: Stage, passes: Passes, engines: Engines
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    dead = await stage.begin_one(owner="worker", engine=engines[0])
    passes(LEASE)

    again = await stage.begin_one(owner="worker", engine=engines[1])  # the same name, started anew

    assert ids(again.loan) == ["1"]
    assert await engines[0].renew([dead]) == [dead]
    with pytest.raises(TokenLost):
        await stage.finish(dead, done(dead.loan))
    await stage.finish(again, done(again.loan))


async def test_dying_with_many_in_hand_charges_none_of_them(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    await stage.begin_one()
    passes(LEASE)

    begun = await stage.begin_one()

    assert [(d.message.id, d.attempt, d.suspect) for d in begun.loan] == [("a-1", 1, True)]
    await stage.finish(begun, done(begun.loan))
    assert stage.rows("SELECT id, failed, crashes FROM message ORDER BY seq") == [
        ("a-2", 0, 0),
        ("a-3", 0, 0),
    ]


async def test_only_a_death_with_one_suspect_in_hand_is_charged(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    await stage.begin_one()
    passes(LEASE)
    await stage.begin_one()
    passes(LEASE)

    begun = await stage.begin_one()

    assert [event.charged for event in stage.of(LoansRescued)] == [0, 1]
    assert [(d.message.id, d.attempt) for d in begun.loan] == [("a-1", 2)]
    await stage.finish(begun, done(begun.loan))
    again = await stage.begin_one()
    assert [(d.message.id, d.attempt) for d in again.loan] == [("a-2", 1)]
    await stage.finish(again, done(again.loan))


async def test_the_message_that_kills_ends_in_the_dead_letters_and_its_neighbours_lose_nothing(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_crashes=3)
    await stage.put(message(shop("a"), "good-1"), message(shop("a"), "poison"))
    await stage.put(message(shop("a"), "good-2"))
    handled: list[str] = []

    for _ in range(20):
        for begun in await stage.begin():
            if "poison" in ids(begun.loan):
                passes(LEASE)  # the process died with the loan in hand
                continue
            handled += ids(begun.loan)
            await stage.finish(begun, done(begun.loan))

    assert handled == ["good-1", "good-2"]
    (dead,) = stage.dead()
    assert (dead["id"], dead["reason"], dead["attempts"]) == ("poison", "poison", 3)
    assert stage.requests() == 0


async def test_a_suspect_that_is_settled_is_a_suspect_no_more(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    await stage.begin_one()
    passes(LEASE)

    served = await stage.serve()
    await stage.put(*messages(shop("a"), 2, start=7))
    begun = await stage.begin_one()

    assert served == ["a-1", "a-2", "a-3"]
    assert len(begun.loan) == 2
    await stage.finish(begun, done(begun.loan))


async def test_the_loan_of_a_live_slot_is_untouched_by_the_death_of_another(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("a"), 4))
    live = await stage.begin_one(take=2)
    await stage.put(message(shop("a"), "nudge"))
    dead = await stage.begin_one(take=2)
    passes(LEASE - MS)
    await stage.engine.renew([live])
    passes(MS)

    again = await stage.begin_one()

    assert again.token.slot == dead.token.slot
    assert [(d.message.id, d.suspect) for d in again.loan] == [("a-3", True)]
    await stage.finish(live, done(live.loan))
    await stage.finish(again, done(again.loan))
    assert await stage.serve() == ["a-4", "nudge"]


async def test_lowering_the_limit_takes_nothing_from_its_holders(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_consumers=3, max_messages=2)
    await stage.put(*messages(shop("a"), 9))
    held = [begun for _ in range(3) for begun in await stage.begin()]
    assert len(held) == 3

    await stage.set_policy(max_consumers=1, max_messages=2)

    assert await stage.engine.renew(held) == []
    await stage.finish(held[0], done(held[0].loan))
    assert [type(found) for found in await stage.look()] == [Declined]
    await stage.finish(held[1], done(held[1].loan))
    assert [type(found) for found in await stage.look()] == [Declined]
    await stage.finish(held[2], done(held[2].loan))
    assert len(await stage.begin()) == 1
    assert await stage.begin() == []
    passes(LEASE)


async def test_raising_the_limit_acts_at_once(stage: Stage) -> None:
    await stage.open(max_consumers=1, max_messages=2)
    await stage.put(*messages(shop("a"), 9))
    first = await stage.begin_one(limit=4)
    assert await stage.look() == []

    await stage.set_policy(max_consumers=3, max_messages=2)

    others = [begun for _ in range(3) for begun in await stage.begin()]
    assert [begun.token.slot for begun in (first, *others)] == [0, 1, 2]
    for begun in (first, *others):
        await stage.finish(begun, done(begun.loan))


async def test_more_consumers_are_invited_while_a_slot_is_free(stage: Stage) -> None:
    await stage.open(max_consumers=2, max_messages=2)
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    stage.rows("UPDATE attention SET hold_why = 'busy', hold_ms = due_ms")
    await stage.put(*messages(shop("a"), 4, start=3))
    assert await stage.look() == []

    more = await stage.engine.settle(begun, done(begun.loan), take=1, invite=True)

    (second,) = await stage.begin()
    assert second.extra
    await stage.finish(begun, done(more))
    await stage.finish(second, done(second.loan))


async def test_the_first_lease_that_ends_frees_its_loan_whoever_else_renews(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("a"), 4))
    await stage.begin_one(take=2)
    passes(LEASE / 2)
    await stage.put(message(shop("a"), "nudge"))
    live = await stage.begin_one(take=3)
    passes(LEASE / 2)

    again = await stage.begin_one()

    assert ids(again.loan) == ["a-1"]
    await stage.finish(again, done(again.loan))
    await stage.finish(live, done(live.loan))
    assert await stage.serve() == ["a-2"]
