"""Publishing from code that is not async."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, TypeVar

from attention_queue.contract import Priority, Resource, WorkMessage
from attention_queue.errors import ContractError
from attention_queue.ports import Put
from attention_queue.queue import AttentionQueue

T = TypeVar("T")


class BlockingQueue:
    """``with BlockingQueue(queue) as q: q.publish(...)``, from any thread.

    If the queue is open already (a sync handler runs beside its event loop), it is used as it is;
    else it is opened on an event loop in a thread of its own and closed at the end.
    """

    def __init__(self, queue: AttentionQueue) -> None:
        self._queue = queue
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0  # in which it was opened

    def publish(
        self,
        resource: Resource | str,
        type: str,
        payload: object = None,
        *,
        id: str | None = None,
        delay: timedelta | None = None,
        ttl: timedelta | None = None,
        priority: Priority | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """See ``AttentionQueue.publish``; returns when it is durable and asked for."""
        return self._wait(
            self._queue.publish(
                resource,
                type,
                payload,
                id=id,
                delay=delay,
                ttl=ttl,
                priority=priority,
                headers=headers,
            )
        )

    def publish_many(self, messages: Iterable[WorkMessage]) -> Put:
        """See ``AttentionQueue.publish_many``."""
        return self._wait(self._queue.publish_many(messages))

    def __enter__(self) -> BlockingQueue:
        self._process = os.getpid()
        if self._queue.loop is not None:
            self._loop = self._queue.loop
            return self
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="attn-blocking")
        self._thread.start()
        try:
            self._wait(self._queue.open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            try:
                self._wait(self._queue.close())
            finally:
                self._stop()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            coroutine.close()
            raise ContractError("use it inside with BlockingQueue(queue)")
        if os.getpid() != self._process:  # the thread that would answer is not here
            coroutine.close()
            raise ContractError("it was opened before this process was forked: open one here")
        if _running_loop() is self._loop:
            coroutine.close()
            raise ContractError("this is the queue's own event loop: await queue.publish instead")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _stop(self) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
