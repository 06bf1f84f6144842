"""Stopping by a person's word: what runs finishes its message, or is cancelled at once."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from attention_queue import (
    Admit,
    AttentionQueue,
    Context,
    Plan,
    Policy,
    ResourceState,
    State,
    Stop,
)
from attention_queue.contract.events import CycleFinished, HandlerEnded, HandlerStuck
from attention_queue.core.call import LET_GO
from attention_queue.testkit import Attn
from unit.core.serving import ends, of_kind, rest, serving, started

MINUTE = timedelta(minutes=1)
LOOK = timedelta(seconds=0.25)  # the watch looks at least so often


class Slow:
    """A handler that waits until it may end, and what happened to it."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.cancelled: list[str] = []
        self.attempts: list[int] = []

    async def __call__(self, message: dict[str, int], context: Context) -> None:
        self.attempts.append(context.attempt)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled.append(context.message.id)
            raise


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def queue(attn: Attn, slow: Slow) -> AttentionQueue:
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(handler_timeout=MINUTE))])

    @queue.handler("slow")
    async def handle(message: dict[str, int], context: Context) -> None:
        await slow(message, context)

    await attn.open(queue)
    return queue


async def test_a_pause_lets_the_message_that_runs_finish(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    await attn.publish("t/1", "slow", {}, id="1")
    await attn.publish("t/1", "slow", {}, id="2")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="check")
        await attn.advance(LOOK * 4)
        assert slow.cancelled == []
        slow.may_end.set()
        await rest(attn)

        assert (started(attn), ends(attn)) == (["1"], ["state"])
        assert await attn.backlog("t/1") == 1


async def test_stop_now_cancels_the_handler_and_its_message_is_back_without_an_attempt(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    await attn.publish("t/1", "slow", {}, id="1")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="wrong prices", stop_now=True)
        await attn.advance(LOOK)

        assert (slow.cancelled, ends(attn)) == (["1"], ["state"])
        assert await attn.backlog("t/1") == 1
        slow.may_end.set()
        await queue.resume("t/1")
        await rest(attn)

    assert slow.attempts == [1, 1]
    assert await attn.backlog("t/1") == 0


async def test_a_stop_of_one_resource_leaves_the_others_alone(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    for n in range(3):
        await attn.publish(f"t/{n}", "slow", {}, id=f"{n}")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="check", stop_now=True)
        await attn.advance(LOOK)
        assert slow.cancelled == ["1"]
        slow.may_end.set()
        await rest(attn)

    assert sorted(ends(attn)) == ["drained", "drained", "state"]


async def test_a_pause_that_is_over_before_the_watch_looks_cancels_nothing(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    await attn.publish("t/1", "slow", {}, id="1")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="check", stop_now=True)
        await queue.resume("t/1")
        await attn.advance(LOOK * 2)
        slow.may_end.set()
        await rest(attn)

    assert (slow.cancelled, await attn.backlog("t/1")) == ([], 0)


async def test_a_later_pause_without_stop_now_does_not_cancel(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    await queue.register("t/1")
    await queue.pause("t/1", reason="first", stop_now=True)
    await queue.resume("t/1")
    await attn.publish("t/1", "slow", {}, id="1")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="second")
        await attn.advance(LOOK * 2)
        assert slow.cancelled == []
        slow.may_end.set()
        await rest(attn)

    assert await attn.backlog("t/1") == 0


async def test_a_handler_that_ignores_being_stopped_is_let_go_when_its_time_is_over(
    attn: Attn, queue: AttentionQueue
) -> None:
    ignored = []
    may_end = asyncio.Event()

    @queue.handler("stubborn")
    async def stubborn(message: dict[str, int], context: Context) -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                ignored.append(context.message.id)

    await attn.publish("t/1", "stubborn", {}, id="1")
    async with serving(queue) as worker:
        await rest(attn)
        await queue.pause("t/1", reason="check", stop_now=True)
        await attn.advance(LOOK)
        assert (ignored, worker.stuck) == (["1"], 0)

        await attn.advance(MINUTE + timedelta(seconds=LET_GO) + LOOK)

        assert worker.stuck == 1
        assert len(of_kind(attn, HandlerStuck)) == 1
        may_end.set()
        await rest(attn)
        assert worker.stuck == 0


async def test_a_handler_that_swallows_being_stopped_has_not_handled_its_message(
    attn: Attn, queue: AttentionQueue
) -> None:
    @queue.handler("half")
    async def half(message: dict[str, int], context: Context) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return  # it cleans up and says nothing

    await attn.publish("t/1", "half", {}, id="1")
    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="check", stop_now=True)
        await attn.advance(LOOK)

        assert (ends(attn), await attn.backlog("t/1")) == (["state"], 1)


async def test_a_thread_that_cannot_be_stopped_keeps_its_token_and_its_work_counts(
    attn: Attn, queue: AttentionQueue
) -> None:
    running, may_end = threading.Event(), threading.Event()

    @queue.handler("thread")
    def thread(message: dict[str, int]) -> None:
        running.set()
        may_end.wait(10)

    await attn.publish("t/1", "thread", {}, id="1")
    finished = asyncio.Event()
    attn.bus.on(CycleFinished, lambda event: finished.set())
    async with serving(queue):
        await rest(attn)
        await asyncio.to_thread(running.wait, 10)
        await queue.pause("t/1", reason="check", stop_now=True)
        await attn.advance(LOOK * 2)
        assert ends(attn) == []
        may_end.set()
        async with asyncio.timeout(10):
            await finished.wait()

    assert (ends(attn), await attn.backlog("t/1")) == (["state"], 0)


async def test_a_stopped_handler_is_told_as_a_stop(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    await attn.publish("t/1", "slow", {}, id="1")

    async with serving(queue):
        await rest(attn)
        await queue.pause("t/1", reason="check", stop_now=True)
        await attn.advance(LOOK)

        assert [event.outcomes for event in of_kind(attn, HandlerEnded)] == [("stop",)]
        assert await attn.dead() == []


async def test_a_change_that_the_watch_sees_first_leaves_the_words_of_admission_in_force(
    attn: Attn, queue: AttentionQueue, slow: Slow
) -> None:
    @queue.admit()
    async def admit(resource: object) -> Admit:
        return Admit({"max_messages": 2})

    for n in range(3):
        await attn.publish("t/1", "slow", {}, id=f"{n}")
    async with serving(queue):
        await rest(attn)
        await queue.set_plan(Plan("plan", Policy(max_messages=50, handler_timeout=MINUTE)))
        await attn.advance(LOOK)
        slow.may_end.set()
        await rest(attn)

    assert ends(attn)[0] == "messages"
    assert [event.handled for event in of_kind(attn, CycleFinished)] == [2, 1]


@pytest.mark.parametrize("state", [State.PAUSED, State.MAINTENANCE])
async def test_a_handlers_stop_does_not_undo_what_a_person_has_set_meanwhile(
    attn: Attn, queue: AttentionQueue, state: State
) -> None:
    @queue.handler("locked")
    async def locked(message: dict[str, int]) -> Stop:
        await queue.set_state("t/1", ResourceState(state, "by ann"), actor="ann")
        return Stop("password changed", state=State.CREDENTIALS_ERROR)

    await attn.publish("t/1", "locked", {}, id="1")
    async with serving(queue):
        await rest(attn)
    await queue.engine.open_group(queue.service.group)

    seen = await attn.insight.resource("market", queue.message("t/1", "x").resource)
    assert seen is not None
    assert (seen.state.state, seen.state.actor, seen.backlog) == (state, "ann", 1)
