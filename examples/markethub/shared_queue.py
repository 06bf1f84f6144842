"""What it is compared with: one shared queue on SQLite, tuned as well as we can.

One table in order of arrival, claimed and settled in batches, with the same durability, slots and
calls. It need not survive its worker, which spares it a lease.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from attention_queue import Resource, WorkMessage
from markethub.hub import Task
from markethub.outside import call, write

SETUP = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS task (n INTEGER PRIMARY KEY, shop, body, taken DEFAULT 0);
CREATE INDEX IF NOT EXISTS free ON task (n) WHERE taken = 0;
"""
PUT = "INSERT INTO task (shop, body) VALUES (?, ?)"
DONE = "DELETE FROM task WHERE n = ?"
TAKE = """UPDATE task SET taken = 1 WHERE n IN
          (SELECT n FROM task WHERE taken = 0 ORDER BY n LIMIT ?) RETURNING n, shop, body"""
POLL = 0.004  # seconds between two looks for work
Row = tuple[int, str, bytes]


class SharedQueue:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._db.executescript(SETUP)
        self._thread = ThreadPoolExecutor(1)

    async def publish(self, messages: Iterable[WorkMessage]) -> None:
        """On the disk when it returns."""
        await self.commit([(str(m.resource), m.payload) for m in messages], [], 0)

    async def commit(self, put: list[tuple[str, bytes]], done: list[int], take: int) -> list[Row]:
        def transaction() -> list[Row]:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(PUT, put)
            self._db.executemany(DONE, [(n,) for n in done])
            taken = self._db.execute(TAKE, (take,)).fetchall()
            self._db.execute("COMMIT")
            return sorted(taken)

        return await asyncio.get_running_loop().run_in_executor(self._thread, transaction)

    def close(self) -> None:
        self._thread.shutdown()
        self._db.close()


async def serve(path: str, slots: int) -> None:
    """A worker, until its stdin is closed. It claims ahead, so that no slot waits for a commit."""
    shared, stopped, done = SharedQueue(path), asyncio.Event(), list[int]()
    asyncio.get_running_loop().add_reader(sys.stdin, stopped.set)
    ready: asyncio.Queue[Row] = asyncio.Queue()

    async def slot() -> None:
        while True:
            n, shop, body = row = await ready.get()
            task = msgspec.json.decode(body, type=Task)
            if await call(Resource.parse(shop), task.id) == 200:
                done.append(n)
            else:
                ready.put_nowait(row)

    async with asyncio.TaskGroup() as group:
        write("count", "workers started", 1)
        running = [group.create_task(slot()) for _ in range(slots)]
        while not stopped.is_set():
            if ready.qsize() < 2 * slots:
                settled, done[:] = done[:], []
                for row in await shared.commit([], settled, take=100):
                    ready.put_nowait(row)
            await asyncio.sleep(POLL if ready.empty() else POLL / 4)
        for each in running:
            each.cancel()
    shared.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
