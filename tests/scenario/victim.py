"""A worker or publisher process that dies where it is told to; started by the scenario tests.

It is the production worker on a production engine. What kills it listens to the closed list of
events, or stands before and after the engine's verbs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from attention_queue import AttentionQueue, Context, Plan, Policy
from attention_queue.contract import events

GROUP = "market"


def queue_for(spec: dict[str, Any]) -> AttentionQueue:
    lease = timedelta(seconds=spec.get("lease", 1.0))
    common = {"max_messages": spec.get("quantum", 5), "lease": lease}
    plans = [
        Plan("one", Policy(max_consumers=1, **common)),
        Plan("three", Policy(max_consumers=3, **common)),
    ]
    return AttentionQueue(GROUP, url=spec["url"], plans=plans)


class Death:
    """Kills this process at the nth passing of one named point."""

    def __init__(self, point: str, nth: int) -> None:
        self._point, self._left = point, nth

    def pass_by(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """The engine, with a point before and after each verb."""

    def __init__(self, engine: Any, death: Death) -> None:
        self._engine, self._death = engine, death

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)
        if name not in ("put", "begin", "settle", "finish"):
            return verb

        async def mortal(*args: Any, **options: Any) -> Any:
            self._death.pass_by(f"before {name}")
            result = await verb(*args, **options)
            self._death.pass_by(f"after {name}")
            return result

        return mortal


async def testify(spec: dict[str, Any], context: Context) -> None:
    """Have the effect in front of the witness."""
    reader, writer = await asyncio.open_unix_connection(spec["witness"])
    try:
        line = f"{context.resource} {context.message.id} {context.fence}\n"
        writer.write(line.encode())
        await reader.readline()
        await asyncio.sleep(spec.get("work", 0.0))
        writer.write(b"effect\n")
        await reader.readline()
    finally:
        writer.close()


async def work(spec: dict[str, Any], death: Death) -> None:
    queue = queue_for(spec)

    @queue.handler("work")
    async def work(payload: dict, context: Context) -> None:  # type: ignore[type-arg]
        await testify(spec, context)
        death.pass_by("effect made")

    @queue.handler("deadly")
    async def deadly(payload: dict, context: Context) -> None:  # type: ignore[type-arg]
        os._exit(9)

    for kind in (events.HandlerStarted, events.HandlerEnded, events.TokensRenewed):
        queue.bus.on(kind, lambda event: death.pass_by(event.name))
    queue.bus.on(events.LoopFailed, lambda event: print(event, file=sys.stderr, flush=True))
    async with queue:
        queue._engine = Mortal(queue.engine, death)  # type: ignore[assignment]
        worker = queue.worker(
            slots=spec.get("slots", 4),
            grace=timedelta(seconds=spec.get("grace", 10)),
            sweep_every=timedelta(seconds=3600),
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.drain)
        print("ready", flush=True)
        await worker.run()


async def publish(spec: dict[str, Any], death: Death) -> None:
    """Publish one by one, and say each id once it is accepted."""
    queue = queue_for(spec)
    async with queue:
        queue._engine = Mortal(queue.engine, death)  # type: ignore[assignment]
        for n in range(spec["messages"]):
            id = f"{spec['prefix']}-{n}"
            await queue.publish(f"t/{spec['resource']}", "work", {"n": n}, id=id)
            print(id, flush=True)


if __name__ == "__main__":
    spec = json.loads(sys.argv[1])
    death = Death(spec.get("die_at", ""), spec.get("nth", 1))
    asyncio.run(work(spec, death) if spec["role"] == "worker" else publish(spec, death))
