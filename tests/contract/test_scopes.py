"""Stopped scopes: one failed outside service holds all that wait for it, and one probes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import (
    CycleEnd,
    Hold,
)
from attention_queue.ports import Begun
from contract.stage import LEASE, MS, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]


async def _stopped_market(stage: Stage) -> None:
    await stage.open()
    for name in ("a", "b", "c"):
        await stage.register(shop(name), routing={"market": "amazon"})
        await stage.put(*messages(shop(name), 3))
    begun = await stage.begin_one()
    await stage.finish(
        begun,
        end=CycleEnd.STOPPED,
        not_before=10 * SECOND,
        hold=Hold.STOP,
        scope="routing.market",
        reason="503",
    )


async def test_a_stopped_scope_holds_all_of_one_routing_value_and_nobody_else(
    stage: Stage,
) -> None:
    await _stopped_market(stage)
    await stage.register(shop("e"), routing={"market": "ebay"})
    await stage.put(message(shop("e"), "ebay"), message(shop("f"), "none"))

    assert sorted(await stage.serve()) == ["ebay", "none"]


async def test_one_resource_probes_a_stopped_scope_with_one_message(
    stage: Stage, passes: Passes
) -> None:
    await _stopped_market(stage)
    await stage.serve()
    passes(10 * SECOND)

    found = [b for _ in range(5) for b in await stage.look() if isinstance(b, Begun)]

    (probe,) = found
    assert len(probe.loan) == 1
    await stage.finish(probe, done(probe.loan))
    assert len(await stage.serve()) == 8


async def test_a_probe_that_fails_holds_the_others_for_as_long_again(
    stage: Stage, passes: Passes
) -> None:
    await _stopped_market(stage)
    await stage.serve()
    passes(10 * SECOND)
    (probe,) = await stage.begin()

    await stage.finish(
        probe,
        end=CycleEnd.STOPPED,
        not_before=20 * SECOND,
        hold=Hold.STOP,
        scope="routing.market",
        reason="still 503",
    )

    passes(20 * SECOND - MS)
    assert await stage.begin() == []
    passes(MS + LEASE)
    assert len(await stage.begin()) == 1


async def test_a_probe_that_dies_is_followed_by_another(stage: Stage, passes: Passes) -> None:
    await _stopped_market(stage)
    await stage.serve()
    passes(10 * SECOND)
    (dead,) = await stage.begin()

    passes(LEASE)
    probes = [b for _ in range(5) for b in await stage.begin()]

    assert len(probes) == 1
    await stage.finish(probes[0], done(probes[0].loan))
    assert len(await stage.serve()) == 8
    assert dead.loan


async def test_a_scope_of_a_hostile_name_stops_and_starts_like_any_other(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    routing = {'we"ird=na.me': "x'y"}
    for name in ("a", "b"):
        await stage.register(shop(name), routing=routing)
        await stage.put(message(shop(name), name))
    begun = await stage.begin_one()
    await stage.finish(
        begun, not_before=SECOND, hold=Hold.STOP, scope='routing.we"ird=na.me', reason="503"
    )
    assert await stage.serve() == []
    passes(SECOND)

    assert sorted(await stage.serve()) == ["a", "b"]
    assert ids(begun.loan) == ["a"]
