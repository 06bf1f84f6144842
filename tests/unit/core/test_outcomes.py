"""What a handler says, and what then becomes of its message and of its resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from attention_queue import (
    AttentionQueue,
    Backoff,
    Context,
    Done,
    Plan,
    Policy,
    Reject,
    Resource,
    Retry,
    State,
    Stop,
)
from attention_queue.contract.events import HandlerEnded, StateChanged
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, started

HOUR = timedelta(hours=1)


async def serve(attn: Attn, handler: Callable[..., Any], **policy: Any) -> AttentionQueue:
    """A group whose only type ``it`` is handled by ``handler``."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(**policy))])
    queue.handler("it")(handler)
    await attn.open(queue)
    return queue


@pytest.mark.parametrize("outcome", [None, Done(), [Done()], (None,)])
async def test_what_is_done_is_gone(attn: Attn, outcome: object) -> None:
    async def handle(message: int) -> object:
        return outcome

    await serve(attn, handle)
    await attn.publish("t/1", "it", 1)

    assert [end.value for end in await attn.drain()] == ["drained"]
    assert await attn.backlog("t/1") == 0


@pytest.mark.parametrize("outcome", [True, "done", 0, [Done(), Done()], {}])
async def test_an_answer_that_is_no_outcome_is_a_failed_attempt(
    attn: Attn, outcome: object
) -> None:
    await serve(attn, lambda message: outcome, retry=Backoff(attempts=1))
    await attn.publish("t/1", "it", {})

    await attn.drain()

    (letter,) = attn.dead()
    assert (letter.reason, letter.error) == ("attempts_exhausted", "TypeError")
    assert "a handler returns None, Done, Retry, Reject or Stop" in letter.text


async def test_a_retry_comes_back_after_its_time_as_the_next_attempt(attn: Attn) -> None:
    attempts: list[int] = []

    async def handle(message: int, context: Context) -> Retry | None:
        attempts.append(context.attempt)
        return Retry(timedelta(seconds=30)) if context.attempt == 1 else None

    await serve(attn, handle)
    await attn.publish("t/1", "it", 1)

    await attn.drain()
    await attn.advance(timedelta(seconds=29.999))
    assert await attn.drain() == []
    await attn.advance(timedelta(milliseconds=1))
    await attn.drain()

    assert attempts == [1, 2]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_fails_k_times_leaves_one_dead_letter_with_its_error(
    attn: Attn, is_async: bool
) -> None:
    def handle(message: int) -> None:
        raise ValueError(f"no price for {message}")

    async def handle_async(message: int) -> None:
        handle(message)

    await serve(attn, handle_async if is_async else handle, retry=Backoff(attempts=3))
    id = await attn.publish("t/1", "it", 7)

    for _ in range(5):
        await attn.drain()
        await attn.advance(HOUR)

    (letter,) = attn.dead()
    assert (letter.id, letter.reason, letter.attempts) == (id, "attempts_exhausted", 3)
    assert (letter.error, letter.text) == ("ValueError", "no price for 7")
    assert started(attn) == [id] * 3
    failure = of_kind(attn, HandlerEnded)[-1].failure
    assert failure and "no price for" in failure.trace


@pytest.mark.parametrize(
    "error", [SystemExit(3), StopIteration(), StopAsyncIteration(), MemoryError()]
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_whatever_a_handler_raises_is_one_failed_attempt_and_no_more(
    attn: Attn, error: BaseException, is_async: bool
) -> None:
    def handle(message: int) -> None:
        raise error

    async def handle_async(message: int) -> None:
        raise error

    await serve(attn, handle_async if is_async else handle, retry=Backoff(attempts=1))
    await attn.publish("t/1", "it", 7)
    await attn.publish("t/2", "it", 7)

    await attn.drain()

    assert [letter.reason for letter in attn.dead()] == ["attempts_exhausted"] * 2


async def test_a_handler_cancelled_from_within_has_failed(attn: Attn) -> None:
    async def handle(message: int) -> None:
        raise asyncio.CancelledError

    await serve(attn, handle, retry=Backoff(attempts=1))
    await attn.publish("t/1", "it", 7)

    await attn.drain()

    assert [letter.error for letter in attn.dead()] == ["CancelledError"]


async def test_the_waits_grow_and_are_capped_and_spread(attn: Attn) -> None:
    fails = Backoff(attempts=9, first=timedelta(seconds=1), factor=2, cap=timedelta(seconds=10))

    longest = [fails.wait(attempt, 0.999999999) / SECOND for attempt in range(1, 9)]
    half = [fails.wait(attempt, 0.5) / SECOND for attempt in range(1, 9)]

    assert longest == pytest.approx([1, 2, 4, 8, 10, 10, 10, 10])
    assert half == pytest.approx([0.5, 1, 2, 4, 5, 5, 5, 5])
    assert fails.wait(1, 0.0) == timedelta(0)


async def test_messages_that_failed_together_do_not_come_back_together(attn: Attn) -> None:
    moments: set[int] = set()

    async def handle(message: int, context: Context) -> None:
        if context.attempt == 1:
            raise ConnectionError
        moments.add(attn.clock.now_ms())

    await serve(attn, handle, retry=Backoff(first=timedelta(seconds=10)))
    for n in range(40):
        await attn.publish("t/1", "it", n)
    await attn.drain()
    for _ in range(100):
        await attn.advance(timedelta(milliseconds=100))
        await attn.drain()

    assert len(moments) > 20
    assert max(moments) - min(moments) > 5_000


async def test_a_rejected_message_is_a_dead_letter_with_the_reason(attn: Attn) -> None:
    await serve(attn, lambda message: Reject("out of season"))
    await attn.publish("t/1", "it", {})

    await attn.drain()

    assert [(d.reason, d.attempts) for d in attn.dead()] == [("out of season", 1)]


async def test_a_stop_keeps_the_message_first_and_counts_no_attempt(attn: Attn) -> None:
    seen: list[tuple[int, int]] = []

    async def handle(message: int, context: Context) -> Stop | None:
        seen.append((message, context.attempt))
        return Stop("the API is down", after=timedelta(seconds=20)) if len(seen) == 2 else None

    await serve(attn, handle)
    for n in range(3):
        await attn.publish("t/1", "it", n)

    assert [end.value for end in await attn.drain()] == ["stopped"]
    assert await attn.backlog("t/1") == 2
    await attn.advance(timedelta(seconds=19))
    assert await attn.drain() == []
    await attn.advance(timedelta(seconds=1))
    await attn.drain()

    assert seen == [(0, 1), (1, 1), (1, 1), (2, 1)]


async def test_a_stop_leaves_other_resources_alone(attn: Attn) -> None:
    seen: list[str] = []

    async def handle(message: int, context: Context) -> Stop | None:
        seen.append(context.resource.id)
        return Stop("down") if context.resource.id == "1" else None

    await serve(attn, handle)
    for id in ("1", "2"):
        await attn.publish(f"t/{id}", "it", 1)
    await attn.drain()

    assert seen == ["1", "2"]
    assert await attn.backlog("t/2") == 0


async def test_a_stop_with_a_state_moves_the_resource_there_until_it_is_cleared(
    attn: Attn,
) -> None:
    works: list[bool] = []
    queue = await serve(
        attn, lambda message: None if works else Stop("401", state=State.CREDENTIALS_ERROR)
    )
    await attn.publish("t/1", "it", {})
    await attn.drain()

    (changed,) = of_kind(attn, StateChanged)
    assert (changed.state, changed.reason, changed.actor) == (
        State.CREDENTIALS_ERROR, "401", "handler",
    )  # fmt: skip
    await attn.advance(HOUR)
    assert await attn.drain() == []
    works.append(True)
    await queue.resume("t/1")
    await attn.drain()
    assert await attn.backlog("t/1") == 0


async def test_a_stop_with_a_scope_holds_all_behind_one_outside_service(attn: Attn) -> None:
    seen: list[str] = []

    async def handle(message: int, context: Context) -> Stop | None:
        seen.append(context.resource.id)
        if attn.clock.monotonic() < 30:
            return Stop("503", after=timedelta(seconds=30), scope="routing.marketplace")
        return None

    queue = await serve(attn, handle)
    for id, where in (("a1", "amazon"), ("a2", "amazon"), ("e1", "ebay")):
        await queue.register(f"t/{id}", routing={"marketplace": where})
    for id in ("a1", "a2"):
        await attn.publish(f"t/{id}", "it", 1)
    await attn.drain()
    assert seen == ["a1"]

    await attn.advance(timedelta(seconds=30))
    await attn.drain()
    assert seen == ["a1", "a1", "a2"] or seen == ["a1", "a2", "a1"]
    assert await attn.backlog(Resource("t", "a2")) == 0


async def test_a_list_may_say_stop_for_some_and_done_for_others(attn: Attn) -> None:
    calls: list[list[int]] = []

    async def handle(messages: list[int]) -> list[Done | Stop]:
        calls.append(messages)
        stops = len(calls) == 1
        return [Stop("down") if stops and n in (1, 3) else Done() for n in messages]

    await serve(attn, handle)
    for n in range(5):
        await attn.publish("t/1", "it", n)
    await attn.drain()

    assert ends(attn) == ["stopped"]
    assert await attn.backlog("t/1") == 2
    await attn.advance(timedelta(seconds=5))
    await attn.drain()
    assert calls == [[0, 1, 2, 3, 4], [1, 3]]
