"""A worker process: ``python -m markethub.worker URL SLOTS``. Killing it loses nothing."""

import asyncio
import sys
import time

from attention_queue.contract import events
from markethub.hub import queue
from markethub.outside import write


async def serve(url: str, slots: int) -> None:
    """Until stdin is closed, so that it cannot outlive whoever started it."""
    queue.url = url
    async with queue:
        worker = queue.worker(slots=slots)
        asyncio.get_running_loop().add_reader(sys.stdin, worker.drain)
        await worker.run()


if __name__ == "__main__":
    on = queue.bus.on
    on(events.WorkerStarted, lambda e: write("count", "workers started", 1))
    on(events.CycleStarted, lambda e: write("slice", e.resource.id, time.time(), e.waited))
    on(events.CycleFinished, lambda e: write("count", "requests republished", int(e.republished)))
    on(events.RequestWasted, lambda e: write("count", "requests wasted", 1))
    on(events.RequestBlocked, lambda e: write("count", f"blocked by {e.why.value}", 1))
    on(events.RequestDiscarded, lambda e: write("count", f"not served: {e.state.value}", 1))
    on(events.StateChanged, lambda e: write("count", f"moved to {e.state.value}", 1))
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
