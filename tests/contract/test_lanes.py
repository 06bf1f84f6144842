"""The order of requests: lanes, turns, free slots and who may have a second one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import Hold, Plan, Policy, Priority
from attention_queue.ports import Declined
from contract.stage import LEASE, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]


async def test_no_more_is_begun_than_there_are_free_slots(stage: Stage) -> None:
    await stage.open()
    for name in "abc":
        await stage.put(message(shop(name), "1"))

    first = await stage.begin(limit=2)
    second = await stage.begin(limit=2)

    assert [begun.resource.id for begun in first] == ["a", "b"]
    assert [begun.resource.id for begun in second] == ["c"]
    for begun in (*first, *second):
        await stage.finish(begun, done(begun.loan))


async def test_lanes_are_dealt_eight_to_four_to_one_while_all_wait(stage: Stage) -> None:
    assert stage.engine.capabilities.strict_priority
    await stage.open(plans=[Plan(p.name, Policy(priority=p, lease=LEASE)) for p in Priority])
    for n in range(30):
        for priority in Priority:
            resource = shop(f"{priority.name}-{n}")
            await stage.register(resource, plan=priority.name)
            await stage.put(message(resource, "1"))

    found = [await stage.begin_one(limit=1) for _ in range(26)]

    lanes = [begun.resource.id.split("-")[0] for begun in found]
    assert Counter(lanes[:13]) == Counter(lanes[13:]) == {"HIGH": 8, "NORMAL": 4, "LOW": 1}
    for begun in found:
        await stage.finish(begun, done(begun.loan))


async def test_a_lane_alone_gets_all(stage: Stage) -> None:
    await stage.open(priority=Priority.LOW)
    for n in range(5):
        await stage.put(message(shop(f"{n}"), "1"))

    assert len(await stage.serve(limit=5)) == 5


async def test_resources_take_turns_slice_by_slice(stage: Stage) -> None:
    await stage.open(max_messages=2)
    await stage.put(*messages(shop("huge"), 6))
    await stage.put(*messages(shop("tiny"), 1))
    await stage.put(*messages(shop("small"), 2))

    order = await stage.serve(limit=1)

    assert order == [
        "huge-1", "huge-2", "tiny-1", "small-1", "small-2",
        "huge-3", "huge-4", "huge-5", "huge-6",
    ]  # fmt: skip


async def test_a_request_that_fell_due_goes_behind_those_that_were_ready(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("late"), "late", not_before=stage.clock.now() + SECOND))
    await stage.put(message(shop("ready"), "ready"))
    passes(2 * SECOND)

    assert await stage.serve(limit=1) == ["ready", "late"]


async def test_a_second_consumer_needs_a_slot_that_is_spare(stage: Stage) -> None:
    await stage.open(max_consumers=3, max_messages=2)
    await stage.put(*messages(shop("a"), 9))

    first = await stage.begin_one(limit=4, extra=0)
    (declined,) = await stage.look(limit=3, extra=0)
    await stage.put(message(shop("b"), "b"))

    assert not first.extra
    assert isinstance(declined, Declined)
    assert declined.why is Hold.BUSY
    other = await stage.begin_one(limit=3, extra=0)
    assert other.resource == shop("b")
    await stage.finish(first)
    await stage.finish(other, done(other.loan))


async def test_a_second_consumer_joins_where_a_slot_is_spare(stage: Stage) -> None:
    await stage.open(max_consumers=3, max_messages=2)
    await stage.put(*messages(shop("a"), 9))

    held = [begun for _ in range(4) for begun in await stage.begin(limit=4, extra=2)]

    assert [begun.extra for begun in held] == [False, True, True]
    assert [ids(begun.loan) for begun in held] == [
        ["a-1", "a-2"], ["a-3", "a-4"], ["a-5", "a-6"],
    ]  # fmt: skip
    for begun in held:
        await stage.finish(begun, done(begun.loan))
    assert len(await stage.serve()) == 3


async def test_a_worker_serves_several_groups_and_only_those(stage: Stage) -> None:
    for name in ("shops", "mail", "other"):
        await stage.open(name)
        await stage.put(message(shop("a"), name), group=name)

    served = await stage.serve(groups=("shops", "mail"))

    assert sorted(served) == ["mail", "shops"]
    assert await stage.serve(groups=("other",)) == ["other"]


async def test_wasted_requests_do_not_hide_those_behind_them(stage: Stage) -> None:
    await stage.open()
    for n in range(100):
        await stage.put(message(shop(f"empty-{n}"), "1"))
    await stage.put(message(shop("full"), "1"))
    stage.rows("DELETE FROM message WHERE rid IN (SELECT rid FROM resource WHERE id LIKE 'empty%')")
    stage.rows("UPDATE attention SET backlog = 0 WHERE rid NOT IN (SELECT rid FROM message)")

    served: list[str] = []
    for _ in range(101):  # the clock stands still: no timer may be needed for any of them
        served += await stage.serve(limit=1)
        await stage.engine.wait(("shops",), 0.0 if served else 3600)
        if served:
            break

    assert served == ["1"]
