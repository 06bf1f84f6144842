"""Settling: what became of messages, written under the fence; and taking the next ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from attention_queue.clock import MS
from attention_queue.contract import (
    Delivery,
    Done,
    Failure,
    Hold,
    Order,
    Reject,
    Retry,
    Unknown,
)
from attention_queue.contract.events import (
    DeadLettered,
    Event,
    MessagesSettled,
)
from attention_queue.engines.sqlite import limits
from attention_queue.engines.sqlite.claim import Handle
from attention_queue.engines.sqlite.directory import (
    make_ready,
)
from attention_queue.engines.sqlite.expiry import leave, take_living
from attention_queue.engines.sqlite.loans import (
    lend,
    loan_of,
    runs,
    write_ranges,
)
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import TokenLost
from attention_queue.ports import Begun, Settled

_HISTORY = 20  # failures kept with a message, the newest
_history = msgspec.json.Decoder(list[dict[str, object]])


def handle_of(begun: Begun) -> Handle:
    assert isinstance(begun.handle, Handle)
    return begun.handle


@dataclass(slots=True)
class Settling:
    """The outcomes of some deliveries under one token; executed in a transaction."""

    begun: Begun
    outcomes: Sequence[Settled]
    take: int = 0
    invite: bool = False
    taken: list[Delivery] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    limited_ms: int = 0
    lent: int = 0
    any_done: bool = False

    def __call__(self, tx: Transaction) -> Settling:
        token = self.begun.token
        handle = handle_of(self.begun)
        rid = handle.record.rid
        self.events, self.taken, self.limited_ms = [], [], 0
        if not tx.first("holds_token", rid, token.slot, token.fence):
            raise TokenLost(token.resource, token.slot)
        gone = self.record(tx)
        self.lent = handle.lent - len(self.outcomes)
        if gone:
            leave(tx, handle.record, gone)
        if self.take:
            self._take(tx, handle, rid)
        if self.invite:
            self._invite(tx, handle, rid)
        return self

    def record(self, tx: Transaction) -> int:
        """Write the outcomes; returns how many messages left the queue.

        A repetition after an answer that was lost finds its messages gone and counts none twice.
        """
        rid = handle_of(self.begun).record.rid
        done = [d.receipt for d, outcome in self.outcomes if isinstance(outcome, Done)]
        whole, self.any_done = len(done) == len(self.outcomes), bool(done)
        gone = 0
        for run in runs(done) if whole else [(due, seq, seq) for due, seq, _ in done]:
            gone += tx.run("done", rid, *run)
        dead, retried, deferred = (0, 0, 0) if whole else self._record_others(tx, rid)
        names = (self.begun.group, self.begun.resource)
        if self.outcomes:
            self.events.append(MessagesSettled(*names, len(done), retried, dead, deferred))
        gid = handle_of(self.begun).record.gid
        tx.books.settled(gid, rid, done=gone, failed=retried, dead=dead)
        return gone + dead

    def _record_others(self, tx: Transaction, rid: int) -> tuple[int, int, int]:
        """All but the done ones; how many are dead, retried and deferred."""
        dead = retried = deferred = 0
        for each, outcome in self.outcomes:
            match outcome:
                case Retry():
                    retried += self._retry(tx, rid, each, outcome)
                case Reject():
                    dead += self._bury(tx, rid, each, outcome.reason, outcome.failure)
                case Unknown():
                    if self._too_long_unknown(tx, each, outcome):
                        dead += self._bury(tx, rid, each, "unknown_type", None)
                    else:
                        self._defer(tx, rid, each, outcome)
                        deferred += 1
                case Done():
                    pass
        return dead, retried, deferred

    def _retry(self, tx: Transaction, rid: int, each: Delivery, outcome: Retry) -> int:
        due, seq, _ = each.receipt
        strict = self.begun.policy.order is Order.STRICT
        wait_ms = (outcome.after // MS) if outcome.after else 0
        row = tx.first("history", rid, due, seq)
        history = _history.decode(row[0]) if row and row[0] else []
        history.append(_entry(each, outcome.failure, tx.now_ms))
        text = msgspec.json.encode(history[-_HISTORY:]).decode()
        due_ms = due if strict else tx.now_ms + wait_ms
        return tx.run("retry", due_ms, text, rid, due, seq, each.attempt - 1)

    def _bury(
        self, tx: Transaction, rid: int, each: Delivery, reason: str, failure: Failure | None
    ) -> int:
        due, seq, _ = each.receipt
        error = (failure.error, failure.message, failure.trace) if failure else (None, None, None)
        row = tx.first("bury", tx.now_ms, 1, reason, *error, rid, due, seq)
        if row is None:
            return 0
        self.events.append(
            DeadLettered(self.begun.group, self.begun.resource, row[0], row[1], reason, row[2])
        )
        return tx.run("done", rid, due, seq, seq)

    def _too_long_unknown(self, tx: Transaction, each: Delivery, outcome: Unknown) -> bool:
        since_ms = each.unknown_since_ms
        return since_ms is not None and tx.now_ms - since_ms >= outcome.grace // MS

    def _defer(self, tx: Transaction, rid: int, each: Delivery, outcome: Unknown) -> None:
        """Leave the message to another process."""
        due, seq, _ = each.receipt
        strict = self.begun.policy.order is Order.STRICT
        due_ms = due if strict else tx.now_ms + outcome.retry_in // MS
        tx.run("defer", due_ms, tx.now_ms, rid, due, seq)

    def _take(self, tx: Transaction, handle: Handle, rid: int) -> None:
        token = self.begun.token
        assert self.lent == 0, "settle all that is on loan before taking more"
        allowed, self.limited_ms = limits.allowance(tx, handle.record, self.take)
        others = loan_of(_others(tx, rid, token.fence))
        rows = take_living(tx, handle.record, allowed, others, self.events) if allowed else []
        ranges, self.taken = lend(rows, others, token.resource)
        if rows:
            limits.charge(tx, handle.record, len(rows))
            tx.run("lend", write_ranges(ranges).decode(), rid, token.slot, token.fence)
        self.lent = len(rows)

    def _invite(self, tx: Transaction, handle: Handle, rid: int) -> None:
        """A slot is free and nobody waits for it: ask for one more consumer, if there is enough."""
        request, policy = tx.first("request", rid), self.begun.policy
        if request is None or request[0] == 0 or request[2] not in (None, Hold.BUSY.value):
            return
        tokens = len(tx.all("tokens", rid))
        if tokens < policy.max_consumers and request[3] > policy.max_messages * tokens:
            make_ready(tx, rid)


def _others(tx: Transaction, rid: int, fence: int) -> Iterable[Row]:
    return [row for row in tx.all("tokens", rid) if row[1] != fence]


def _entry(each: Delivery, failure: Failure | None, now_ms: int) -> dict[str, object]:
    return {
        "attempt": each.attempt,
        "at_ms": now_ms,
        "error": failure.error if failure else None,
        "message": failure.message if failure else None,
    }
