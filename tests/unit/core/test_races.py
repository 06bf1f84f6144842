"""Publishing while a slice of the same resource begins, runs and ends: nothing is left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import AttentionQueue, Context, Plan, Policy
from attention_queue.contract.events import SweepFinished
from attention_queue.testkit import Attn
from unit.core.serving import of_kind, serving, started

NEVER = timedelta(days=1)  # between two sweeps, so that they mend nothing here


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_published_at_any_moment_of_a_slice_is_served_without_a_sweep(
    attn: Attn, seed: int
) -> None:
    chance = random.Random(seed)
    policy = Policy(max_messages=5, max_consumers=2)
    queue = AttentionQueue("market", plans=[Plan("plan", policy)])
    sent: list[str] = []

    @queue.handler("it")
    async def it(message: int, context: Context) -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if message and chance.random() < 0.7:
            sent.append(await context.publish(context.resource, "it", message - 1))

    async def publish(name: str) -> None:
        for _ in range(100):
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            sent.append(await queue.publish(f"t/{name}", "it", 3))

    await attn.open(queue)
    async with serving(queue, slots=3, sweep_every=NEVER):
        async with asyncio.TaskGroup() as tasks:
            for name in "aabc":
                tasks.create_task(publish(name))
        for _ in range(300):
            await asyncio.sleep(0)
        assert sorted(started(attn)) == sorted(sent)

    assert of_kind(attn, SweepFinished) == []
    assert [await attn.backlog(f"t/{name}") for name in "abc"] == [0, 0, 0]


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[AttentionQueue]:
    async with AttentionQueue("market", url=f"sqlite:///{tmp_path}/a.db") as queue:
        yield queue


async def test_on_disk_a_publish_just_before_the_end_of_a_slice_is_served_at_once(
    on_disk: AttentionQueue,
) -> None:
    seen: set[int] = set()
    came = asyncio.Event()

    @on_disk.handler("it")
    async def it(message: int) -> None:
        seen.add(message)
        came.set()

    async with serving(on_disk, sweep_every=NEVER), asyncio.timeout(20):
        for n in range(300):  # each finds the slice of the one before at another moment of its end
            await on_disk.publish("t/1", "it", n)
            for _ in range(n % 7):
                await asyncio.sleep(0)
        while len(seen) < 300:
            came.clear()
            await came.wait()
