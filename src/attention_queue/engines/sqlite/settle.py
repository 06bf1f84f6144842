"""Settling and finishing: outcomes under the fence, then release, look and ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from attention_queue.clock import FOREVER_MS, MS, from_ms
from attention_queue.contract import (
    Delivery,
    Done,
    Failure,
    Hold,
    Order,
    Reject,
    Retry,
    State,
    Unknown,
)
from attention_queue.contract.events import (
    CycleFinished,
    DeadLettered,
    Event,
    MessagesSettled,
    ScopeStopped,
    StateChanged,
)
from attention_queue.engines.sqlite import limits
from attention_queue.engines.sqlite.claim import Handle
from attention_queue.engines.sqlite.directory import (
    Record,
    is_active,
    make_ready,
    state_at,
    store_state,
)
from attention_queue.engines.sqlite.expiry import leave, take_living
from attention_queue.engines.sqlite.loans import (
    free_message,
    lend,
    loan_of,
    runs,
    write_ranges,
)
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import TokenLost
from attention_queue.ports import Begun, Ending, Left, Settled

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
        gone = dead = retried = deferred = 0
        for run in runs(done) if whole else [(due, seq, seq) for due, seq, _ in done]:
            gone += tx.run("done", rid, *run)
        if not whole:
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
        if self.outcomes:
            self.events.append(
                MessagesSettled(
                    self.begun.group, self.begun.resource, len(done), retried, dead, deferred
                )
            )
        left = gone + dead
        record = handle_of(self.begun).record
        tx.books.settled(record.gid, rid, done=gone, failed=retried, dead=dead)
        return left

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


@dataclass(slots=True)
class Finishing:
    """The end of a cycle, in this order: outcomes, release, look, and the request last."""

    settling: Settling
    ending: Ending
    duration: float
    handled: int
    left: Left = field(default_factory=lambda: Left(0, False))
    events: list[Event] = field(default_factory=list)

    def __call__(self, tx: Transaction) -> Finishing:
        begun = self.settling.begun
        handle, token = handle_of(begun), begun.token
        rid = handle.record.rid
        self.settling.events = []
        if not tx.run("take_token", rid, token.slot, token.fence):  # a successor took over
            raise TokenLost(token.resource, token.slot)
        gone = self.settling.record(tx)
        self.events = list(self.settling.events)
        request = tx.first("request", rid)
        if request and (gone or request[4]):
            tx.books.arrived(rid, request[4])
            tx.run("close_books", gone, rid)
            tx.books.load(handle.record.gid, token.resource.tenant, -gone)
            request = (*request[:3], max(request[3] - gone, 0), 0)
        if returned := handle.lent - len(self.settling.outcomes):
            limits.charge(tx, handle.record, -returned)
        self._apply(tx, handle)
        self.left = self.look(tx, request)
        self._enter(tx, handle.record)
        self.events.append(
            CycleFinished(
                begun.group,
                begun.resource,
                begun.plan,
                self.ending.end,
                self.handled,
                self.duration,
                self.left.backlog,
                self.left.republished,
            )
        )
        return self

    def _enter(self, tx: Transaction, record: Record) -> None:
        took_ms, end = int(self.duration * 1000), self.ending.end.value
        tx.books.cycle(record.gid, record.rid, tx.now_ms, end, self.handled, took_ms)
        tx.books.count(record.gid, "requests_republished", int(self.left.republished))

    def _apply(self, tx: Transaction, handle: Handle) -> None:
        """What the handler said about the resource and about the outside world."""
        record, ending = handle.record, self.ending
        # A state that a person has set meanwhile stands: a handler cannot undo a tombstone.
        if (state := ending.state) and is_active(tx, record.rid):
            store_state(tx, record.rid, state)
            self.events.append(
                StateChanged(record.group, record.resource, state.state, state.reason, state.actor)
            )
        scope = limits.scope_of(ending.scope, record.routing) if ending.scope else None
        if scope is not None and ending.not_before is not None:
            until_ms = tx.now_ms + ending.not_before // MS
            limits.stop_scope(tx, record, scope, until_ms, ending.reason)
            self.events.append(ScopeStopped(record.group, scope, ending.reason, from_ms(until_ms)))
        elif handle.probes and (handle.succeeded or self.settling.any_done):
            limits.probe_succeeded(tx, record, handle.probes)

    def look(self, tx: Transaction, request: Row | None) -> Left:
        """After the release: whoever our token turned away had put its work in before it.

        The request is re-armed for the earliest moment at which there may be something to do, and
        dropped only when there is neither work nor another token.
        """
        record = handle_of(self.settling.begun).record
        rid = record.rid
        tokens = tx.all("tokens", rid)
        state = tx.first("state", rid)
        assert state is not None
        due = free_message(tx, rid, loan_of(tokens))
        ends = min((row[2] for row in tokens), default=None)
        if request is None:
            if due is None and ends is None:
                return Left(0, False)
            count = tx.first("count_work", rid)
            assert count is not None
            lane = int(record.policy.priority)
            tx.run("ask", rid, record.gid, lane, 0, tx.next(), tx.now_ms, count[0])
            request = (0, None, None, count[0], 0)
        if due is None and ends is None:
            tx.run("drop_request", rid)
            return Left(0, False)
        self._rearm(tx, rid, request, state, due=due, ends=ends)
        return Left(request[3], True)

    def _rearm(
        self,
        tx: Transaction,
        rid: int,
        request: Row,
        state: Row,
        *,
        due: int | None,
        ends: int | None,
    ) -> None:
        ending, now = self.ending, tx.now_ms
        if state_at(state[0], state[1], now) is not State.ACTIVE:
            until = state[1] or FOREVER_MS
            tx.run("park", until, until, Hold.STATE.value, rid)
        elif ending.not_before is not None and ending.hold is not None:
            until = now + max(ending.not_before // MS, 1)
            tx.run("park", until, until, ending.hold.value, rid)
        elif request[2] in (Hold.RATE.value, Hold.STOP.value, Hold.HEAD.value) and request[1] > now:
            return  # another slot's hold stands
        elif due is not None and due <= now:
            lane = int(self.settling.begun.policy.priority)
            tx.run("to_tail", tx.next(), now, lane, rid)
        else:
            tx.run("wait_until", min(moment for moment in (due, ends) if moment is not None), rid)


def _others(tx: Transaction, rid: int, fence: int) -> Iterable[Row]:
    return [row for row in tx.all("tokens", rid) if row[1] != fence]


def _entry(each: Delivery, failure: Failure | None, now_ms: int) -> dict[str, object]:
    return {
        "attempt": each.attempt,
        "at_ms": now_ms,
        "error": failure.error if failure else None,
        "message": failure.message if failure else None,
    }
