"""What stands around a handler: context, scope, lifespan, middleware, admission."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

import pytest

from attention_queue import (
    Admit,
    AttentionQueue,
    Backoff,
    Context,
    Defer,
    Discard,
    Plan,
    Policy,
    Resource,
)
from attention_queue.contract.events import LoopFailed, MessagesSettled, Published
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, rest, serving, started

Proceed = Callable[[], Awaitable[object]]
Admission = Admit | Defer | Discard


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    """A group whose type ``it`` does nothing."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(max_messages=10))])
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    return queue


async def test_a_context_says_what_it_is_about(attn: Attn, queue: AttentionQueue) -> None:
    seen: list[Context] = []
    deadlines: list[datetime] = []

    @queue.handler("look")
    async def look(message: dict[str, int], context: Context) -> None:
        seen.append(context)
        deadlines.append(context.deadline)

    for n in range(2):
        await attn.publish("t/1", "look", {"n": n}, id=f"m{n}")
        await attn.drain()

    first, second = seen
    assert (first.group, first.resource, first.attempt) == ("market", Resource("t", "1"), 1)
    assert (first.message.id, first.message.type) == ("m0", "look")
    assert second.fence > first.fence
    assert deadlines[0] == attn.clock.now() + timedelta(seconds=60)
    assert first.scope is None


async def test_what_a_handler_publishes_is_durable_before_its_message_is_settled(
    attn: Attn, queue: AttentionQueue
) -> None:
    @queue.handler("order")
    async def order(message: dict[str, int], context: Context) -> None:
        await context.publish("t/2", "it", {}, id=f"after-{context.message.id}")

    await attn.publish("t/1", "order", {}, id="m")
    await attn.drain()

    assert started(attn) == ["m", "after-m"]
    kinds = [type(e) for e in attn.events if isinstance(e, Published | MessagesSettled)]
    assert kinds[:2] == [Published, Published]


async def test_the_scope_is_opened_once_per_slice_and_closed_behind_it(
    attn: Attn, queue: AttentionQueue
) -> None:
    log: list[str] = []

    @queue.cycle_scope
    @asynccontextmanager
    async def session(resource: Resource) -> AsyncIterator[str]:
        log.append(f"open {resource}")
        yield f"session of {resource}"
        log.append(f"close {resource}")

    @queue.handler("call")
    async def call(message: int, context: Context) -> None:
        log.append(str(context.scope))

    for n in range(12):
        await attn.publish("t/1", "call", n)
    await attn.drain()

    assert log == [
        *("open t/1", *["session of t/1"] * 10, "close t/1"),
        *("open t/1", *["session of t/1"] * 2, "close t/1"),
    ]


@pytest.mark.parametrize("when", ["open", "close"])
async def test_a_scope_that_fails_charges_no_message_and_the_resource_waits(
    attn: Attn, queue: AttentionQueue, when: str
) -> None:
    healthy: list[bool] = []

    @queue.cycle_scope
    @asynccontextmanager
    async def session(resource: Resource) -> AsyncIterator[None]:
        if when == "open" and not healthy:
            raise ConnectionError("no session")
        yield
        if when == "close" and not healthy:
            raise ConnectionError("no session")

    attempts: list[int] = []

    @queue.handler("call")
    async def call(message: int, context: Context) -> None:
        attempts.append(context.attempt)

    await attn.publish("t/1", "call", 1)
    await attn.drain()
    assert ends(attn) == ["stopped"]
    assert [e.error for e in of_kind(attn, LoopFailed)] == ["ConnectionError: no session"]
    assert await attn.drain() == []

    healthy.append(True)
    await attn.publish("t/1", "call", 2)
    await attn.advance(5 * SECOND)
    await attn.drain()
    assert attempts == [1, 1]
    assert await attn.backlog("t/1") == 0


async def test_a_lifespan_is_open_while_the_worker_serves(
    attn: Attn, queue: AttentionQueue
) -> None:
    log: list[str] = []

    @queue.lifespan
    @asynccontextmanager
    async def pool() -> AsyncIterator[None]:
        log.append("open")
        yield
        log.append("close")

    @queue.handler("call")
    async def call(message: int) -> None:
        log.append("call")

    async with serving(queue):
        for n in range(2):
            await attn.publish("t/1", "call", n)
            await rest(attn)
        assert log == ["open", "call", "call"]
    assert log == ["open", "call", "call", "close"]


async def test_middleware_stands_around_each_call_the_first_outermost(
    attn: Attn, queue: AttentionQueue
) -> None:
    log: list[str] = []
    trace: ContextVar[str] = ContextVar("trace", default="")

    @queue.middleware
    async def outer(context: Context, proceed: Proceed) -> object:
        trace.set(context.message.id)
        log.append("outer in")
        try:
            return await proceed()
        finally:
            log.append("outer out")

    @queue.middleware
    async def inner(context: Context, proceed: Proceed) -> object:
        log.append("inner in")
        return await proceed()

    @queue.handler("call")
    def call(message: int) -> None:
        log.append(f"call {trace.get()}")

    await attn.publish("t/1", "call", 1, id="m")
    await attn.drain()

    assert log == ["outer in", "inner in", "call m", "outer out"]


async def test_middleware_may_answer_for_the_handler_and_its_error_is_a_failed_attempt(
    attn: Attn, queue: AttentionQueue
) -> None:
    @queue.middleware
    async def guard(context: Context, proceed: Proceed) -> object:
        if context.attempt == 1:
            raise PermissionError("not yet")
        return None

    @queue.handler("call")
    async def call(message: int) -> None:
        raise AssertionError("it was called")

    await attn.publish("t/1", "call", 1)
    await attn.drain()
    assert await attn.backlog("t/1") == 1

    await attn.advance(SECOND)
    await attn.drain()
    assert await attn.backlog("t/1") == 0


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
    assert len(attn.dead()) == 3


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
