"""What a worker process shows of itself: log lines on stderr, and metrics on a port if asked to."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from attention_queue import app
from attention_queue.cli.output import console, talk
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import InvalidUrl
from attention_queue.observe.logs import Logs, logger_to
from attention_queue.observe.opening import metrics_port
from attention_queue.ports import Engine, Insight
from attention_queue.queue import AttentionQueue

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Shown:
    level: Level = "warning"
    port: int | None = None  # None: no metrics

    def flags(self, number: int) -> list[str]:
        """For the child process of that number: each has a port of its own, one after the other."""
        port = ["--metrics-port", str(self.port and self.port + number)]
        return ["--log", self.level, *(port if self.port is not None else [])]


@asynccontextmanager
async def observed(
    worker: AttentionWorker,
    engine: Engine,
    address: str,
    *,
    queues: Sequence[AttentionQueue],
    shown: Shown,
) -> AsyncIterator[None]:
    """Enter it before the worker runs."""
    async with AsyncExitStack() as stack:
        colors = not console(sys.stderr).no_color
        logger = logger_to(sys.stderr, clock=engine.clock, colors=colors)
        stack.callback(Logs(engine.bus, logger, level=shown.level).attach())
        if shown.port is not None:
            served = {q.name: [plan.name for plan in q.service.group.plans] for q in queues}
            if insight := _insight(address):
                stack.push_async_callback(insight.close)
            opening = metrics_port(engine, worker, port=shown.port, served=served, insight=insight)
            server = await stack.enter_async_context(opening)
            talk(f"metrics on http://127.0.0.1:{server.port}/metrics")
        yield


def _insight(address: str) -> Insight | None:
    try:
        return app.open_insight(address)
    except InvalidUrl:  # in memory there is no second connection, and no gauges of the store
        return None
