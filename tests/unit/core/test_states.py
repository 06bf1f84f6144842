"""Paused, disabled and other states: the work is kept, the request settled and counted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Resource, ResourceState, State
from attention_queue.contract.events import CycleStarted, RequestDiscarded, StateChanged
from attention_queue.contract.operation import Kind, Operation, Selection
from attention_queue.errors import (
    ContractError,
    ResourceRetired,
    ResourceUnderMaintenance,
    UnknownResource,
)
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, started

KEPT = [State.PAUSED, State.MAINTENANCE, State.DISABLED, State.CREDENTIALS_ERROR]


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    queue = AttentionQueue("market")
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    return queue


@pytest.mark.parametrize("state", KEPT)
async def test_work_of_a_resource_that_is_not_active_is_kept_and_its_request_counted_once(
    attn: Attn, queue: AttentionQueue, state: State
) -> None:
    await attn.publish("t/1", "it", {}, id="0")
    await queue.set_state("t/1", ResourceState(state, "a reason"))

    assert await attn.drain() == []
    await attn.publish("t/1", "it", {}, id="1")
    assert await attn.drain() == []

    assert [event.state for event in of_kind(attn, RequestDiscarded)] == [state]
    assert await attn.backlog("t/1") == 2
    assert started(attn) == []


@pytest.mark.parametrize("state", KEPT)
async def test_active_again_it_is_asked_for_exactly_once_and_served_in_order(
    attn: Attn, queue: AttentionQueue, state: State
) -> None:
    for n in range(3):
        await attn.publish("t/1", "it", {}, id=str(n))
    await queue.set_state("t/1", ResourceState(state))
    await attn.drain()

    await queue.resume("t/1")
    await queue.resume("t/1")

    assert [end.value for end in await attn.drain()] == ["drained"]
    assert started(attn) == ["0", "1", "2"]
    assert len(of_kind(attn, CycleStarted)) == 1


async def test_a_state_ends_by_itself_at_its_time(attn: Attn, queue: AttentionQueue) -> None:
    await attn.publish("t/1", "it", {})
    until = attn.clock.now() + timedelta(minutes=5)
    await queue.set_state("t/1", ResourceState(State.MAINTENANCE, "a move", until=until))
    await attn.drain()

    await attn.advance(timedelta(seconds=299))
    assert await attn.drain() == []
    await attn.advance(SECOND)
    await attn.drain()

    assert await attn.backlog("t/1") == 0


async def test_a_pause_takes_effect_at_the_next_message(attn: Attn, queue: AttentionQueue) -> None:
    seen: list[int] = []

    @queue.handler("count")
    async def count(message: int) -> None:
        seen.append(message)
        if message == 1:
            await queue.pause("t/1", "enough")

    for n in range(5):
        await attn.publish("t/1", "count", n)
    await attn.drain()

    assert seen == [0, 1]
    assert ends(attn) == ["state"]
    assert await attn.backlog("t/1") == 3


async def test_a_change_says_who_and_why(attn: Attn, queue: AttentionQueue) -> None:
    await queue.register("t/1")
    await queue.pause("t/1", "too many errors", actor="ann")

    (event,) = of_kind(attn, StateChanged)
    assert (event.state, event.reason, event.actor) == (State.PAUSED, "too many errors", "ann")


async def test_a_pause_of_what_nobody_knows_is_refused(attn: Attn, queue: AttentionQueue) -> None:
    with pytest.raises(UnknownResource):
        await queue.pause("t/1", "why not")


async def test_a_retired_resource_takes_no_more_work(attn: Attn, queue: AttentionQueue) -> None:
    await queue.register("t/1")
    of = Selection(resource=Resource("t", "1"))
    retire = Operation(kind=Kind.RETIRE, group=queue.name, selection=of, reason="closed")

    await queue.start(retire, actor="ann")

    with pytest.raises(ResourceRetired):
        await attn.publish("t/1", "it", {})


@pytest.mark.parametrize("state", [State.RETIRING, State.REMOVED])
async def test_nobody_retires_a_resource_by_its_state(
    attn: Attn, queue: AttentionQueue, state: State
) -> None:
    await queue.register("t/1")

    with pytest.raises(ContractError, match="attn retire t/1"):
        await queue.set_state("t/1", ResourceState(state))

    await attn.publish("t/1", "it", {})
    await attn.drain()


async def test_a_group_may_refuse_work_under_maintenance(attn: Attn) -> None:
    queue = AttentionQueue("strict", maintenance="refuse")
    await attn.open(queue)
    await queue.register("t/1")
    await queue.set_state("t/1", ResourceState(State.MAINTENANCE, "a move"))

    with pytest.raises(ResourceUnderMaintenance, match="a move"):
        await queue.publish("t/1", "it", {})


async def test_a_group_may_refuse_resources_that_nobody_registered(attn: Attn) -> None:
    queue = AttentionQueue("explicit", register="explicit")
    await attn.open(queue)

    with pytest.raises(UnknownResource):
        await queue.publish("t/1", "it", {})
    await queue.register("t/1")
    await queue.publish("t/1", "it", {})


async def test_a_nudge_looks_again_whatever_the_request_waits_for(
    attn: Attn, queue: AttentionQueue
) -> None:
    await attn.publish("t/1", "it", {}, delay=timedelta(hours=1))
    assert await attn.drain() == []

    await queue.nudge("t/1")
    await attn.drain()

    assert await attn.backlog("t/1") == 1  # looked at, and not due
    await attn.advance(timedelta(hours=1))
    await attn.drain()
    assert await attn.backlog("t/1") == 0
