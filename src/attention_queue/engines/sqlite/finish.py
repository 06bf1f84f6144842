"""Finishing a cycle: outcomes, release, THEN look, ask, and the request last; one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

from attention_queue.clock import FOREVER_MS, MS, from_ms
from attention_queue.contract import (
    Hold,
    ResourceState,
    State,
)
from attention_queue.contract.events import (
    CycleFinished,
    Event,
    ScopeStopped,
    StateChanged,
)
from attention_queue.engines.sqlite import limits
from attention_queue.engines.sqlite.claim import Handle, wake_timers
from attention_queue.engines.sqlite.directory import (
    Record,
    encode_map,
    is_active,
    state_at,
    store_state,
)
from attention_queue.engines.sqlite.loans import (
    free_message,
    loan_of,
)
from attention_queue.engines.sqlite.settle import Settling, handle_of
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import TokenLost
from attention_queue.ports import Ending, Left


@dataclass(slots=True)
class Finishing:
    """The end of a cycle, in this order: outcomes, release, look, and the request last."""

    settling: Settling
    ending: Ending
    duration: float
    handled: int
    left: Left = field(default_factory=lambda: Left(0, False))
    events: list[Event] = field(default_factory=list)
    waits_for: str = "more"  # why a request stands for what is left

    def __call__(self, tx: Transaction) -> Finishing:
        begun = self.settling.begun
        handle, token = handle_of(begun), begun.token
        rid = handle.record.rid
        self.settling.events = []
        if not tx.run("take_token", rid, token.slot, token.fence):  # a successor took over
            raise TokenLost(token.resource, token.slot)
        handle.released = True
        gone = self.settling.record(tx)
        self.events = list(self.settling.events)
        self._close_books(tx, handle.record, gone)
        if returned := handle.lent - len(self.settling.outcomes):
            limits.charge(tx, handle.record, -returned)
        self._apply(tx, handle)
        self.left = self.look(tx)
        self._enter(tx, handle.record)
        return self

    def _close_books(self, tx: Transaction, record: Record, gone: int) -> None:
        """Count out what has left, and enter what had arrived since the last finish."""
        request = tx.first("request", record.rid)
        if request and (gone or request[4]):
            tx.books.arrived(record.rid, request[4])
            tx.run("close_books", gone, record.rid)
            tx.books.load(record.gid, record.resource.tenant, -gone)

    def _enter(self, tx: Transaction, record: Record) -> None:
        took_ms, end = int(self.duration * 1000), self.ending.end
        tx.books.cycle(record.gid, record.rid, tx.now_ms, end.value, self.handled, took_ms)
        if self.left.republished:
            tx.books.count(record.gid, "requests_republished")
            tx.books.count(record.gid, f"requests_republished_{self.waits_for}")
        names = (record.group, record.resource, self.settling.begun.plan)
        left = (self.left.backlog, self.left.republished)
        self.events.append(CycleFinished(*names, end, self.handled, self.duration, *left))

    def _apply(self, tx: Transaction, handle: Handle) -> None:
        """What the handler said about the resource and about the outside world."""
        record, ending = handle.record, self.ending
        # A state that a person has set meanwhile stands: a handler cannot undo a tombstone.
        if (state := ending.state) and is_active(tx, record.rid):
            store_state(tx, record.rid, state)
            _audit(tx, record, state)
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

    def look(self, tx: Transaction) -> Left:
        """After the release: whoever our token turned away had put its work in before it.

        The request is re-armed for the earliest moment at which there may be something to do, and
        dropped only when there is neither work nor another token.
        """
        record = handle_of(self.settling.begun).record
        rid = record.rid
        tokens = tx.all("tokens", rid)
        request, state = tx.first("request", rid), tx.first("state", rid)
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
            self.waits_for = Hold.STATE.value
        elif ending.not_before is not None and ending.hold is not None:
            until = now + max(ending.not_before // MS, 1)
            tx.run("park", until, until, ending.hold.value, rid)
            self.waits_for = ending.hold.value
        elif request[2] in (Hold.RATE.value, Hold.STOP.value, Hold.HEAD.value) and request[1] > now:
            self.waits_for = request[2]  # another slot's hold stands
        elif due is not None and due <= now:
            wake_timers(tx)  # those whose moment came during this slice are in front of it
            lane = int(self.settling.begun.policy.priority)
            tx.run("to_tail", tx.next(), now, lane, rid)
            self.waits_for = "more"
        else:
            self.waits_for = "later" if due is not None else "others"
            tx.run("wait_until", min(moment for moment in (due, ends) if moment is not None), rid)


def _audit(tx: Transaction, record: Record, state: ResourceState) -> None:
    """A handler changes a state as people do, and is entered as they are."""
    until = state.until.isoformat() if state.until else None
    detail = encode_map({"was": State.ACTIVE.value, "is": state.state.value, "until": until})
    actor, gid, rid = state.actor or "handler", record.gid, record.rid
    tx.run("audit", tx.now_ms, gid, rid, actor, "state", state.reason, detail)
