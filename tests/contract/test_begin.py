"""Beginning: request, record, token and first messages in one step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, Hold, Plan, Policy, State
from attention_queue.contract.events import CycleStarted, RequestBlocked, RequestWasted
from attention_queue.errors import ContractError
from attention_queue.ports import Declined, Engine
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]


async def test_what_is_begun_has_its_record_a_token_and_messages(stage: Stage) -> None:
    await stage.open(max_messages=7)
    await stage.register(shop("a"), routing={"marketplace": "amazon"})
    await stage.put(*messages(shop("a"), 3))

    begun = await stage.begin_one(owner="w1")

    assert (begun.group, begun.resource, begun.plan) == ("shops", shop("a"), "plain")
    assert begun.policy == Policy(max_messages=7, lease=LEASE)
    assert begun.routing == {"marketplace": "amazon"}
    assert (begun.token.slot, begun.token.owner) == (0, "w1")
    assert begun.token.until == stage.clock.now() + LEASE
    assert ids(begun.loan) == ["a-1", "a-2", "a-3"]
    assert (begun.extra, begun.backlog, begun.lost) == (False, 3, False)
    await stage.finish(begun)


async def test_the_wait_of_a_request_is_counted_from_when_it_could_be_taken(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1", not_before=stage.clock.now() + SECOND))
    passes(3 * SECOND)

    begun = await stage.begin_one()

    assert begun.waited == 2.0
    assert [event.waited for event in stage.of(CycleStarted)] == [2.0]
    await stage.finish(begun)


async def test_nothing_is_due_is_an_empty_answer(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1", not_before=stage.clock.now() + SECOND))

    assert await stage.look() == []
    passes(SECOND)
    assert await stage.serve() == ["1"]


async def test_a_group_that_nobody_opened_is_refused(stage: Stage) -> None:
    with pytest.raises(ContractError, match="no group 'nowhere'"):
        await stage.look(groups=("nowhere",))


async def test_slots_are_unique_and_the_smallest_free_one_is_given(
    stage: Stage, engines: Engines
) -> None:
    await stage.open(max_consumers=3, max_messages=2)
    await stage.put(*messages(shop("a"), 20))

    held = [await stage.begin_one(engine=engines[n % 2], limit=8) for n in range(3)]
    await stage.finish(held[1])
    again = await stage.begin_one(engine=engines[1])

    assert [begun.token.slot for begun in held] == [0, 1, 2]
    assert again.token.slot == 1
    assert len({begun.token.fence for begun in (*held, again)}) == 4
    for begun in (held[0], held[2], again):
        await stage.finish(begun)


async def test_two_workers_of_one_name_never_hold_one_token(stage: Stage, engines: Engines) -> None:
    await stage.open(max_consumers=1)
    await stage.put(*messages(shop("a"), 3))

    first = await stage.look(engine=engines[0], owner="worker")
    second = await stage.look(engine=engines[1], owner="worker")

    assert (len(first), len(second)) == (1, 0)
    await stage.finish(first[0])


async def test_fences_only_grow(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(*messages(shop("a"), 5))
    fences = []

    for _ in range(5):
        begun = await stage.begin_one(take=1)
        fences.append(begun.token.fence)
        await stage.finish(begun, done(begun.loan))

    assert fences == sorted(set(fences))


async def test_fifty_looks_claim_one_request_once(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))

    found = [await stage.begin(owner=f"w{n}", engine=engines[n % 2]) for n in range(50)]

    (begun,) = [each for some in found for each in some]
    await stage.finish(begun, done(begun.loan))
    assert await stage.look() == []


async def test_busy_parks_until_the_first_lease_ends(stage: Stage) -> None:
    await stage.open(max_consumers=2, max_messages=1)
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()
    await stage.put(message(shop("a"), "new"))

    (declined,) = await stage.look(extra=0)

    assert declined == Declined("shops", shop("a"), Hold.BUSY, stage.clock.now() + LEASE)
    assert len(stage.of(RequestBlocked)) == 1
    assert await stage.look(extra=0) == []
    await stage.finish(begun)


async def test_a_release_wakes_what_busy_has_parked_and_no_timer_is_needed(stage: Stage) -> None:
    await stage.open(max_consumers=1)
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    assert await stage.look() == []

    await stage.finish(begun, done(begun.loan))

    assert await stage.serve() == ["a-2"]


async def test_a_request_without_work_is_wasted_and_gone(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    stage.rows("DELETE FROM message")
    stage.rows("UPDATE attention SET backlog = 0")

    found = await stage.look()

    assert found == []
    assert len(stage.of(RequestWasted)) == 1
    assert stage.requests() == 0


async def test_an_override_that_no_longer_fits_its_plan_stops_nobody(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("broken"), "1"), message(shop("good"), "2"))
    broken = '[{"changes": {"max_messages": 0}}]'
    stage.rows("UPDATE resource SET overrides = ? WHERE id = 'broken'", broken)

    assert sorted(await stage.serve()) == ["1", "2"]


async def test_what_is_not_active_is_declined_with_the_state(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    until = stage.clock.now() + 60 * SECOND
    await stage.set_state(shop("a"), State.PAUSED, until=until)

    (declined,) = await stage.look()

    assert declined == Declined("shops", shop("a"), State.PAUSED, until)


async def test_plans_of_one_group_have_their_own_limits(stage: Stage) -> None:
    plans = (Plan("one", Policy(max_messages=1)), Plan("two", Policy(max_messages=2)))
    await stage.open(plans=plans)
    await stage.register(shop("b"), plan="two")
    await stage.put(*messages(shop("a"), 3), *messages(shop("b"), 3))

    first, second = await stage.begin()

    assert (len(first.loan), first.plan) == (1, "one")
    assert (len(second.loan), second.plan) == (2, "two")
    await stage.finish(first, done(first.loan))
    await stage.finish(second, done(second.loan))


async def test_a_lease_that_ended_is_taken_over_by_the_next_look(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    dead = await stage.begin_one()

    passes(LEASE - MS)
    early = await stage.look()
    passes(MS)
    successor = await stage.begin_one()

    assert early == []
    assert successor.token.slot == dead.token.slot == 0
    await stage.finish(successor, done(successor.loan), end=CycleEnd.DRAINED)
