"""Changes by people: a state, a plan, a place; and the request that it makes due, as one unit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import (
    CycleEnd,
    Hold,
    Order,
    Override,
    Plan,
    Policy,
    Priority,
    Rate,
    State,
)
from attention_queue.contract.events import PlanChanged
from attention_queue.errors import ContractError, UnknownPlan, UnknownResource
from attention_queue.ports import Engine, Nudge, SetPlan
from contract.stage import LEASE, MS, SECOND, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]


async def test_a_running_cycle_sees_a_change_at_its_next_message(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one()
    assert not stage.engine.changed(begun)

    await stage.set_state(shop("a"), State.PAUSED)

    assert stage.engine.changed(begun)
    assert await stage.engine.reload(begun) is State.PAUSED
    assert not stage.engine.changed(begun)
    await stage.finish(begun, done(begun.loan[:1]), CycleEnd.STATE)


async def test_a_running_cycle_sees_a_change_by_another_connection_after_its_next_settle(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(engine=engines[0])

    changed = Plan("plain", Policy(max_messages=7))
    await engines[1].change(SetPlan(group="shops", plan=changed), actor="ann")
    await engines[0].settle(begun, done(begun.loan[:1]))

    assert engines[0].changed(begun)
    assert await engines[0].reload(begun) is State.ACTIVE
    assert begun.policy.max_messages == 7
    await stage.finish(begun)


async def test_a_cycle_whose_resource_was_drained_by_a_successor_can_still_look(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    late = await stage.begin_one()
    passes(LEASE)
    await stage.serve()
    await stage.set_state(shop("a"), State.PAUSED)

    assert stage.engine.changed(late)
    assert await stage.engine.reload(late) is State.PAUSED


async def test_a_changed_plan_is_in_force_for_what_waits_already(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(*messages(shop("a"), 3))

    await stage.set_policy(max_messages=2)

    begun = await stage.begin_one()
    assert (len(begun.loan), begun.policy.max_messages) == (2, 2)
    assert stage.of(PlanChanged) == [PlanChanged("shops", "plain")]
    await stage.finish(begun, done(begun.loan))


async def test_a_changed_class_moves_the_requests_that_wait(stage: Stage) -> None:
    plans = (Plan("plain", Policy()), Plan("vip", Policy()))
    await stage.open(plans=plans)
    await stage.register(shop("b"), plan="vip")
    await stage.put(message(shop("a"), "a"), message(shop("b"), "b"))

    await stage.set_policy("vip", priority=Priority.HIGH)

    assert await stage.serve() == ["b", "a"]


async def test_a_raised_rate_frees_what_waits_for_the_old_one(stage: Stage, passes: Passes) -> None:
    await stage.open(rates={"resource": Rate(1, 3600 * SECOND)})
    await stage.put(*messages(shop("a"), 3))
    assert await stage.serve() == ["a-1"]

    await stage.set_policy()

    assert await stage.serve() == ["a-2", "a-3"]


async def test_a_resource_moves_to_another_plan_and_its_request_with_it(stage: Stage) -> None:
    plans = (Plan("plain", Policy(max_messages=1)), Plan("pro", Policy(priority=Priority.HIGH)))
    await stage.open(plans=plans)
    await stage.put(message(shop("a"), "a"), *messages(shop("b"), 3))

    await stage.register(shop("b"), plan="pro")

    assert await stage.serve() == ["b-1", "b-2", "b-3", "a"]


async def test_a_plan_that_is_not_there_is_refused(stage: Stage) -> None:
    await stage.open()

    with pytest.raises(UnknownPlan, match="plain"):
        await stage.register(shop("a"), plan="platinum")

    assert stage.rows("SELECT count(*) FROM resource") == [(0,)]


async def test_registering_leaves_alone_what_it_does_not_name(stage: Stage) -> None:
    await stage.open(plans=(Plan("plain"), Plan("pro")))
    few = Override(changes={"max_messages": 1})
    await stage.register(shop("a"), plan="pro", routing={"m": "x"}, overrides=(few,))

    await stage.register(shop("a"))
    await stage.put(*messages(shop("a"), 2))

    begun = await stage.begin_one()
    assert (begun.plan, begun.routing, begun.policy.max_messages) == ("pro", {"m": "x"}, 1)
    await stage.finish(begun, done(begun.loan))


async def test_overrides_are_taken_away_by_none_of_them(stage: Stage) -> None:
    await stage.open(max_messages=5)
    await stage.register(shop("a"), overrides=(Override(changes={"max_messages": 1}),))

    await stage.register(shop("a"), overrides=())
    await stage.put(*messages(shop("a"), 3))

    begun = await stage.begin_one()
    assert len(begun.loan) == 3
    await stage.finish(begun)


async def test_an_override_is_in_force_from_its_first_to_its_last_millisecond(
    stage: Stage, passes: Passes
) -> None:
    await stage.open(max_messages=5)
    start = stage.clock.now() + SECOND
    window = Override(changes={"max_messages": 9}, since=start, until=start + SECOND)
    await stage.register(shop("a"), overrides=(window,))
    await stage.put(message(shop("a"), "1"))
    seen = []

    for wait in (999 * MS, MS, 999 * MS, MS):
        passes(wait)
        begun = await stage.begin_one()
        seen.append(begun.policy.max_messages)
        await stage.finish(begun)

    assert seen == [5, 9, 9, 5]


async def test_overrides_that_do_not_go_together_are_refused_before_they_harm(
    stage: Stage,
) -> None:
    await stage.open(max_consumers=3)
    later = stage.clock.now() + 3600 * SECOND
    strict = Override(changes={"order": Order.STRICT}, since=later)

    with pytest.raises(ContractError, match="max_consumers = 1"):
        await stage.register(shop("a"), overrides=(strict,))
    one = Override(changes={"max_consumers": 1})
    await stage.register(shop("a"), overrides=(one, strict))

    assert stage.rows("SELECT count(*) FROM resource") == [(1,)]


async def test_an_override_that_raises_the_limit_acts_at_once(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(*messages(shop("a"), 5))
    first = await stage.begin_one()
    assert await stage.look() == []

    await stage.register(shop("a"), overrides=(Override(changes={"max_consumers": 2}),))

    (second,) = await stage.begin()
    assert second.token.slot == 1
    await stage.finish(first, done(first.loan))
    await stage.finish(second, done(second.loan))


@pytest.mark.parametrize("hold", [Hold.RATE, Hold.STOP, Hold.HEAD])
async def test_a_nudge_asks_now_whatever_the_request_waits_for(stage: Stage, hold: Hold) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    await stage.finish(begun, not_before=3600 * SECOND, hold=hold)
    assert await stage.look() == []

    await stage.engine.change(Nudge(group="shops", resource=shop("a")), actor="ann")

    assert await stage.serve() == ["1"]


async def test_a_nudge_mends_a_lost_request(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    stage.rows("DELETE FROM attention")

    await stage.engine.change(Nudge(group="shops", resource=shop("a")), actor="ann")

    assert await stage.serve() == ["1"]


async def test_a_change_of_a_resource_that_is_not_there_is_refused(stage: Stage) -> None:
    await stage.open()

    with pytest.raises(UnknownResource):
        await stage.set_state(shop("nobody"), State.PAUSED)
    with pytest.raises(UnknownResource):
        await stage.engine.change(Nudge(group="shops", resource=shop("nobody")), actor="ann")
