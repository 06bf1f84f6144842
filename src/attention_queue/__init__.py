"""Attention Queue: a durable work queue per tenant, attended on demand by a few workers.

The names below load on first use, so that ``import attention_queue`` alone pulls in neither an
engine nor an event loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_queue.contract import (
        Admit,
        Backoff,
        Defer,
        Discard,
        Done,
        Order,
        Override,
        Plan,
        Policy,
        Priority,
        Rate,
        Reject,
        Resource,
        ResourceState,
        Retry,
        State,
        Stop,
        WorkMessage,
    )
    from attention_queue.core.context import Context
    from attention_queue.core.worker import AttentionWorker
    from attention_queue.errors import AttentionQueueError
    from attention_queue.facade import BlockingQueue
    from attention_queue.queue import AttentionQueue

_CONTRACT = (
    "Admit", "Backoff", "Defer", "Discard", "Done", "Order", "Override", "Plan", "Policy",
    "Priority", "Rate", "Reject", "Resource", "ResourceState", "Retry", "State", "Stop",
    "WorkMessage",
)  # fmt: skip
_HOMES = {
    **dict.fromkeys(_CONTRACT, "attention_queue.contract"),
    "AttentionQueue": "attention_queue.queue",
    "AttentionQueueError": "attention_queue.errors",
    "AttentionWorker": "attention_queue.core.worker",
    "BlockingQueue": "attention_queue.facade",
    "Context": "attention_queue.core.context",
}

__all__ = [
    "Admit",
    "AttentionQueue",
    "AttentionQueueError",
    "AttentionWorker",
    "Backoff",
    "BlockingQueue",
    "Context",
    "Defer",
    "Discard",
    "Done",
    "Order",
    "Override",
    "Plan",
    "Policy",
    "Priority",
    "Rate",
    "Reject",
    "Resource",
    "ResourceState",
    "Retry",
    "State",
    "Stop",
    "WorkMessage",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attention_queue' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
