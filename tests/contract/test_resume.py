"""Resuming: whatever was said before and however often, one request stands and keeps its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, ResourceState, State
from attention_queue.ports import Ending, Engine, SetState
from contract.stage import SECOND, SHOPS, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A, B = shop("a"), shop("b")


async def test_a_resume_that_is_repeated_asks_once_and_keeps_the_place(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.put(message(A, "a"))
    await stage.set_state(A, State.PAUSED)
    await stage.serve()
    resume = SetState(group=SHOPS, resource=A, state=ResourceState())
    await engines[0].change(resume, actor="ann")
    await stage.put(message(B, "b"))

    await asyncio.gather(*(engine.change(resume, actor="ann") for engine in engines))

    assert stage.requests() == 2
    assert await stage.serve() == ["a", "b"]


async def test_a_resume_that_is_repeated_while_a_cycle_runs_wastes_no_claim(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    await stage.set_state(A, State.PAUSED)
    await stage.serve()
    await stage.set_state(A, State.ACTIVE)
    begun = await stage.begin_one(take=1)

    await stage.set_state(A, State.ACTIVE)

    assert await stage.look() == []
    await stage.finish(begun, done(begun.loan))
    assert await stage.serve() == ["a-2"]


async def test_a_resume_that_breaks_has_not_happened_and_may_be_repeated(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    await stage.set_state(A, State.PAUSED)
    await stage.serve()
    stage.rows(
        "CREATE TRIGGER broken BEFORE UPDATE ON attention BEGIN SELECT RAISE(ABORT, 'dies'); END"
    )

    with pytest.raises(Exception, match="dies"):
        await stage.set_state(A, State.ACTIVE)

    stage.rows("DROP TRIGGER broken")
    assert stage.rows("SELECT state FROM resource") == [("paused",)]
    await stage.set_state(A, State.ACTIVE)
    assert await stage.serve() == ["1"]


async def test_a_resume_before_anybody_saw_the_pause_loses_nothing(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))

    await stage.set_state(A, State.PAUSED)
    await stage.set_state(A, State.ACTIVE)

    assert (stage.requests(), await stage.serve()) == (1, ["1"])


async def test_a_pause_whose_time_is_over_is_taken_off_by_a_resume(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    await stage.set_state(A, State.PAUSED, until=stage.clock.now() + SECOND)
    await stage.serve()
    passes(SECOND)

    await stage.set_state(A, State.ACTIVE)

    assert stage.rows("SELECT state, state_until_ms FROM resource") == [("active", None)]
    assert await stage.serve() == ["1"]


async def test_a_deploy_does_not_undo_a_state(stage: Stage) -> None:
    await stage.open(max_messages=5)
    await stage.put(message(A, "1"))
    await stage.set_state(A, State.DISABLED, reason="fraud")

    await stage.open(max_messages=6)

    assert await stage.serve() == []
    assert stage.rows("SELECT state, state_reason FROM resource") == [("disabled", "fraud")]


@pytest.mark.parametrize("state", [State.PAUSED, State.MAINTENANCE, State.DISABLED])
async def test_a_stop_of_a_handler_does_not_undo_what_a_person_has_set(
    stage: Stage, state: State
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    await stage.set_state(A, state)

    stopped = ResourceState(State.CREDENTIALS_ERROR, "401", "handler")
    await stage.engine.finish(begun, [], Ending(end=CycleEnd.STOPPED, state=stopped))

    assert stage.rows("SELECT state, state_actor FROM resource") == [(state.value, "ann")]


async def test_credentials_that_are_cleared_by_a_person_bring_back_what_waits(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    begun = await stage.begin_one()
    stopped = ResourceState(State.CREDENTIALS_ERROR, "401", "handler")
    await stage.finish(begun, done(begun.loan[:1]), CycleEnd.STOPPED, state=stopped)
    assert await stage.serve() == []

    await stage.set_state(A, State.ACTIVE)

    assert await stage.serve() == ["a-2"]
