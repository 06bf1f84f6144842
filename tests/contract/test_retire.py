"""Retirement: no new work, the old to the dead letters, a tombstone; nothing lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, State
from attention_queue.contract.events import DeadLettered, StateChanged
from attention_queue.contract.operation import Kind, Progress
from attention_queue.errors import Conflict, ResourceRetired, TokenLost
from attention_queue.ports import Engine, Nudge
from contract.orders import complete, die, order, run, start, step
from contract.stage import LEASE, MS, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A, B = shop("a"), shop("b")


def dead_ids(stage: Stage) -> list[str]:
    return [letter["id"] for letter in stage.dead()]


def state(stage: Stage) -> str:
    ((state,),) = stage.rows("SELECT state FROM resource WHERE id = 'a'")
    return str(state)


async def test_publishes_are_refused_from_the_start(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await stage.put(message(A, "1"))

    number = await start(stage, Kind.RETIRE, resource=A)

    with pytest.raises(ResourceRetired):
        await engines[1].put("shops", [message(B, "2"), message(A, "3")])
    assert stage.rows("SELECT id FROM message") == [("1",)]
    await run(stage, number)


async def test_what_it_has_goes_to_the_dead_letters_and_a_tombstone_is_left(stage: Stage) -> None:
    await stage.open()
    later = stage.clock.now() + LEASE
    await stage.put(*messages(A, 3), message(A, "delayed", not_before=later), message(B, "b"))

    figures = await complete(stage, Kind.RETIRE, limit=2, resource=A)

    assert (figures.progress, figures.total, figures.done) == (Progress.DONE, 4, 4)
    assert dead_ids(stage) == ["a-1", "a-2", "a-3", "delayed"]
    assert {letter["reason"] for letter in stage.dead()} == {"retired"}
    assert {letter["error_text"] for letter in stage.dead()} == {"asked for"}
    assert [e.message for e in stage.of(DeadLettered)] == dead_ids(stage)
    assert state(stage) == "removed"
    assert stage.of(StateChanged)[-1].state is State.REMOVED
    assert await stage.serve() == ["b"]


async def test_a_retired_resource_is_no_longer_served(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    number = await start(stage, Kind.RETIRE, resource=A)

    assert await stage.serve() == []
    await run(stage, number)
    assert stage.requests() == 0


async def test_it_waits_for_a_live_holder(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(A, 4))
    begun = await stage.begin_one(take=2)
    number = await start(stage, Kind.RETIRE, resource=A)

    first = await step(stage, number)
    assert (first.done, first.progress) == (2, Progress.RUNNING)
    assert await stage.engine.reload(begun) is State.RETIRING
    waiting = await step(stage, number)
    assert waiting.next > stage.clock.now()
    left = await stage.finish(begun, done(begun.loan[:1]), CycleEnd.STATE)
    assert left.backlog == 1
    passes(250 * MS)
    figures = await run(stage, number)

    assert (figures.progress, figures.done) == (Progress.DONE, 3)
    assert dead_ids(stage) == ["a-3", "a-4", "a-2"]


async def test_more_on_loan_than_a_step_sees_does_not_end_it(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(A, 6))
    begun = await stage.begin_one(take=4)
    number = await start(stage, Kind.RETIRE, resource=A)

    for _ in range(3):
        assert (await step(stage, number, limit=2)).progress is Progress.RUNNING
        passes(250 * MS)
    await stage.finish(begun, done(begun.loan), CycleEnd.STATE)
    await run(stage, number, limit=2)

    assert dead_ids(stage) == ["a-5", "a-6"]


async def test_a_dead_holders_token_is_taken_away_after_its_lease(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(*messages(A, 3))
    late = await stage.begin_one(take=2)
    number = await start(stage, Kind.RETIRE, resource=A)
    await step(stage, number)
    passes(LEASE - MS)
    assert (await step(stage, number)).progress is Progress.RUNNING

    passes(250 * MS)
    figures = await run(stage, number)

    assert (figures.progress, dead_ids(stage)) == (Progress.DONE, ["a-3", "a-1", "a-2"])
    with pytest.raises(TokenLost):
        await stage.finish(late, done(late.loan))
    with pytest.raises(TokenLost):
        await stage.engine.settle(late, done(late.loan))


async def test_a_holder_that_renews_keeps_what_it_has(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    begun = await stage.begin_one()
    number = await start(stage, Kind.RETIRE, resource=A)

    for _ in range(3):
        passes(LEASE / 2)
        assert await stage.engine.renew([begun]) == []
        assert (await step(stage, number)).progress is Progress.RUNNING
    await stage.finish(begun, done(begun.loan), CycleEnd.STATE)
    passes(250 * MS)
    await run(stage, number)

    assert dead_ids(stage) == []


async def test_requests_for_tombstones_are_settled(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    await complete(stage, Kind.RETIRE, resource=A)

    await stage.engine.change(Nudge(group="shops", resource=A), actor="ann")
    await stage.engine.sweep(-1, 100)

    assert stage.requests() == 0
    with pytest.raises(ResourceRetired):
        await stage.put(message(A, "2"))


async def test_a_state_of_a_tombstone_does_not_change(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    await complete(stage, Kind.RETIRE, resource=A)

    with pytest.raises(Conflict, match="removed"):
        await stage.set_state(A, State.ACTIVE)

    assert state(stage) == "removed"


async def test_a_resource_without_work_is_retired_in_one_step(stage: Stage) -> None:
    await stage.open()
    await stage.register(A)

    figures = await step(stage, await start(stage, Kind.RETIRE, resource=A))

    assert (figures.progress, state(stage)) == (Progress.DONE, "removed")


@pytest.mark.parametrize("kind", [Kind.REDRIVE, Kind.DISCARD, Kind.RETIRE])
async def test_nothing_else_is_started_on_what_is_being_retired(stage: Stage, kind: Kind) -> None:
    await stage.open()
    await die(stage, A, "dead")
    await stage.put(message(A, "1"))
    number = await start(stage, Kind.RETIRE, resource=A)

    with pytest.raises(Conflict):
        await start(stage, kind, resource=A)

    await run(stage, number)
    with pytest.raises(Conflict, match="removed"):
        await start(stage, kind, resource=A)


async def test_a_redrive_under_way_revives_nothing_of_what_is_retired_meanwhile(
    stage: Stage,
) -> None:
    await stage.open()
    await die(stage, A, "1", "2", "3")
    redrive = await start(stage, Kind.REDRIVE, resource=A)
    await step(stage, redrive, limit=1)

    await complete(stage, Kind.RETIRE, resource=A)
    figures = await run(stage, redrive)

    assert (figures.done, figures.skipped) == (1, 2)
    assert sorted(dead_ids(stage)) == ["1", "2", "3"]


async def test_a_cancelled_retirement_leaves_the_resource_disabled_with_its_rest(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(*messages(A, 3))
    number = await start(stage, Kind.RETIRE, resource=A)
    await step(stage, number, limit=1)

    await stage.engine.cancel(number, actor="bob")

    assert stage.rows("SELECT state, state_actor FROM resource") == [("disabled", "bob")]
    await stage.put(message(A, "new"))
    assert await stage.serve() == []
    await stage.set_state(A, State.ACTIVE)
    assert await stage.serve() == ["a-2", "a-3", "new"]


async def test_nothing_accepted_is_lost_by_a_retirement_under_traffic(
    stage: Stage, engines: Engines
) -> None:
    """I6: what was accepted is handled or a dead letter, whichever step came between."""
    await stage.open()
    accepted, handled = [], []
    number = None
    for n in range(40):
        try:
            await engines[1].put("shops", [message(A, f"{n}")])
            accepted.append(f"{n}")
        except ResourceRetired:
            assert number is not None
        if n % 3 == 0:
            for begun in await stage.begin(take=1, engine=engines[n % 2]):
                handled += ids(begun.loan)
                await stage.finish(begun, done(begun.loan), engine=engines[n % 2])
        if n == 20:
            number = await engines[0].start(order(Kind.RETIRE, resource=A), actor="ann")
        if number is not None and n % 2:
            await step(stage, number, limit=2, engine=engines[n % 2])
    assert number is not None
    await run(stage, number)

    assert sorted(handled + dead_ids(stage)) == sorted(accepted)
    assert len(accepted) == 21


async def test_its_start_and_its_cancelling_are_told_as_changes_of_state(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))

    number = await start(stage, Kind.RETIRE, resource=A)
    await stage.engine.cancel(number, actor="bob")

    assert [(e.resource, e.state, e.reason, e.actor) for e in stage.of(StateChanged)] == [
        (A, State.RETIRING, "asked for", "ann"),
        (A, State.DISABLED, f"retirement cancelled (operation {number})", "bob"),
    ]
