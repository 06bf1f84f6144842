"""How long quiet resources wait beside a noisy one: from the publish call to the handler's start.

The generator and the worker are two processes, as in production: in one process the generator's
own work would delay the handlers that it measures. Both read the same monotonic clock.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import uvloop

from attention_queue import AttentionQueue, Resource
from attention_queue.contract import PLANS
from benchmarks.bare import BATCH, BODY, fresh
from benchmarks.processes import together
from benchmarks.product import GIVE_UP, GROUP, SLOTS

QUIET = 999  # resources
EACH = 5  # messages of each, one after the other in rounds over all
RATE = 500  # of them a second, at regular moments whatever the answers (an open loop)
NOISE = 20_000  # messages of a noisy resource, published before anything is served


@dataclass(frozen=True, slots=True)
class Load:
    """One or more noisy resources on a plan, and what a handler does for how long (seconds)."""

    noisy: int
    plan: str
    work: float


def p99_ms(load: Load, path: Path) -> float:
    """The 99th percentile of the waits of all quiet messages."""
    asyncio.run(_make_noise(load, fresh(path)))
    waits, _ = together(
        partial(_serve, path=path, load=load),
        partial(_generate, path=path),
    )
    return statistics.quantiles(waits, n=100)[98] * 1000


def _group(path: Path) -> AttentionQueue:
    return AttentionQueue(GROUP, url=f"sqlite:///{path}", plans=PLANS)


async def _make_noise(load: Load, path: Path) -> None:
    async with _group(path) as queue:
        for number in range(load.noisy):
            resource = Resource("noisy", f"r{number}")
            await queue.register(resource, plan=load.plan)
            for _ in range(NOISE // BATCH):
                await queue.publish_many(
                    [queue.message(resource, "noise", BODY) for _ in range(BATCH)]
                )


def _serve(start: Barrier, *, path: Path, load: Load) -> Sequence[float]:
    """The waits of the quiet messages, in seconds; ends with the last of them."""

    async def serve() -> Sequence[float]:
        waits: list[float] = []
        async with _group(path) as queue:
            worker = queue.worker(slots=SLOTS)

            @queue.handler("noise")
            async def noise(payload: bytes) -> None:
                if load.work:
                    await asyncio.sleep(load.work)

            @queue.handler("quiet")
            async def quiet(payload: bytes) -> None:
                waits.append(time.monotonic() - float(payload[:24]))
                if load.work:
                    await asyncio.sleep(load.work)
                if len(waits) == QUIET * EACH:
                    worker.drain()

            start.wait()
            async with asyncio.timeout(GIVE_UP):
                await worker.run()
        return waits

    return uvloop.run(serve())


def _generate(start: Barrier, *, path: Path) -> None:
    """Publishes one by one at regular moments; a late answer holds no later one back."""

    async def generate() -> None:
        async with _group(path) as queue, asyncio.TaskGroup() as tasks:
            start.wait()
            began = time.monotonic()
            for number in range(QUIET * EACH):
                await asyncio.sleep(began + number / RATE - time.monotonic())
                resource = Resource("quiet", f"r{number % QUIET}")
                tasks.create_task(_publish(queue, resource))

    uvloop.run(generate())


async def _publish(queue: AttentionQueue, resource: Resource) -> None:
    called = f"{time.monotonic():024.9f}".encode()
    await queue.publish(resource, "quiet", called + BODY[len(called) :])
