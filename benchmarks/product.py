"""The product at work: publishing, and a worker with a handler that does nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
import uvloop

from attention_queue import AttentionQueue, Plan, Policy, Resource, WorkMessage, sql
from benchmarks.bare import BATCH, BODY, QUEUES, SPREAD, fresh
from benchmarks.processes import peak_memory

GROUP = "bench"
TYPE = "work"
PLAN = "bench"
SLOTS = 16
GIVE_UP = 120.0  # seconds after which a measurement has failed

_STATEMENTS = sql.load("benchmarks", "fill.sql")


def group(path: Path, quantum: int = 100) -> AttentionQueue:
    return AttentionQueue(
        GROUP, url=f"sqlite:///{path}", plans=[Plan(PLAN, Policy(max_messages=quantum))]
    )


def make(path: Path, resources: int) -> None:
    """A new database in which so many idle resources are registered, by plain SQL."""
    fresh(path)
    asyncio.run(_make_schema(path))
    db = apsw.Connection(str(path))
    with db:
        (gid,) = db.execute(_STATEMENTS["group"], (GROUP,)).fetchone()
        rows = ((rid, gid, f"r{rid}", PLAN) for rid in range(1, resources + 1))
        db.executemany(_STATEMENTS["resource"], rows)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


async def _make_schema(path: Path) -> None:
    async with group(path):
        pass


def fill(path: Path, rids: range, messages: int) -> None:
    """Give the resources so many messages in all, and a request each, by plain SQL."""
    db, now_ms = apsw.Connection(str(path)), time.time_ns() // 1_000_000
    each = messages // len(rids)
    with db:
        (gid,) = db.execute(_STATEMENTS["group"], (GROUP,)).fetchone()
        numbers = messages + len(rids)
        (last,) = db.execute(_STATEMENTS["ticket"], (numbers,)).fetchone()
        first = last - numbers + 1
        db.executemany(
            _STATEMENTS["message"],
            (
                (rid, seq, f"{seq:036d}", TYPE, now_ms, BODY)
                for index, rid in enumerate(rids)
                for seq in range(first + index * each, first + (index + 1) * each)
            ),
        )
        db.executemany(
            _STATEMENTS["request"],
            ((rid, gid, first + messages + n, now_ms, each) for n, rid in enumerate(rids)),
        )
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def publish_batches(start: Barrier, *, path: Path, messages: int, callers: int) -> float:
    """Rows a second by ``callers`` that each await ``publish_many``, over and over.

    Messages are made by ``queue.message`` meanwhile.
    """

    async def measure() -> float:
        async with group(path) as queue:
            numbers = iter(range(messages // BATCH))

            async def produce() -> None:
                for number in numbers:
                    await queue.publish_many(batch(queue, number))

            start.wait()
            began = time.perf_counter()
            await asyncio.gather(*(produce() for _ in range(callers)))
            return messages / (time.perf_counter() - began)

    make(path, QUEUES)
    return uvloop.run(measure())


def batch(queue: AttentionQueue, number: int) -> list[WorkMessage]:
    """The nth batch, spread as the bare one is."""
    return [
        queue.message(_RESOURCES[(number + n % SPREAD) % QUEUES], TYPE, BODY) for n in range(BATCH)
    ]


_RESOURCES = [Resource("tenant", f"r{rid}") for rid in range(1, QUEUES + 1)]


def publish_singles(start: Barrier, *, path: Path, messages: int, tasks: int) -> float:
    """Rows a second by ``tasks`` that each await ``publish``, over and over."""

    async def measure() -> float:
        async with group(path) as queue:
            numbers = iter(range(messages))

            async def produce() -> None:
                for number in numbers:
                    await queue.publish(_RESOURCES[number % QUEUES], TYPE, BODY)

            start.wait()
            began = time.perf_counter()
            await asyncio.gather(*(produce() for _ in range(tasks)))
            return messages / (time.perf_counter() - began)

    make(path, QUEUES)
    return uvloop.run(measure())


def publish_for(start: Barrier, *, path: Path, seconds: float) -> float:
    """Rows a second, published in a tight loop of batches."""

    async def measure() -> float:
        async with group(path) as queue:
            start.wait()
            began, rows = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                rows += (await queue.publish_many(batch(queue, rows // BATCH))).stored
            return rows / (time.perf_counter() - began)

    return uvloop.run(measure())


def handle_all(start: Barrier, *, path: Path, quantum: int, messages: int) -> tuple[float, float]:
    """Messages a second until all are settled, and the peak of memory in MB."""

    async def measure() -> float:
        async with serving(path, quantum) as counted:
            start.wait()
            began = time.perf_counter()
            await counted.serve(until=messages)
            return messages / (time.perf_counter() - began)

    return uvloop.run(measure()), peak_memory()


def handle_for(start: Barrier, *, path: Path, quantum: int, seconds: float) -> float:
    """Messages a second, handled and settled for so long."""

    async def measure() -> float:
        async with serving(path, quantum) as counted:
            start.wait()
            began = time.perf_counter()
            asyncio.get_running_loop().call_later(seconds, counted.drain)
            await counted.serve(until=None)
            return counted.handled / (time.perf_counter() - began)

    return uvloop.run(measure())


class Counted:
    """A worker whose handler does nothing but count."""

    def __init__(self, queue: AttentionQueue) -> None:
        self.handled = 0
        self._until: int | None = None
        queue.handler(TYPE)(self._handle)
        self._worker = queue.worker(slots=SLOTS)
        self.drain = self._worker.drain

    async def serve(self, *, until: int | None) -> None:
        self._until = until
        async with asyncio.timeout(GIVE_UP):
            await self._worker.run()

    async def _handle(self, payload: bytes) -> None:
        self.handled += 1
        if self.handled == self._until:
            self.drain()


@asynccontextmanager
async def serving(path: Path, quantum: int) -> AsyncIterator[Counted]:
    async with group(path, quantum) as queue:
        yield Counted(queue)


def spread(resources: int, active: int) -> range:
    """So many of the resources, as far from each other as can be."""
    return range(1, resources + 1, resources // active)


def made(path: Path, *, messages: int, resources: int = QUEUES) -> Path:
    """A new database with so many resources, all of them with work."""
    make(path, resources)
    fill(path, spread(resources, resources), messages)
    return path
