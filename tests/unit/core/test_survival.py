"""Whatever fails, at whatever step: the loops go on and no token is left behind."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
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
    Retry,
    Stop,
)
from attention_queue.contract.events import CycleFinished, CycleStarted, LoopFailed
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import EngineUnavailable, TokenLost
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, of_kind, rest

VERBS = ["begin", "wait", "waiting", "settle", "finish", "renew", "reload", "lead", "sweep"]
ERRORS: list[Callable[[], Exception]] = [
    lambda: EngineUnavailable("no answer"),
    lambda: TokenLost("t/1", 0),
    lambda: OSError(28, "disk full"),
    lambda: ValueError("a bug"),
    lambda: AssertionError("a bug"),
    lambda: TimeoutError(),
    lambda: RecursionError(),
    lambda: ExceptionGroup("some", [ValueError("a bug")]),
]


class Failing:
    """The engine, of which some verbs raise before or after they have happened."""

    def __init__(self, engine: Any, fails: Callable[[str], Exception | None]) -> None:
        self._engine, self._fails = engine, fails

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)
        if name not in VERBS:
            return verb

        async def failing(*args: Any, **options: Any) -> Any:
            if error := self._fails(f"before {name}"):
                raise error
            result = await verb(*args, **options)
            if error := self._fails(f"after {name}"):
                raise error
            return result

        return failing


async def opened(attn: Attn) -> AttentionQueue:
    policy = Policy(max_messages=4, retry=Backoff(attempts=3), lease=10 * SECOND)
    queue = AttentionQueue("market", plans=[Plan("plan", policy)])

    @queue.handler("it")
    async def it(message: int) -> None:
        await attn.clock.sleep(0.3)  # longer than an outcome waits to be settled

    await attn.open(queue)
    return queue


def worker_on(queue: AttentionQueue, engine: Any, **options: Any) -> AttentionWorker:
    return AttentionWorker(
        engine, [queue.service], clock=queue.clock, bus=queue.bus, sweep_every=SECOND, **options
    )


async def serve_until_idle(attn: Attn, worker: AttentionWorker, resources: list[str]) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        for _ in range(200):
            await attn.advance(SECOND)
            if not [r for r in resources if await attn.backlog(r)]:
                break
        for _ in range(35):  # a lease whose finish was never heard has to end, and to be found
            await attn.advance(SECOND)
        worker.drain()
        await attn.advance(30 * SECOND)


@pytest.mark.parametrize("verb", ["begin", "wait", "settle", "finish", "lead", "sweep", "waiting"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_every_loop_outlives_every_error(attn: Attn, verb: str, when: str) -> None:
    queue = await opened(attn)
    left = [make() for make in ERRORS]

    def fails(point: str) -> Exception | None:
        return left.pop() if point == f"{when} {verb}" and left else None

    for n in range(40):
        await attn.publish(f"t/{n % 2}", "it", n)
    await attn.publish("t/0", "it", 40, delay=100 * SECOND)  # there is a time to wait for, too
    await serve_until_idle(
        attn, worker_on(queue, Failing(attn.engine, fails), slots=1), ["t/0", "t/1"]
    )

    assert len(left) < len(ERRORS)
    assert await attn.backlog("t/0") + await attn.backlog("t/1") == 0
    assert await attn.dead() == []


async def test_a_dispatcher_that_fails_waits_longer_each_time_and_says_so(attn: Attn) -> None:
    queue = await opened(attn)
    moments: list[float] = []

    def fails(point: str) -> Exception | None:
        if point == "before begin" and len(moments) < 5:
            moments.append(attn.clock.monotonic())
            return ValueError("a bug")
        return None

    await attn.publish("t/1", "it", 1)
    await serve_until_idle(attn, worker_on(queue, Failing(attn.engine, fails)), ["t/1"])

    waits = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert waits == pytest.approx([0.1, 0.5, 2.0, 5.0], abs=0.001)
    failed = [e for e in of_kind(attn, LoopFailed) if e.loop == "dispatch"]
    assert [e.error for e in failed] == ["ValueError: a bug"] * 5


@pytest.mark.parametrize("seed", range(6))
async def test_random_failures_at_every_step_leave_no_token_and_no_work(
    attn: Attn, seed: int
) -> None:
    chance = random.Random(seed)
    queue = await opened(attn)
    calm = False

    @queue.handler("wild")
    async def wild(message: int, context: Context) -> object:
        if calm:
            return None
        await attn.clock.sleep(chance.random() / 10)
        if chance.random() < 0.2:
            raise chance.choice([ValueError, SystemExit, asyncio.CancelledError, OSError])()
        return chance.choice([None, Done(), Retry(), Reject("no"), Stop("down", after=SECOND), 7])

    def fails(point: str) -> Exception | None:
        return None if calm or chance.random() > 0.03 else chance.choice(ERRORS)()

    resources = [f"t/{n}" for n in range(5)]
    for n in range(200):
        await attn.publish(resources[n % 5], "wild", n)
    for round in range(8):
        worker = worker_on(queue, Failing(attn.engine, fails), slots=3, grace=SECOND)
        async with asyncio.TaskGroup() as tasks:
            serves = tasks.create_task(worker.run())
            await attn.advance(4 * SECOND)
            _ = worker.drain() if round % 2 else serves.cancel()
            await attn.advance(2 * SECOND)

    calm = True
    await serve_until_idle(attn, worker_on(queue, attn.engine), resources)
    assert [await attn.backlog(each) for each in resources] == [0] * 5
    seen = await attn.insight.overview()
    assert sum(group.tokens + group.ended_tokens for group in seen.groups) == 0
    assert await attn.insight.unattended() == 0


async def test_a_finish_whose_answer_is_lost_is_said_again_and_counts_once(attn: Attn) -> None:
    queue = await opened(attn)
    lost = 2

    def fails(point: str) -> Exception | None:
        nonlocal lost
        if point != "after finish" or not lost:
            return None
        lost -= 1
        return EngineUnavailable("no answer")

    await attn.publish("t/1", "it", 1)
    await serve_until_idle(attn, worker_on(queue, Failing(attn.engine, fails)), ["t/1"])
    await rest(attn)

    assert len(of_kind(attn, CycleStarted)) == 1
    assert len(of_kind(attn, CycleFinished)) == 1
    assert await attn.backlog("t/1") == 0
