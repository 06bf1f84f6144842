"""Groups and plans: what an application declares, and what a person has set since."""

from __future__ import annotations

import pytest

from attention_queue.contract import Override, Plan, Policy
from attention_queue.errors import UnknownPlan
from attention_queue.ports import Engine, Group
from contract.stage import Stage, done, message, messages, shop

Engines = tuple[Engine, Engine]


async def _begun_policy(stage: Stage) -> Policy:
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()
    await stage.finish(begun, done(begun.loan))
    return begun.policy


async def test_opening_a_group_again_changes_nothing(stage: Stage, engines: Engines) -> None:
    group = await stage.open(max_messages=3)
    before = stage.rows("SELECT * FROM grp"), stage.rows("SELECT * FROM plan")

    await engines[1].open_group(group)

    assert (stage.rows("SELECT * FROM grp"), stage.rows("SELECT * FROM plan")) == before
    assert (await _begun_policy(stage)).max_messages == 3


async def test_a_deploy_does_not_undo_what_a_person_has_set(stage: Stage) -> None:
    group = await stage.open(max_messages=3)
    await stage.set_policy(max_messages=7)

    await stage.engine.open_group(group)

    assert (await _begun_policy(stage)).max_messages == 7


async def test_a_deploy_that_declares_something_new_is_in_force(
    stage: Stage, engines: Engines
) -> None:
    await stage.open(max_messages=3)
    await stage.set_policy(max_messages=7)
    await stage.put(*messages(shop("b"), 2))
    begun = await stage.begin_one(take=1)

    await stage.open(max_messages=4)

    assert stage.engine.changed(begun)
    await stage.finish(begun, done(begun.loan))
    assert (await _begun_policy(stage)).max_messages == 4


async def test_a_deploy_that_raises_the_limit_acts_on_what_waits(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.put(*messages(shop("a"), 4))
    first = await stage.begin_one()
    assert await stage.look() == []

    await stage.open(max_messages=1, max_consumers=2)

    (second,) = await stage.begin()
    await stage.finish(first, done(first.loan))
    await stage.finish(second, done(second.loan))


async def test_a_plan_that_is_declared_no_more_stays_for_those_on_it(stage: Stage) -> None:
    await stage.open(plans=(Plan("plain"), Plan("old", Policy(max_messages=1))))
    await stage.register(shop("a"), plan="old")

    await stage.open(plans=(Plan("plain"),))

    assert (await _begun_policy(stage)).max_messages == 1


async def test_the_default_plan_has_to_be_one_of_the_plans(stage: Stage) -> None:
    group = Group(name="shops", plans=(Plan("plain"),), default_plan="pro")

    with pytest.raises(UnknownPlan):
        await stage.engine.open_group(group)

    assert stage.rows("SELECT count(*) FROM grp") == [(0,)]


async def test_the_last_settings_that_were_declared_count(stage: Stage) -> None:
    await stage.open()
    await stage.open(register_unknown=False)
    await stage.open(register_unknown=True)

    assert (await stage.put(message(shop("new"), "1"))).stored == 1


async def test_two_groups_may_have_plans_of_one_name(stage: Stage) -> None:
    await stage.open(max_messages=1)
    await stage.open("mail", max_messages=2)
    await stage.put(*messages(shop("a"), 3), group="mail")

    begun = await stage.begin_one(groups=("mail",))

    assert begun.policy.max_messages == 2
    await stage.finish(begun)
    assert (await _begun_policy(stage)).max_messages == 1


async def test_a_policy_comes_back_as_it_was_declared(stage: Stage) -> None:
    policy = Policy(max_messages=9, max_crashes=2)
    await stage.open(plans=(Plan("plain", policy),))
    await stage.register(shop("a"), overrides=(Override(changes={"max_crashes": 5}),))

    assert await _begun_policy(stage) == Policy(max_messages=9, max_crashes=5)
