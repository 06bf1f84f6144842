"""Caps: how many messages of a resource may wait, and what takes no room beside them."""

from __future__ import annotations

from collections.abc import Sequence

from attention_queue.clock import from_ms
from attention_queue.contract import Resource, WorkMessage
from attention_queue.contract.codec import overrides_from_json
from attention_queue.contract.policy import UNBOUNDED
from attention_queue.engines.sqlite.directory import StoredGroup
from attention_queue.engines.sqlite.transaction import Row, Transaction


def max_backlog(tx: Transaction, group: StoredGroup, row: Row | None) -> int:
    """The plan's, unless an override says otherwise now."""
    if row is None:
        (of_plan,) = tx.first("max_backlog", group.gid, group.default_plan) or (UNBOUNDED,)
        return int(of_plan)
    limit: int = row[9]
    if row[10]:
        now = from_ms(tx.now_ms)
        for override in overrides_from_json(row[10]):
            if override.holds(now):
                limit = int(override.changes.get("max_backlog", limit))  # type: ignore[call-overload]
    return limit


def all_known(
    tx: Transaction, row: Row | None, messages: Sequence[WorkMessage], resource: Resource
) -> bool:
    """Whether a publish is the repetition of one that was stored: it takes no room."""
    of_it = (message.id for message in messages if message.resource == resource)
    return row is not None and all(tx.first("is_known", id, row[0]) for id in of_it)
