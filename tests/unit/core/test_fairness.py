"""Who is served next: rounds, lanes, plans, several groups, and who has to make room."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Override, Plan, Policy, Priority
from attention_queue.contract.events import CycleFinished, CycleStarted, RequestBlocked
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, rest, serving


async def opened(attn: Attn, name: str = "market", **policy: object) -> AttentionQueue:
    """A group with one plan ``plan``; ``it`` does nothing, ``wait`` waits a virtual second."""
    queue = AttentionQueue(name, plans=[Plan("plan", Policy(**policy))])  # type: ignore[arg-type]

    @queue.handler("it")
    async def it(message: int) -> None: ...

    @queue.handler("wait")
    async def wait(message: int) -> None:
        await attn.clock.sleep(1)

    await attn.open(queue)
    return queue


async def fill(queue: AttentionQueue, name: str, count: int, type: str = "it") -> None:
    await queue.publish_many([queue.message(f"t/{name}", type, n) for n in range(count)])


def served(attn: Attn) -> list[str]:
    """The resources in the order in which their slices began."""
    return [event.resource.id for event in of_kind(attn, CycleStarted)]


async def test_equal_plans_advance_by_one_quantum_per_round_whatever_their_backlog(
    attn: Attn,
) -> None:
    queue = await opened(attn, max_messages=10)
    for name, count in (("a", 100), ("b", 30), ("c", 25)):
        await fill(queue, name, count)

    await attn.drain()

    assert served(attn)[:9] == ["a", "b", "c"] * 3
    assert set(served(attn)[9:]) == {"a"}
    assert all(e.handled <= 10 for e in of_kind(attn, CycleFinished))


async def test_one_noisy_resource_does_not_hold_up_fifty_quiet_ones(attn: Attn) -> None:
    queue = await opened(attn, max_messages=100)
    await fill(queue, "noisy", 5_000)
    for n in range(50):
        await fill(queue, f"quiet{n}", 1)

    await attn.drain()

    first_round = served(attn)[:51]
    assert first_round[0] == "noisy"
    assert Counter(first_round).most_common(1) == [("noisy", 1)]


async def test_lanes_are_served_8_to_4_to_1_while_all_wait(attn: Attn) -> None:
    plans = [Plan(each.name.lower(), Policy(priority=each)) for each in Priority]
    queue = AttentionQueue("market", plans=plans)
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    for plan in plans:
        for n in range(30):
            await queue.register(f"t/{plan.name}{n}", plan=plan.name)
            await queue.publish(f"t/{plan.name}{n}", "it", {})

    await attn.drain()

    first = Counter(id.rstrip("0123456789") for id in served(attn)[:26])
    assert first == {"high": 16, "normal": 8, "low": 2}
    assert len(served(attn)) == 90


async def test_a_publish_may_ask_for_a_higher_lane_than_the_plans_and_never_for_a_lower(
    attn: Attn,
) -> None:
    queue = await opened(attn)
    for name, priority in (("low", Priority.LOW), ("none", None), ("high", Priority.HIGH)):
        await queue.publish(f"t/{name}", "it", 1, priority=priority)

    await attn.drain()

    assert served(attn) == ["high", "low", "none"]


async def test_a_lone_resource_uses_all_slots_up_to_its_consumers(attn: Attn) -> None:
    queue = await opened(attn, max_consumers=5, max_messages=5)
    await fill(queue, "a", 100, "wait")

    async with serving(queue, slots=16):
        await rest(attn)
        assert sorted(e.slot for e in of_kind(attn, CycleStarted)) == [0, 1, 2, 3, 4]
        await attn.advance(30 * SECOND)

    assert await attn.backlog("t/a") == 0


async def test_extra_consumers_never_take_the_last_slots(attn: Attn) -> None:
    queue = await opened(attn, max_consumers=50, max_messages=1)
    await fill(queue, "a", 100, "wait")

    async with serving(queue, slots=8):
        await rest(attn)
        assert len(of_kind(attn, CycleStarted)) == 7
        await fill(queue, "b", 1)
        await rest(attn)
        assert served(attn)[-1] == "b"


async def test_an_extra_consumer_makes_room_for_a_resource_that_waits(attn: Attn) -> None:
    queue = await opened(attn, max_consumers=4, max_messages=1_000)
    await fill(queue, "a", 5_000, "wait")

    async with serving(queue, slots=4):
        await rest(attn)
        for name in ("b", "c"):
            await fill(queue, name, 1, "wait")
        await attn.advance(timedelta(seconds=1.5))
        assert "yielded" in ends(attn)
        assert {"b", "c"} <= set(served(attn))


async def test_a_slice_over_its_first_quarter_second_yields_to_whoever_waits(attn: Attn) -> None:
    queue = await opened(attn, max_messages=1_000)
    await fill(queue, "a", 100, "wait")

    async with serving(queue, slots=1):
        await attn.advance(timedelta(seconds=0.5))
        await fill(queue, "b", 1)
        await attn.advance(SECOND)
        assert ends(attn)[0] == "yielded"
        assert served(attn) == ["a", "b", "a"]


async def test_nobody_yields_while_nobody_waits(attn: Attn) -> None:
    queue = await opened(attn, max_messages=15)
    await fill(queue, "a", 10, "wait")

    async with serving(queue, slots=1):
        await attn.advance(12 * SECOND)

    assert ends(attn) == ["drained"]


async def test_a_resource_at_its_limit_is_blocked_and_does_not_spin(attn: Attn) -> None:
    queue = await opened(attn, max_consumers=1, max_messages=5)
    await fill(queue, "a", 10, "wait")

    async with serving(queue, slots=8):
        await attn.advance(timedelta(seconds=4.5))
        assert len(of_kind(attn, CycleStarted)) == 1
        assert len(of_kind(attn, RequestBlocked)) <= 2


@pytest.mark.parametrize("by", ["plan", "override", "other plan"])
async def test_a_change_of_limits_acts_on_the_backlog_at_once(attn: Attn, by: str) -> None:
    queue = await opened(attn, max_messages=10)
    await fill(queue, "a", 100)
    await attn.cycle()

    policy = Policy(max_messages=45)
    if by == "plan":
        await queue.set_plan(Plan("plan", policy))
    elif by == "override":
        await queue.register("t/a", overrides=[Override(changes={"max_messages": 45})])
    else:
        await queue.set_plan(Plan("gold", policy))
        await queue.register("t/a", plan="gold")
    await attn.drain()

    assert [event.handled for event in of_kind(attn, CycleFinished)] == [10, 45, 45]


async def test_more_consumers_are_used_at_the_next_message(attn: Attn) -> None:
    queue = await opened(attn, max_messages=5)
    await fill(queue, "a", 60, "wait")

    async with serving(queue, slots=8):
        await attn.advance(timedelta(seconds=0.5))
        assert len(of_kind(attn, CycleStarted)) == 1
        await queue.set_plan(Plan("plan", Policy(max_consumers=3, max_messages=5)))
        await rest(attn)
        assert [e.slot for e in of_kind(attn, CycleStarted)] == [0, 1, 2]


async def test_fewer_messages_per_slice_end_the_slice_that_runs(attn: Attn) -> None:
    queue = await opened(attn, max_messages=50)
    await fill(queue, "a", 50, "wait")

    async with serving(queue, slots=1):
        await attn.advance(timedelta(seconds=4.5))
        await queue.set_plan(Plan("plan", Policy(max_messages=5)))
        await attn.advance(SECOND)
        assert ends(attn) == ["messages"]


async def test_one_worker_serves_several_groups(attn: Attn) -> None:
    one, two = await opened(attn, "one"), await opened(attn, "two")
    for n in range(3):
        await fill(one, str(n), 10)
        await fill(two, str(n), 10)

    async with serving(one, two, slots=2):
        await rest(attn)
        async with asyncio.timeout(10):
            while len(of_kind(attn, CycleFinished)) < 6:
                await rest(attn)

    groups = Counter(event.group for event in of_kind(attn, CycleFinished))
    assert groups == {"one": 3, "two": 3}


async def test_a_slice_yields_to_work_that_falls_due_while_all_slots_are_taken(
    attn: Attn,
) -> None:
    queue = await opened(attn, max_messages=1_000)
    await fill(queue, "a", 10, "wait")
    await queue.publish("t/b", "it", 1, delay=timedelta(seconds=1.5))

    async with serving(queue, slots=1):
        await attn.advance(timedelta(seconds=3.5))
        assert served(attn) == ["a", "b", "a"]
