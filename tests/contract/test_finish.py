"""Finishing: outcomes, release, THEN look, ask, and the request last; one step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, Hold, Priority, ResourceState, Retry, State
from attention_queue.contract.events import CycleFinished, StateChanged
from attention_queue.contract.operation import Kind
from attention_queue.ports import Left
from contract.orders import start
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]


async def test_a_drained_resource_leaves_no_request_and_no_token(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    left = await stage.finish(begun, done(begun.loan), CycleEnd.DRAINED)

    assert left == Left(0, False)
    assert stage.requests() == 0
    assert stage.rows("SELECT count(*) FROM token") == [(0,)]
    (event,) = stage.of(CycleFinished)
    assert (event.end, event.handled, event.backlog) == (CycleEnd.DRAINED, 1, 0)


async def test_what_is_left_asks_again_at_the_tail(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one(take=1)
    await stage.put(message(shop("b"), "b-1"))

    left = await stage.finish(begun, done(begun.loan))

    assert left == Left(2, True)
    assert await stage.serve(limit=1) == ["b-1", "a-2", "a-3"]


async def test_work_that_came_during_the_cycle_is_seen_by_the_look(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    await stage.put(message(shop("a"), "2"))

    left = await stage.finish(begun, done(begun.loan), CycleEnd.DRAINED)

    assert left == Left(1, True)
    assert await stage.serve() == ["2"]


async def test_a_loan_that_was_not_handled_comes_back_without_an_attempt(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one()

    await stage.finish(begun, done(begun.loan[:1]), CycleEnd.SHUTDOWN)

    again = await stage.begin_one()
    assert [(d.message.id, d.attempt, d.suspect) for d in again.loan] == [
        ("a-2", 1, False),
        ("a-3", 1, False),
    ]
    await stage.finish(again, done(again.loan))


async def test_delayed_work_leaves_a_request_for_its_moment(stage: Stage, passes: Passes) -> None:
    await stage.open()
    moment = stage.clock.now() + 60 * SECOND
    await stage.put(message(shop("a"), "1"), message(shop("a"), "late", not_before=moment))
    begun = await stage.begin_one()
    assert ids(begun.loan) == ["1"]

    left = await stage.finish(begun, done(begun.loan), CycleEnd.DRAINED)

    assert left == Left(1, True)
    passes(60 * SECOND - MS)
    assert await stage.look() == []
    passes(MS)
    assert await stage.serve() == ["late"]


async def test_the_request_stays_while_another_slot_is_held(stage: Stage, passes: Passes) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("a"), 4))
    first = await stage.begin_one(take=2)
    await stage.put(message(shop("a"), "nudge"))
    second = await stage.begin_one()

    left = await stage.finish(second, done(second.loan), CycleEnd.DRAINED)

    assert left == Left(2, True)
    assert await stage.look() == []
    passes(LEASE)  # its holder is dead: nobody looks, and nobody publishes
    assert await stage.serve() == ids(first.loan)


@pytest.mark.parametrize("hold", [Hold.RATE, Hold.STOP, Hold.HEAD])
async def test_a_hold_keeps_the_resource_alone_until_its_millisecond(
    stage: Stage, passes: Passes, hold: Hold
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)

    await stage.finish(begun, done(begun.loan), not_before=SECOND, hold=hold)

    passes(SECOND - MS)
    assert await stage.look() == []
    passes(MS)
    assert await stage.serve() == ["a-2"]


@pytest.mark.parametrize("hold", [Hold.RATE, Hold.STOP])
async def test_the_hold_of_one_slot_is_not_undone_by_the_release_of_another(
    stage: Stage, passes: Passes, hold: Hold
) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("a"), 6))
    first = await stage.begin_one(take=2)
    await stage.put(message(shop("a"), "nudge"))
    second = await stage.begin_one(take=2)
    await stage.finish(first, not_before=10 * SECOND, hold=hold)

    await stage.finish(second, done(second.loan))

    passes(10 * SECOND - MS)
    assert await stage.look() == []
    passes(MS)
    assert await stage.serve() == ["a-1", "a-2", "a-5", "a-6", "nudge"]


async def test_a_hold_without_work_left_leaves_no_request(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    left = await stage.finish(begun, done(begun.loan), not_before=SECOND, hold=Hold.RATE)

    assert left == Left(0, False)
    assert stage.requests() == 0


async def test_a_state_that_a_handler_sets_stops_the_resource_and_keeps_its_work(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    state = ResourceState(State.CREDENTIALS_ERROR, "401", "handler")

    left = await stage.finish(
        begun, end=CycleEnd.STOPPED, not_before=SECOND, hold=Hold.STOP, state=state
    )

    assert left == Left(2, True)
    assert await stage.serve() == []
    assert [event.state for event in stage.of(StateChanged)] == [State.CREDENTIALS_ERROR]
    await stage.set_state(shop("a"), State.ACTIVE)
    assert await stage.serve() == ["a-1", "a-2"]


async def test_a_state_with_an_end_brings_the_resource_back_by_itself(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    until = stage.clock.now() + 60 * SECOND
    state = ResourceState(State.CREDENTIALS_ERROR, "401", "handler", until)
    await stage.finish(begun, not_before=SECOND, hold=Hold.STOP, state=state)

    passes(60 * SECOND - MS)
    early = await stage.serve()
    passes(MS)

    assert early == []
    assert await stage.serve() == ["1"]


@pytest.mark.parametrize("set_by_a_person", [State.RETIRING, State.PAUSED])
async def test_a_handler_undoes_no_state_that_a_person_has_set_meanwhile(
    stage: Stage, set_by_a_person: State
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    if set_by_a_person is State.RETIRING:
        await start(stage, Kind.RETIRE, resource=shop("a"))
    else:
        await stage.set_state(shop("a"), set_by_a_person)

    state = ResourceState(State.CREDENTIALS_ERROR, "401", "handler")
    await stage.finish(begun, not_before=SECOND, hold=Hold.STOP, state=state)

    assert stage.rows("SELECT state FROM resource") == [(set_by_a_person.value,)]


async def test_a_pause_during_the_cycle_keeps_what_is_left(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one()
    await stage.set_state(shop("a"), State.PAUSED)

    left = await stage.finish(begun, done(begun.loan[:1]), CycleEnd.STATE)

    assert left == Left(1, True)
    assert await stage.look() == []
    await stage.set_state(shop("a"), State.ACTIVE)
    assert await stage.serve() == ["a-2"]


async def test_a_lost_request_is_mended_by_the_look(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    begun = await stage.begin_one(take=1)
    stage.rows("DELETE FROM attention")

    left = await stage.finish(begun, done(begun.loan))

    assert left == Left(2, True)
    assert await stage.serve() == ["a-2", "a-3"]


async def test_a_raised_class_is_for_one_request_and_the_next_is_the_plans(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(message(shop("a"), "a-1", priority=Priority.HIGH), message(shop("a"), "a-2"))
    await stage.put(message(shop("b"), "b-1"))

    assert await stage.serve(limit=1) == ["a-1", "b-1", "a-2"]


async def test_publishing_just_before_the_end_of_a_cycle_is_never_missed(stage: Stage) -> None:
    await stage.open()
    handled: list[str] = []
    for n in range(300):
        await stage.put(message(shop("a"), f"{n}-first"))
        begun = await stage.begin_one()
        late = message(shop("a"), f"{n}-late")
        if n % 3 == 0:
            await stage.put(late)
        rest = await stage.engine.settle(begun, done(begun.loan), take=10)
        if n % 3 == 1:
            await stage.put(late)
        await stage.finish(begun, done(rest))
        if n % 3 == 2:
            await stage.put(late)
        handled += [*ids(begun.loan), *ids(rest), *await stage.serve()]

    assert len(handled) == len(set(handled)) == 600


async def test_a_failed_message_and_a_new_request_do_not_conflict(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    await stage.put(message(shop("a"), "2"))

    await stage.finish(begun, [(begun.loan[0], Retry(SECOND))])

    assert await stage.serve() == ["2"]
    passes(SECOND)
    assert await stage.serve() == ["1"]
