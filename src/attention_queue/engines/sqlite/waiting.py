"""An operation with whoever waits for its result: a loop's future, or a thread's event."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

from attention_queue.engines.sqlite.transaction import Transaction


class Waiting:
    """``loop`` is None for a caller that blocks its thread. ``wakes``: it may make work ready."""

    __slots__ = ("done", "future", "loop", "operation", "result", "since", "wakes")

    def __init__(
        self,
        operation: Callable[[Transaction], Any],
        loop: asyncio.AbstractEventLoop | None,
        wakes: bool,
    ) -> None:
        self.operation, self.loop, self.wakes = operation, loop, wakes
        self.future: asyncio.Future[Any] | None = loop.create_future() if loop else None
        self.since = loop.time() if loop else 0.0
        self.done = None if loop else threading.Event()
        self.result: Any = None


def answer(group: Iterable[Waiting]) -> None:
    """Give those that wait on this loop their results, or raise what came instead."""
    for waiting in group:
        future = waiting.future
        if future is None or future.done():
            continue
        if isinstance(waiting.result, Exception):
            future.set_exception(waiting.result)
        else:
            future.set_result(waiting.result)
