"""Keepers: leases renewed in time, and cycles told when theirs is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import CycleEnd
from attention_queue.contract.events import Event, TokensRenewed, TokenWasLost
from contract.stage import LEASE, MS, Stage, done, message, shop

Passes = Callable[[timedelta], None]
SHORT = timedelta(milliseconds=60)


async def _told(stage: Stage, kind: type[Event], passes: Passes, time: timedelta) -> None:
    """Let time pass once the keeper has gone to sleep, and wait for what it tells."""
    told = asyncio.Event()
    stage.bus.on(kind, lambda event: told.set())
    for _ in range(10):
        await asyncio.sleep(0)
    passes(time)
    async with asyncio.timeout(10):
        await told.wait()


async def test_a_keeper_renews_what_it_keeps_until_it_is_dropped(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(lease=SHORT)
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    async with stage.engine.keeper() as keeper:
        keeper.keep(begun)
        await _told(stage, TokensRenewed, passes, SHORT / 3)
        await _told(stage, TokensRenewed, passes, SHORT / 3)
        keeper.drop(begun)

    assert not begun.lost
    ((until_ms,),) = stage.rows("SELECT until_ms FROM token")
    assert until_ms == stage.clock.now_ms() + SHORT // MS
    await stage.finish(begun, done(begun.loan), CycleEnd.DRAINED)


async def test_a_token_whose_grant_was_answered_late_is_renewed_at_once(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(lease=SHORT)
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    passes(0.9 * SHORT)  # the answer was on its way for so long

    async with stage.engine.keeper() as keeper:
        keeper.keep(begun)
        await _told(stage, TokensRenewed, passes, timedelta(0))

    passes(0.2 * SHORT)
    assert await stage.begin() == []
    await stage.finish(begun, done(begun.loan))


async def test_a_keeper_tells_its_cycle_that_the_token_is_lost(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    passes(LEASE)
    successor = await stage.begin_one()

    async with stage.engine.keeper() as keeper:
        keeper.keep(begun)
        await _told(stage, TokenWasLost, passes, timedelta(0))

    assert begun.lost
    await stage.finish(successor, done(successor.loan))
