"""States: who is not active is not served and keeps its work; becoming active asks, as one unit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import (
    State,
)
from attention_queue.contract.events import RequestDiscarded, StateChanged
from contract.stage import MS, SECOND, Stage, message, shop

Passes = Callable[[timedelta], None]
KEEPS_WORK = [State.PAUSED, State.MAINTENANCE, State.DISABLED, State.CREDENTIALS_ERROR]


@pytest.mark.parametrize("state", KEEPS_WORK)
async def test_what_is_not_active_is_not_served_and_keeps_its_work(
    stage: Stage, state: State
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.set_state(shop("a"), state)

    assert await stage.serve() == []
    assert stage.of(RequestDiscarded) == [RequestDiscarded("shops", shop("a"), state)]
    await stage.put(message(shop("a"), "2"))
    assert await stage.look() == []


@pytest.mark.parametrize("state", KEEPS_WORK)
async def test_becoming_active_again_asks_for_what_is_there(stage: Stage, state: State) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.set_state(shop("a"), state)
    await stage.serve()

    await stage.set_state(shop("a"), State.ACTIVE)

    assert await stage.serve() == ["1"]
    assert [(e.state, e.actor) for e in stage.of(StateChanged)] == [
        (state, "ann"),
        (State.ACTIVE, "ann"),
    ]


async def test_becoming_active_without_work_asks_for_nothing(stage: Stage) -> None:
    await stage.open()
    await stage.register(shop("a"))
    await stage.set_state(shop("a"), State.PAUSED)

    await stage.set_state(shop("a"), State.ACTIVE)

    assert stage.requests() == 0


async def test_who_set_a_state_and_why_is_kept(stage: Stage) -> None:
    await stage.open()
    await stage.register(shop("a"))

    await stage.set_state(shop("a"), State.PAUSED, reason="by phone")

    assert stage.rows("SELECT state, state_reason, state_actor FROM resource") == [
        ("paused", "by phone", "ann")
    ]


async def test_a_state_with_an_end_is_over_by_itself(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.set_state(shop("a"), State.PAUSED, until=stage.clock.now() + 60 * SECOND)
    assert await stage.serve() == []

    passes(60 * SECOND - MS)
    early = await stage.serve()
    passes(MS)

    assert early == []
    assert await stage.serve() == ["1"]


@pytest.mark.parametrize("first", [None, 60 * SECOND])
async def test_a_pause_that_gets_a_sooner_end_is_over_at_that(
    stage: Stage, passes: Passes, first: timedelta | None
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    now = stage.clock.now()
    await stage.set_state(shop("a"), State.PAUSED, until=now + first if first else None)
    assert await stage.serve() == []

    await stage.set_state(shop("a"), State.PAUSED, until=now + 10 * SECOND)
    assert await stage.serve() == []
    passes(10 * SECOND)

    assert await stage.serve() == ["1"]


async def test_a_pause_that_gets_a_later_end_lasts_until_that(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    now = stage.clock.now()
    await stage.set_state(shop("a"), State.PAUSED, until=now + 10 * SECOND)
    assert await stage.serve() == []

    await stage.set_state(shop("a"), State.PAUSED, until=now + 20 * SECOND)
    passes(10 * SECOND)
    early = await stage.serve()
    passes(10 * SECOND)

    assert early == []
    assert await stage.serve() == ["1"]
