"""The application's own say before a resource is served."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue import (
    Admit,
    AttentionQueue,
    Backoff,
    Defer,
    Discard,
    Plan,
    Policy,
    Resource,
)
from attention_queue.clock import ManualClock
from attention_queue.contract.events import LoopFailed
from attention_queue.core.service import Admissions
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind

Admission = Admit | Defer | Discard


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    """A group whose type ``it`` does nothing."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(max_messages=10))])
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    return queue


def admitting(queue: AttentionQueue, *answers: Admission | Exception) -> list[Resource]:
    """Answer in this order, the last one for ever; returns who was asked about."""
    asked: list[Resource] = []
    left = list(answers)

    @queue.admit()
    async def admit(resource: Resource) -> Admission:
        asked.append(resource)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return asked


async def test_admission_may_change_the_policy_of_the_slice(
    attn: Attn, queue: AttentionQueue
) -> None:
    admitting(queue, Admit({"max_messages": 2, "retry": Backoff(attempts=1)}))

    @queue.handler("call")
    async def call(message: int) -> None:
        if message == 0:  # the directory changes under the slice; what was admitted stands
            await queue.register("t/9")
        raise ValueError

    for n in range(3):
        await attn.publish("t/1", "call", n)
    await attn.drain()

    assert ends(attn) == ["messages", "drained"]
    assert len(await attn.dead()) == 3


async def test_admission_may_defer_a_resource(attn: Attn, queue: AttentionQueue) -> None:
    admitting(queue, Defer(attn.clock.now() + 60 * SECOND, "a lock"), Admit())
    await attn.publish("t/1", "it", {})

    await attn.drain()
    assert ends(attn) == ["stopped"]
    await attn.advance(59 * SECOND)
    assert await attn.drain() == []
    await attn.advance(SECOND)
    assert [end.value for end in await attn.drain()] == ["drained"]


async def test_admission_may_discard_the_request_and_the_work_stays(
    attn: Attn, queue: AttentionQueue
) -> None:
    admitting(queue, Discard("no such shop"), Admit())
    await attn.publish("t/1", "it", {})

    await attn.drain()
    await attn.advance(timedelta(minutes=9))
    assert await attn.drain() == []
    assert await attn.backlog("t/1") == 1
    await attn.advance(timedelta(minutes=1))
    await attn.drain()
    assert await attn.backlog("t/1") == 0


@pytest.mark.parametrize(
    "answer", [ConnectionError("down"), Admit({"max_messages": 0}), Admit({"colour": 1}), "yes"]
)
async def test_an_admission_that_fails_charges_nobody(
    attn: Attn, queue: AttentionQueue, answer: Admission
) -> None:
    admitting(queue, answer, Admit())
    await attn.publish("t/1", "it", {})

    await attn.drain()
    assert ends(attn) == ["stopped"]
    assert [e.loop for e in of_kind(attn, LoopFailed)] == ["admit"]
    await attn.advance(5 * SECOND)
    await attn.drain()
    assert await attn.backlog("t/1") == 0


async def test_an_admission_is_asked_once_in_its_time(attn: Attn, queue: AttentionQueue) -> None:
    asked = admitting(queue, Admit())
    for _ in range(3):
        await attn.publish("t/1", "it", {})
        await attn.drain()
    assert asked == [Resource("t", "1")]

    await attn.advance(5 * SECOND)
    await attn.publish("t/1", "it", {})
    await attn.drain()
    assert len(asked) == 2


async def test_what_is_remembered_of_admissions_is_bounded() -> None:
    async def admit(resource: Resource) -> Admission:
        return Admit()

    admissions, clock = Admissions(admit, 5 * SECOND), ManualClock()
    for n in range(10_100):
        await admissions.of(Resource("t", str(n)), clock)

    assert len(admissions._answers) == 10_000
