"""The ceilings: the same work in three bare tables through apsw, with nothing around it.

WAL, ``synchronous=FULL``, bodies of 256 bytes, 1,000 queues. There is no unique message id, no
state, no policy, no limit, no retry, no fence, no Python object for a message.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
import uvloop

from attention_queue import sql

QUEUES = 1_000
SPREAD = 10  # queues that one batch is spread on
BATCH = 100
BODY = b"x" * 256

_STATEMENTS = sql.load("benchmarks", "bare.sql")
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "cache_size = -65536",
    "temp_store = MEMORY",
    "mmap_size = 268435456",
    "wal_autocheckpoint = 4000",
)


def fresh(path: Path) -> Path:
    """The path, with no database there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal", "-shm", "-door", "-turn"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return path


class Bare:
    """One connection to a new file with the three tables."""

    def __init__(self, path: Path) -> None:
        self.db = apsw.Connection(str(fresh(path)))
        for pragma in _PRAGMAS:
            self.db.execute(f"PRAGMA {pragma}")
        for table in ("make_work", "make_attention", "make_lease"):
            self.db.execute(_STATEMENTS[table])
        self._seq = itertools.count(1)
        self._first = itertools.cycle(range(QUEUES))

    def fill(self, messages: int) -> None:
        """Work for all queues, and a request for each."""
        self.db.execute("BEGIN IMMEDIATE")
        self.put((number % QUEUES, next(self._seq), BODY) for number in range(messages))
        self.ask(range(QUEUES))
        self.db.execute("COMMIT")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def put(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        self.db.executemany(_STATEMENTS["put"], rows)

    def ask(self, queues: Iterable[int]) -> None:
        self.db.executemany(_STATEMENTS["ask"], ((queue,) for queue in queues))

    def publish_batch(self) -> None:
        """One transaction of ``BATCH`` rows."""
        first = next(self._first)
        queues = [(first + number % SPREAD) % QUEUES for number in range(BATCH)]
        self.db.execute("BEGIN IMMEDIATE")
        self.put([(queue, next(self._seq), BODY) for queue in queues])
        self.ask(sorted(set(queues)))
        self.db.execute("COMMIT")

    def cycle(self, size: int) -> int:
        """Two transactions: claim, lease and read; delete, look, ask and release. Rows done."""
        execute = self.db.execute
        execute("BEGIN IMMEDIATE")
        claimed = execute(_STATEMENTS["claim"]).fetchall()
        if not claimed:
            execute("COMMIT")
            return 0
        queue = claimed[0][0]
        execute(_STATEMENTS["lease"], (queue, "owner", 30))
        rows = execute(_STATEMENTS["take"], (queue, size)).fetchall()
        execute("COMMIT")

        execute("BEGIN IMMEDIATE")
        if rows:
            execute(_STATEMENTS["done"], (queue, rows[-1][0]))
        if execute(_STATEMENTS["look"], (queue,)).fetchall():
            execute(_STATEMENTS["ask"], (queue,))
        execute(_STATEMENTS["release"], (queue,))
        execute("COMMIT")
        return len(rows)


def publish_batches(start: Barrier, *, path: Path, messages: int) -> float:
    """Rows a second: ``enq 100``."""
    bare = Bare(path)
    start.wait()
    began = time.perf_counter()
    for _ in range(messages // BATCH):
        bare.publish_batch()
    return messages / (time.perf_counter() - began)


def cycles(start: Barrier, *, path: Path, size: int, messages: int) -> float:
    """Rows a second in cycles of at most ``size``, one after the other, until all are done."""
    bare = Bare(path)
    bare.fill(messages)
    start.wait()
    began, left = time.perf_counter(), messages
    while left:
        left -= bare.cycle(size)
    return messages / (time.perf_counter() - began)


def publish_and_cycle(start: Barrier, *, path: Path, seconds: float, backlog: int) -> float:
    """Rows in and out a second, one process doing a batch and a cycle in turn."""
    bare = Bare(path)
    bare.fill(backlog)
    start.wait()
    began, rows = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        bare.publish_batch()
        rows += BATCH + bare.cycle(BATCH)
    return rows / (time.perf_counter() - began)


class GroupCommit:
    """One thread commits whatever rows wait; whoever put one awaits that commit."""

    def __init__(self, bare: Bare) -> None:
        self._bare, self._loop = bare, asyncio.get_running_loop()
        self._waiting: list[tuple[tuple[int, int, bytes], asyncio.Future[None]]] = []
        self._some, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    async def put(self, row: tuple[int, int, bytes]) -> None:
        done = self._loop.create_future()
        with self._some:
            self._waiting.append((row, done))
            self._some.notify()
        await done

    def close(self) -> None:
        with self._some:
            self._closed = True
            self._some.notify()
        self._thread.join()

    def _write(self) -> None:
        for group in self._groups():
            rows = [row for row, _ in group]
            self._bare.db.execute("BEGIN IMMEDIATE")
            self._bare.put(rows)
            self._bare.ask(sorted({queue for queue, _, _ in rows}))
            self._bare.db.execute("COMMIT")
            self._loop.call_soon_threadsafe(_answer, [done for _, done in group])

    def _groups(self) -> Iterator[list[tuple[tuple[int, int, bytes], asyncio.Future[None]]]]:
        while True:
            with self._some:
                self._some.wait_for(lambda: self._waiting or self._closed)
                group, self._waiting = self._waiting, []
            if not group:
                return
            yield group


def _answer(futures: list[asyncio.Future[None]]) -> None:
    for each in futures:
        each.set_result(None)


def publish_singles(start: Barrier, *, path: Path, messages: int, tasks: int) -> float:
    """Rows a second by ``tasks`` that each put one row and await its commit, over and over."""

    async def measure() -> float:
        writer = GroupCommit(Bare(path))
        numbers = iter(range(1, messages + 1))

        async def produce() -> None:
            for number in numbers:
                await writer.put((number % QUEUES, number, BODY))

        start.wait()
        began = time.perf_counter()
        await asyncio.gather(*(produce() for _ in range(tasks)))
        took = time.perf_counter() - began
        writer.close()
        return messages / took

    return uvloop.run(measure())
