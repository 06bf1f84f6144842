"""The belt: find work that no request stands for, tokens that ended unnoticed, and mend it."""

from __future__ import annotations

from collections import Counter

from attention_queue.contract import Hold, State
from attention_queue.engines.sqlite.directory import make_ready, state_at
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.ports import Swept

COUNTED = 2_000  # messages: a counter that both say is higher is taken at its word
_ENDED_FOR_MS = 60_000  # a token that nobody found for this long after its end


def sweep(tx: Transaction, after: int, limit: int) -> Swept:
    """One page of the resources with work or a request, by key: idle ones cost nothing.

    A spurious repair costs one empty cycle.
    """
    repairs: Counter[str] = Counter()
    if after < 0:
        for held in with_ended_token(tx, limit):
            repairs["ended_token"] += ask_for(tx, held)
    for _ in range(limit):
        rid = following(tx, after)
        if rid is None:
            return Swept(None, dict(repairs))
        after = rid
        if why := fault(tx, rid):
            repairs[why] += _repair(tx, rid, why)
    return Swept(after, dict(repairs))


def with_ended_token(tx: Transaction, limit: int) -> list[int]:
    """Resources with a token that ended long ago and that no claim will come to find soon."""
    rows = tx.all("ended_tokens", tx.now_ms - _ENDED_FOR_MS, _ENDED_FOR_MS, limit)
    return [int(rid) for (rid,) in rows]


def following(tx: Transaction, after: int) -> int | None:
    """The next resource that has work or a request, by key; the idle ones are skipped."""
    rows = (tx.first("next_with_work", after), tx.first("next_with_request", after))
    return min((int(row[0]) for row in rows if row is not None), default=None)


def fault(tx: Transaction, rid: int) -> str | None:
    """What is wrong with a resource's request. Changes nothing."""
    row, state = tx.first("unattended", rid), tx.first("state", rid)
    assert row is not None and state is not None
    _gid, _lane, due_ms, hold_why, backlog = row
    if due_ms is None:
        return "work_without_request"
    count = tx.first("count_some", rid, COUNTED)
    assert count is not None
    if backlog != count[0] and min(backlog, count[0]) < COUNTED:
        return "counter_drift"
    if due_ms <= tx.now_ms:
        return None
    tokens = tx.all("tokens", rid)
    if not count[0] and not tokens:
        return "request_without_work"
    if state_at(state[0], state[1], tx.now_ms) is not State.ACTIVE:
        return None
    if hold_why == Hold.STATE.value:
        return "held_though_active"
    if hold_why is None and not tokens:
        earliest = tx.first("next_due", rid, -1, -1)
        if earliest and due_ms > max(earliest[0], tx.now_ms):
            return "request_too_late"
    return None


def _repair(tx: Transaction, rid: int, why: str) -> int:
    match why:
        case "request_without_work":
            return tx.run("drop_request", rid)
        case "counter_drift":
            count = tx.first("count_work", rid)
            assert count is not None
            return tx.run("set_backlog", count[0], rid)
        case _:
            return ask_for(tx, rid)


def ask_for(tx: Transaction, rid: int) -> int:
    """A request now, even if there is no work: a claim is what takes away an ended token."""
    if not make_ready(tx, rid):
        row, count = tx.first("unattended", rid), tx.first("count_work", rid)
        assert row is not None and count is not None
        tx.run("ask", rid, row[0], row[1], 0, tx.next(), tx.now_ms, count[0])
    return 1


def lead(tx: Transaction, task: str, owner: str, lease_ms: int) -> bool:
    return tx.run("lead", task, owner, tx.now_ms + lease_ms, tx.now_ms) > 0
