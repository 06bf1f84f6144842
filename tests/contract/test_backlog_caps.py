"""Caps on backlogs: a publish beyond one is refused whole, and nothing of it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from attention_queue.contract import Override, Plan, Policy, Reject, Resource
from attention_queue.contract.operation import Kind
from attention_queue.contract.policy import Expired
from attention_queue.errors import BacklogFull
from attention_queue.ports import Engine, Put
from contract.orders import complete, die
from contract.stage import SECOND, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A, B = shop("a"), shop("b")
OTHERS = Resource("other", "a")


async def refused(stage: Stage, *work: Any) -> BacklogFull:
    with pytest.raises(BacklogFull) as caught:
        await stage.put(*work)
    return caught.value


async def test_a_publish_beyond_the_plans_cap_is_refused_whole(stage: Stage) -> None:
    await stage.open(max_backlog=3)
    await stage.put(*messages(A, 2))

    error = await refused(stage, message(B, "b"), *messages(A, 2, start=3))

    assert (error.whose, error.backlog, error.limit, error.retryable) == (A, 2, 3, True)
    assert stage.rows("SELECT count(*) FROM message") == [(2,)]
    assert stage.rows("SELECT id FROM resource") == [("a",)]
    await stage.put(message(A, "third"))
    assert await stage.serve() == ["a-1", "a-2", "third"]


async def test_the_first_publish_to_a_resource_is_capped_too(stage: Stage) -> None:
    await stage.open(max_backlog=3)

    await refused(stage, *messages(A, 4))

    assert stage.rows("SELECT count(*) FROM resource") == [(0,)]
    await stage.put(*messages(A, 3))
    await stage.serve()


async def test_an_override_sets_another_cap_while_it_holds(stage: Stage, passes: Passes) -> None:
    await stage.open(max_backlog=2)
    until = stage.clock.now() + SECOND
    more = Override(changes={"max_backlog": 4}, until=until, reason="campaign")
    await stage.register(A, overrides=(more,))

    await stage.put(*messages(A, 4))
    await refused(stage, message(A, "fifth"))
    passes(SECOND)

    assert (await refused(stage, message(A, "fifth"))).limit == 2
    await stage.serve()


async def test_a_cap_that_a_person_sets_is_in_force_at_once(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 5))

    await stage.set_policy(max_backlog=5)

    await refused(stage, message(A, "sixth"))
    await stage.serve()


async def test_there_is_room_again_after_a_settle(stage: Stage) -> None:
    await stage.open(max_backlog=2)
    await stage.put(*messages(A, 2))
    begun = await stage.begin_one(take=1)
    await refused(stage, message(A, "3"))

    await stage.engine.settle(begun, done(begun.loan))

    await stage.put(message(A, "3"))
    await stage.finish(begun)
    assert await stage.serve() == ["a-2", "3"]


@pytest.mark.parametrize("cap", [{"max_backlog": 2}, {"max_tenant_backlog": 2}])
@pytest.mark.parametrize("way", ["finish", "death", "discard", "expiry", "drop", "retire"])
async def test_there_is_room_again_whichever_way_work_leaves(
    stage: Stage, passes: Passes, cap: dict[str, int], way: str
) -> None:
    expired = Expired.DROP if way == "drop" else Expired.DEAD_LETTER
    await stage.open(**cap, ttl=60 * SECOND, expired=expired)
    await stage.put(*messages(A, 2))
    await refused(stage, message(A, "3"))

    match way:
        case "finish":
            await stage.serve()
        case "death":
            begun = await stage.begin_one()
            await stage.finish(begun, [(each, Reject("bad")) for each in begun.loan])
        case "discard":
            await complete(stage, Kind.DISCARD, resource=A)
        case "retire":
            await complete(stage, Kind.RETIRE, resource=A)
        case _:
            passes(61 * SECOND)
            assert await stage.serve() == []

    place = B if way == "retire" else A
    await stage.put(*messages(place, 2, start=4))
    assert len(await stage.serve()) == 2


async def test_all_resources_of_a_tenant_share_its_cap_and_no_others(stage: Stage) -> None:
    await stage.open(max_tenant_backlog=3)
    await stage.put(*messages(A, 2))

    error = await refused(stage, message(OTHERS, "o"), *messages(B, 2))

    assert (error.whose, error.backlog, error.limit) == ("tenant acme", 2, 3)
    assert stage.rows("SELECT count(*) FROM message") == [(2,)]
    await stage.put(message(B, "b"), message(OTHERS, "1"), message(OTHERS, "2"))
    assert len(await stage.serve()) == 5


async def test_duplicates_take_no_room(stage: Stage) -> None:
    await stage.open(max_tenant_backlog=3)
    await stage.put(message(A, "1"))

    assert await stage.put(message(A, "1")) == Put(0, 1, 0, 1)

    await stage.put(*messages(A, 2))
    assert len(await stage.serve()) == 3


async def test_what_is_redriven_counts_again(stage: Stage) -> None:
    await stage.open(max_tenant_backlog=2)
    await die(stage, A, "1", "2")

    await complete(stage, Kind.REDRIVE, resource=A)

    await refused(stage, message(B, "3"))
    await stage.serve()
    await stage.put(message(B, "3"))
    await stage.serve()


async def test_a_cap_that_is_switched_off_and_on_again_counts_afresh(stage: Stage) -> None:
    await stage.open(max_tenant_backlog=2)
    await stage.put(message(A, "1"))
    await stage.open()
    await stage.put(*messages(A, 3))

    await stage.open(max_tenant_backlog=5)

    assert (await refused(stage, *messages(B, 2))).backlog == 4
    await stage.put(message(B, "fits"))
    assert len(await stage.serve()) == 5
    await stage.put(*messages(B, 5))
    await stage.serve()


async def test_a_cap_that_is_switched_on_counts_what_is_there(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 3), *messages(B, 1))

    await stage.open(max_tenant_backlog=4)

    assert (await refused(stage, message(B, "x"))).backlog == 4
    await stage.serve()


async def test_two_connections_share_one_cap(stage: Stage, engines: Engines) -> None:
    await stage.open(max_tenant_backlog=10)
    accepted = 0

    for n in range(8):
        for side, engine in enumerate(engines):
            try:
                await engine.put("shops", messages(A, 2, start=100 * side + 2 * n))
                accepted += 2
            except BacklogFull:
                continue

    assert accepted == 10
    assert len(await stage.serve()) == 10


@pytest.mark.parametrize("cap", [{"max_backlog": 20}, {"max_tenant_backlog": 20}])
async def test_a_refused_put_rolls_back_none_of_its_neighbours(
    stage: Stage, cap: dict[str, int]
) -> None:
    """All of one turn of the loop, so that a file commits them as one group."""
    await stage.open(**cap)
    puts = [stage.put(*messages(A, 3, start=10 * n)) for n in range(10)]

    results = await asyncio.gather(*puts, return_exceptions=True)

    assert [type(result) for result in results] == [Put] * 6 + [BacklogFull] * 4
    assert len(await stage.serve()) == 18


async def test_puts_with_other_changes_between_them_share_one_cap(stage: Stage) -> None:
    """What one part of a group commit has stored counts for the next part of it."""
    await stage.open(max_tenant_backlog=4)
    await stage.put(message(A, "0"))

    results = await asyncio.gather(
        stage.put(*messages(A, 3)),
        stage.register(B),
        stage.put(*messages(B, 1)),
        return_exceptions=True,
    )

    assert isinstance(results[2], BacklogFull)
    assert len(await stage.serve()) == 4


async def test_each_plan_has_its_own_cap(stage: Stage) -> None:
    plans = (Plan("plain", Policy(max_backlog=1)), Plan("pro", Policy(max_backlog=2)))
    await stage.open(plans=plans)
    await stage.register(B, plan="pro")

    await stage.put(message(A, "1"), *messages(B, 2))

    await refused(stage, message(A, "2"))
    await refused(stage, message(B, "3"))
    await stage.serve()


async def test_a_repetition_at_a_full_cap_is_answered_as_one(stage: Stage) -> None:
    await stage.open(max_backlog=2)
    await stage.put(*messages(A, 2))

    assert await stage.put(*messages(A, 2)) == Put(0, 2, 0, 1)

    await refused(stage, *messages(A, 3))
    assert len(await stage.serve()) == 2
