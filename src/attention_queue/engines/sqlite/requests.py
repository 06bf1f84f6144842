"""The request that stands for a resource, when somebody else than a publisher needs it."""

from __future__ import annotations

from attention_queue.engines.sqlite.transaction import Transaction


def ask_for_due(tx: Transaction, gid: int, rid: int, due_ms: int, messages: int) -> None:
    """Count ``messages`` in and make sure that a request fires no later than ``due_ms``.

    As a publish does: what stands and would fire later is pulled forward, never through a hold.
    """
    request = tx.first("request", rid)
    if request is None:
        lane = tx.first("lane_of", rid)
        assert lane is not None
        tx.run("ask", rid, gid, lane[0], due_ms, tx.next(), tx.now_ms, messages)
        return
    waits_until, hold_until = request[0], request[1]
    if hold_until is not None and hold_until > tx.now_ms:
        due_ms = max(due_ms, hold_until)
    if due_ms < waits_until:
        lane = tx.first("lane_of", rid)
        assert lane is not None
        tx.run("pull_forward", due_ms, tx.next(), tx.now_ms, lane[0], messages, rid)
    else:
        tx.run("count_in", messages, rid)


def drop_request(tx: Transaction, rid: int) -> None:
    """Where there is neither work nor a token; what had arrived is entered in the books."""
    if request := tx.first("request", rid):
        tx.books.arrived(rid, request[4])
        tx.run("drop_request", rid)
