"""The belt: find work that no request stands for, tokens that ended unnoticed, and mend it."""

from __future__ import annotations

from collections import Counter

from attention_queue.contract import Hold, State
from attention_queue.engines.sqlite.directory import make_ready, state_at
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.ports import Swept

_ENDED_FOR_MS = 60_000  # a token that nobody found for this long after its end


def sweep(tx: Transaction, after: int, limit: int) -> Swept:
    """One page of the resources that have work, by key: idle ones cost nothing, however many.

    A spurious repair costs one empty cycle.
    """
    repairs: Counter[str] = Counter()
    if after < 0:
        for (rid,) in tx.all("ended_tokens", tx.now_ms - _ENDED_FOR_MS, _ENDED_FOR_MS, limit):
            repairs["ended_token"] += ask_for(tx, rid)
    for _ in range(limit):
        row = tx.first("next_with_work", after)
        if row is None:
            return Swept(None, dict(repairs))
        after = row[0]
        if why := fault(tx, after):
            repairs[why] += ask_for(tx, after)
    return Swept(after, dict(repairs))


def fault(tx: Transaction, rid: int) -> str | None:
    """What is wrong with the request of a resource that has work. Changes nothing."""
    row, state = tx.first("unattended", rid), tx.first("state", rid)
    assert row is not None and state is not None
    _gid, _lane, due_ms, hold_why, _backlog = row
    if due_ms is None:
        return "work_without_request"
    if state_at(state[0], state[1], tx.now_ms) is not State.ACTIVE or due_ms == 0:
        return None
    if hold_why == Hold.STATE.value:
        return "held_though_active"
    if hold_why is None and not tx.all("tokens", rid):
        earliest = tx.first("next_due", rid, -1, -1)
        if earliest and due_ms > max(earliest[0], tx.now_ms):
            return "request_too_late"
    return None


def ask_for(tx: Transaction, rid: int) -> int:
    """A request now, even if there is no work: a claim is what takes away an ended token."""
    if not make_ready(tx, rid):
        row, count = tx.first("unattended", rid), tx.first("count_work", rid)
        assert row is not None and count is not None
        tx.run("ask", rid, row[0], row[1], 0, tx.next(), tx.now_ms, count[0])
    return 1


def lead(tx: Transaction, task: str, owner: str, lease_ms: int) -> bool:
    return tx.run("lead", task, owner, tx.now_ms + lease_ms, tx.now_ms) > 0
