"""Taking messages whose time to live is not over; the others leave the queue on the way."""

from __future__ import annotations

from collections.abc import Sequence

from attention_queue.clock import MS
from attention_queue.contract.events import DeadLettered, Event
from attention_queue.contract.policy import FOREVER, Expired
from attention_queue.engines.sqlite.directory import Record
from attention_queue.engines.sqlite.loans import Range, take
from attention_queue.engines.sqlite.transaction import Row, Transaction

_ROUNDS = 10  # of expired messages alone, in one transaction: others want to commit too


def take_living(
    tx: Transaction, record: Record, limit: int, others: Sequence[Range], events: list[Event]
) -> list[Row]:
    """See ``loans.take``. Expiry is judged here, by the clock of this transaction.

    Empty with messages left only after many expired ones: the next claim goes on.
    """
    ttl = record.policy.ttl
    born_after_ms = 0 if ttl >= FOREVER else tx.now_ms - ttl // MS
    for _ in range(_ROUNDS):
        taken, expired = take(tx, record.rid, limit, others, born_after_ms)
        for row in expired:
            _expire(tx, record, row, events)
        if expired:
            leave(tx, record, len(expired))
        if taken or not expired:
            return taken
    return []


def _expire(tx: Transaction, record: Record, row: Row, events: list[Event]) -> None:
    due, seq = row[0], row[1]
    if record.policy.expired is Expired.DEAD_LETTER:
        dead = tx.first("bury", tx.now_ms, 0, "expired", None, None, None, record.rid, due, seq)
        assert dead is not None
        tx.books.settled(record.gid, record.rid, done=0, failed=0, dead=1)
        names = (record.group, record.resource)
        events.append(DeadLettered(*names, dead[0], dead[1], "expired", dead[2]))
    else:
        tx.books.count(record.gid, "messages_expired")
    tx.run("done", record.rid, due, seq, seq)


def leave(tx: Transaction, record: Record, messages: int) -> None:
    """Count messages out of the resource's and, where that is limited, its tenant's backlog."""
    tx.run("count_out", messages, record.rid)
    tx.books.load(record.gid, record.resource.tenant, -messages)
