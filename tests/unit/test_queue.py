"""The public face of a group: opening, closing, publishing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from attention_queue import AttentionQueue, Plan, Resource
from attention_queue.clock import LAST
from attention_queue.contract.events import Published
from attention_queue.errors import (
    ContractError,
    EngineUnavailable,
    InvalidMessage,
    InvalidResource,
    UnknownPlan,
)
from attention_queue.testkit import Attn
from unit.core.serving import of_kind, started


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    queue = AttentionQueue("market")
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    return queue


async def test_a_queue_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(EngineUnavailable, match="async with queue"):
        await AttentionQueue("market").publish("t/1", "it")


async def test_a_queue_is_opened_once_at_a_time(tmp_path: Path) -> None:
    queue = AttentionQueue("market", url=f"sqlite:///{tmp_path}/a.db")
    async with queue:
        with pytest.raises(ContractError, match="open already"):
            await queue.open()
    async with queue:
        await queue.publish("t/1", "it")


async def test_an_opening_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    queue = AttentionQueue("a" * 64, url=f"sqlite:///{tmp_path}/a.db")
    object.__setattr__(queue.service.group, "default_plan", "gone")

    with pytest.raises(UnknownPlan):
        await queue.open()

    assert queue.loop is None
    assert not [t for t in threading.enumerate() if t.name.startswith("attn-")]


async def test_a_resource_may_be_written_as_text(attn: Attn, queue: AttentionQueue) -> None:
    await queue.publish("t/1", "it", {})
    await queue.publish(Resource("t", "1"), "it", {})

    assert await attn.backlog("t/1") == 2


@pytest.mark.parametrize("text", ["", "t", "t/", "/1", "t/1\n", "t/" + "x" * 2_000])
async def test_a_bad_resource_is_refused(queue: AttentionQueue, text: str) -> None:
    with pytest.raises(InvalidResource):
        await queue.publish(text, "it", {})


@pytest.mark.parametrize("payload", [object(), {1, 2, object()}, b"x" * (256 * 1024 + 1)])
async def test_a_payload_that_cannot_be_stored_is_refused(
    attn: Attn, queue: AttentionQueue, payload: object
) -> None:
    with pytest.raises(ContractError):
        await queue.publish("t/1", "it", payload)
    assert attn.events == []


@pytest.mark.parametrize("headers", [{"x-death": "1"}, {"a": "\0"}, {"a": "b" * 9_000}])
async def test_bad_headers_are_refused(queue: AttentionQueue, headers: Mapping[str, str]) -> None:
    with pytest.raises(InvalidMessage, match="headers"):
        await queue.publish("t/1", "it", {}, headers=headers)


async def test_the_same_id_again_is_the_same_message_while_the_first_is_kept(
    attn: Attn, queue: AttentionQueue
) -> None:
    for _ in range(2):
        assert await queue.publish("t/1", "it", {}, id="m") == "m"
    await queue.publish("t/2", "it", {}, id="m")  # of another resource: another message
    await attn.drain()

    assert started(attn) == ["m", "m"]
    assert sum(event.duplicates for event in of_kind(attn, Published)) == 1


async def test_many_are_stored_together_or_not_at_all(attn: Attn) -> None:
    queue = AttentionQueue("market", register="explicit")
    await attn.open(queue)
    await queue.register("t/1")

    with pytest.raises(ContractError):
        await queue.publish_many(queue.message(f"t/{n}", "it", {}) for n in (1, 2))
    assert await attn.backlog("t/1") == 0

    put = await queue.publish_many(queue.message("t/1", "it", n) for n in range(3))
    assert (put.stored, put.requests, put.duplicates) == (3, 1, 0)


async def test_a_request_stands_for_any_number_of_messages(
    attn: Attn, queue: AttentionQueue
) -> None:
    for _ in range(10):
        await queue.publish("t/1", "it", {})

    assert [event.requests for event in of_kind(attn, Published)] == [1] + [0] * 9
    assert [event.coalesced for event in of_kind(attn, Published)] == [0] + [1] * 9


async def test_a_delayed_message_is_never_early(attn: Attn, queue: AttentionQueue) -> None:
    await queue.publish("t/1", "it", {}, delay=timedelta(microseconds=1_500))

    await attn.advance(timedelta(microseconds=1_400))
    assert await attn.drain() == []
    await attn.advance(timedelta(microseconds=600))
    assert len(await attn.drain()) == 1


async def test_a_delayed_message_does_not_hold_up_a_ready_one(
    attn: Attn, queue: AttentionQueue
) -> None:
    await queue.publish("t/1", "it", {}, id="later", delay=timedelta(hours=1))
    await queue.publish("t/1", "it", {}, id="now")

    await attn.drain()
    assert started(attn) == ["now"]
    await attn.advance(timedelta(hours=1))
    await attn.drain()
    assert started(attn) == ["now", "later"]


async def test_an_unknown_plan_is_refused_with_those_that_are_there(
    queue: AttentionQueue,
) -> None:
    with pytest.raises(UnknownPlan, match="basic"):
        await queue.register("t/1", plan="gold")
    await queue.set_plan(Plan("gold"))
    await queue.register("t/1", plan="gold")


async def test_a_worker_serves_open_groups_alone(queue: AttentionQueue) -> None:
    with pytest.raises(EngineUnavailable, match="async with queue"):
        AttentionQueue("other").worker()


async def test_plans_of_the_configuration_take_the_place_of_declared_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "[groups.shops.plans.basic]\nmax_messages = 7\n[groups.shops.plans.vip]\nlease = '9s'\n"
    (tmp_path / "attn.toml").write_text(text)
    queue = AttentionQueue("shops", url="sqlite:///shops.db")

    async with queue:
        await queue.register("t/1", plan="vip")
        plans = {plan.name: plan.policy for plan in queue.service.group.plans}

    assert plans["basic"].max_messages == 7
    assert plans["vip"].lease == timedelta(seconds=9)
    assert plans["pro"].max_consumers == 3


async def test_a_time_beyond_the_calendar_is_its_end(queue: AttentionQueue) -> None:
    message = queue.message("t/1", "it", delay=timedelta.max, ttl=timedelta.max)

    assert message.not_before == message.expires_at == LAST


@pytest.mark.parametrize("payload", [bytearray(b"it"), memoryview(b"it")])
async def test_bytes_of_any_kind_are_a_payload_as_they_are(
    queue: AttentionQueue, payload: object
) -> None:
    assert queue.message("t/1", "it", payload).payload == b"it"


async def test_a_resource_that_is_no_text_is_refused(queue: AttentionQueue) -> None:
    resource: Any = 5
    with pytest.raises(InvalidResource, match="want tenant/id, got int"):
        await queue.publish(resource, "it")
