"""Handlers that take too long, ignore being cancelled, or block their process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from attention_queue import AttentionQueue, Backoff, Context, Plan, Policy, Resource
from attention_queue.contract.events import (
    CycleFinished,
    DeadLettered,
    Event,
    HandlerEnded,
    HandlerStuck,
    TokensRenewed,
    TokenWasLost,
    WorkerStopped,
)
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, ends, of_kind, rest, serving, started


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    plan = Plan("plan", Policy(handler_timeout=10 * SECOND, retry=Backoff(attempts=2)))
    queue = AttentionQueue("market", plans=[plan])

    @queue.handler("quick")
    async def quick(message: dict[str, object]) -> None: ...

    await attn.open(queue)
    return queue


@asynccontextmanager
async def at_the_end(release: asyncio.Event) -> AsyncIterator[None]:
    """Let a deaf handler go even if the test fails: no event loop could close before."""
    try:
        yield
    finally:
        release.set()


async def test_too_long_is_a_failed_attempt_and_ends_the_slice(
    attn: Attn, queue: AttentionQueue
) -> None:
    cancelled: list[int] = []

    @queue.handler("slow")
    async def slow(message: int, context: Context) -> None:
        try:
            await attn.clock.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(context.attempt)
            raise

    async with serving(queue):
        await attn.publish("t/1", "slow", 1)
        await attn.publish("t/1", "quick", {}, id="next")
        await attn.advance(timedelta(seconds=9.9))
        assert cancelled == []
        await attn.advance(SECOND)
        assert cancelled == [1]
        assert ends(attn)[0] == "timeout"
        assert "next" in started(attn)
        await attn.advance(15 * SECOND)

    (letter,) = await attn.dead()
    assert (letter.reason, letter.attempts, letter.error) == (
        "attempts_exhausted", 2, "HandlerTimeout",
    )  # fmt: skip
    assert "handler_timeout (10 s)" in letter.text


async def test_a_time_out_cancels_the_handler_and_not_the_scope_around_it(
    attn: Attn, queue: AttentionQueue
) -> None:
    closed: list[int] = []

    @queue.cycle_scope
    @asynccontextmanager
    async def session(resource: Resource) -> AsyncIterator[None]:
        yield
        task = asyncio.current_task()
        closed.append(task.cancelling() if task else -1)

    @queue.handler("slow")
    async def slow(message: int) -> None:
        await attn.clock.sleep(3600)

    async with serving(queue):
        await attn.publish("t/1", "slow", 1)
        await attn.advance(11 * SECOND)
        assert closed == [0]
        await attn.advance(15 * SECOND)


async def test_a_result_that_comes_in_spite_of_the_time_out_is_too_late(
    attn: Attn, queue: AttentionQueue
) -> None:
    @queue.handler("slow")
    async def slow(message: int) -> None:
        try:
            await attn.clock.sleep(3600)
        except asyncio.CancelledError:
            return

    async with serving(queue):
        await attn.publish("t/1", "slow", 1)
        await attn.advance(11 * SECOND)

        assert ends(attn)[0] == "timeout"
        assert await attn.backlog("t/1") == 1
        await attn.advance(15 * SECOND)
    assert [letter.error for letter in await attn.dead()] == ["HandlerTimeout"]


async def test_a_handler_that_ignores_cancellation_loses_its_slot_and_not_the_workers(
    attn: Attn, queue: AttentionQueue
) -> None:
    release = asyncio.Event()

    @queue.handler("deaf")
    async def deaf(message: int) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with serving(queue, slots=1) as worker, at_the_end(release):
        await attn.publish("t/1", "deaf", 1)
        await attn.publish("t/2", "quick", {}, id="other")
        await attn.advance(14 * SECOND)
        assert "other" not in started(attn)
        assert worker.stuck == 0

        await attn.advance(2 * SECOND)
        assert [(e.resource.id, e.type) for e in of_kind(attn, HandlerStuck)] == [("1", "deaf")]
        assert worker.stuck == 1
        assert "other" in started(attn)

        release.set()
        await rest(attn)
        assert worker.stuck == 0


async def test_the_token_of_a_stuck_handler_lapses_and_what_it_says_later_is_fenced_out(
    attn: Attn, queue: AttentionQueue
) -> None:
    release, calls = asyncio.Event(), 0

    @queue.handler("deaf")
    async def deaf(message: int) -> None:
        nonlocal calls
        calls += 1
        while calls == 1 and not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with serving(queue, slots=2) as worker, at_the_end(release):
        await attn.publish("t/1", "deaf", 1)
        await attn.advance(16 * SECOND)
        assert (worker.stuck, calls) == (1, 1)

        await attn.advance(35 * SECOND)  # its last renewal and a lease
        assert calls == 2
        assert await attn.backlog("t/1") == 0

        release.set()
        await rest(attn)
    assert len(of_kind(attn, TokenWasLost)) == 1
    assert of_kind(attn, CycleFinished)[-1].backlog == 0
    assert await attn.dead() == []


async def test_a_lease_is_renewed_as_long_as_a_slow_handler_is_in_its_time(attn: Attn) -> None:
    plan = Plan("plan", Policy(handler_timeout=timedelta(minutes=20), lease=10 * SECOND))
    queue = AttentionQueue("market", plans=[plan])

    @queue.handler("slow")
    async def slow(message: int) -> None:
        await attn.clock.sleep(600)

    await attn.open(queue)
    async with serving(queue, sweep_every=5 * SECOND):
        await attn.publish("t/1", "slow", 1)
        await attn.advance(timedelta(seconds=601))

    assert len(started(attn)) == 1
    assert len(ends(attn)) == 1
    assert len(of_kind(attn, TokensRenewed)) >= 600 // 10


class Heard:
    """Lets a test wait for events by name, on the real clock."""

    def __init__(self, queue: AttentionQueue, *kinds: type[Event]) -> None:
        self._all: list[Event] = []
        self._came = asyncio.Event()
        for kind in kinds:
            queue.bus.on(kind, self._hear)

    def _hear(self, event: Event) -> None:
        self._all.append(event)
        self._came.set()

    async def until(self, kind: type[Event], count: int = 1) -> None:
        try:
            async with asyncio.timeout(20):
                while sum(isinstance(event, kind) for event in self._all) < count:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(f"no {count} {kind.__name__} in 20 s: {self._all}") from None

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self._all)


@pytest.fixture
async def on_disk(tmp_path: object) -> AsyncIterator[AttentionQueue]:
    """On a file, where leases are renewed by a thread."""
    policy = Policy(lease=timedelta(seconds=1), handler_timeout=timedelta(seconds=30))
    url = f"sqlite:///{tmp_path}/a.db"
    async with AttentionQueue("market", url=url, plans=[Plan("plan", policy)]) as queue:
        yield queue


async def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(
    on_disk: AttentionQueue,
) -> None:
    calls: list[int] = []

    @on_disk.handler("blocks")
    async def blocks(message: int, context: Context) -> None:
        calls.append(context.fence)
        threading.Event().wait(2.5)

    heard = Heard(on_disk, CycleFinished, TokenWasLost)
    await on_disk.publish("t/1", "blocks", 1)
    async with serving(on_disk):
        await heard.until(CycleFinished)

    assert len(calls) == 1
    assert heard.count(TokenWasLost) == 0


async def test_a_stuck_thread_does_not_take_a_thread_from_later_handlers(
    attn: Attn, queue: AttentionQueue
) -> None:
    release, began = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @queue.handler("stuck")
    def stuck(message: int) -> None:
        loop.call_soon_threadsafe(began.set)
        release.wait(30)

    heard = Heard(queue, HandlerEnded, HandlerStuck, DeadLettered, WorkerStopped)
    try:
        async with serving(queue, slots=1) as worker:
            await attn.publish("t/1", "stuck", 1)
            async with asyncio.timeout(20):
                await began.wait()
            await attn.advance(16 * SECOND)
            assert worker.stuck == 1

            await attn.publish("t/2", "quick", {}, id="other")
            await heard.until(HandlerEnded)  # of the other one: the first has not ended
            assert worker.stuck == 1
            release.set()
            await heard.until(HandlerEnded, 2)
    finally:
        release.set()
