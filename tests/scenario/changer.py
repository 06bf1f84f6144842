"""A process that steps an operation or resumes a resource, and dies where it is told to.

``commit`` dies inside the nth transaction, when all is done but its COMMIT; ``after`` when the nth
is on the disk and nobody was told.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any, cast

from attention_queue import AttentionQueue
from attention_queue.contract.operation import Progress
from attention_queue.engines.sqlite import SqliteEngine
from scenario.victim import queue_for


class Count:
    """Dies at the nth passing."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def __call__(self) -> bool:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return False  # to SQLite: commit


async def change(queue: AttentionQueue, spec: dict[str, Any], after: Count) -> None:
    """One step after the other, or one resume."""
    if spec["role"] == "resume":
        await queue.resume(spec["resource"], actor="ann")
        after()
        return
    while True:
        figures = await queue.engine.step(spec["number"], spec["limit"])
        assert figures is not None
        after()
        if figures.progress is not Progress.RUNNING:
            return
        await queue.clock.sleep((figures.next - queue.clock.now()).total_seconds())


async def main(spec: dict[str, Any]) -> None:
    async with queue_for(spec) as queue:
        count, never = Count(spec["nth"]), Count(0)
        if spec["die_at"] == "commit":
            engine = cast(SqliteEngine, queue.engine)
            engine.writer.group._db.set_commit_hook(count)
        await change(queue, spec, count if spec["die_at"] == "after" else never)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
