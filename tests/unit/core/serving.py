"""A live worker on the virtual clock of a test, and how to wait for what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from attention_queue import AttentionQueue
from attention_queue.contract.events import CycleFinished, Event, HandlerStarted
from attention_queue.core.worker import AttentionWorker
from attention_queue.testkit import Attn

E = TypeVar("E", bound=Event)
NOW = timedelta(0)
SECOND = timedelta(seconds=1)


@asynccontextmanager
async def serving(*queues: AttentionQueue, **options: Any) -> AsyncIterator[AttentionWorker]:
    """A worker of these open queues; drained at the end, unless the body has drained it."""
    first, *others = queues
    worker = first.worker(*others, **options)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        yield worker
        worker.drain()


def of_kind(attn: Attn, kind: type[E]) -> list[E]:
    return [event for event in attn.events if isinstance(event, kind)]


def ends(attn: Attn) -> list[str]:
    """How the cycles ended, in order, in the words of the metric."""
    return [event.end.value for event in of_kind(attn, CycleFinished)]


def started(attn: Attn) -> list[str]:
    """The ids of the messages in the order in which their handlers began."""
    return [id for event in of_kind(attn, HandlerStarted) for id in event.messages]


async def rest(attn: Attn) -> None:
    """Let everybody run who can, at this moment."""
    await attn.advance(NOW)
