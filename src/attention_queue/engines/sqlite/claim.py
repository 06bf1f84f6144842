"""Beginning: request, record, token and first messages in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from attention_queue.clock import MS, from_ms
from attention_queue.contract import Delivery, Hold, Priority, State, Token
from attention_queue.contract.events import (
    CycleStarted,
    DeadLettered,
    Event,
    LoansRescued,
    RequestBlocked,
    RequestDiscarded,
    RequestWasted,
)
from attention_queue.engines.sqlite import limits
from attention_queue.engines.sqlite.directory import Directory, Record
from attention_queue.engines.sqlite.expiry import leave, take_living
from attention_queue.engines.sqlite.loans import (
    Range,
    free_message,
    lend,
    loan_of,
    read_ranges,
    write_ranges,
)
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.ports import Begun, Declined, Want

_LOOKED_AT = 64  # requests examined in one transaction, at most: others want to commit too


@dataclass(slots=True)
class Handle:
    """What the engine remembers of a begun request."""

    record: Record
    lent: int  # messages on loan and not settled
    probes: str | None  # the stopped scope that this cycle tries
    directory: int  # version seen; another one means: look again
    started: float  # monotonic
    succeeded: bool = False  # a message was done
    limited_ms: int = 0  # when the rate allows the next message; 0: it does not limit
    released: bool = False  # by its own finish: a renewal that comes late has lost nothing


@dataclass(slots=True)
class Lanes:
    """Deals requests of three lanes 8 : 4 : 1 while all wait (smooth weighted round robin)."""

    credit: dict[tuple[int, int], int] = field(default_factory=dict)

    def pick(self, waiting: list[tuple[int, int]]) -> tuple[int, int]:
        """The next of the (gid, lane) pairs that have a request waiting."""
        total = 0
        for key in waiting:
            weight = Priority(key[1]).weight
            total += weight
            self.credit[key] = self.credit.get(key, 0) + weight
        best = max(waiting, key=lambda key: self.credit[key])
        self.credit[best] -= total
        return best


@dataclass(slots=True)
class Claim:
    """One call of ``begin``; executed in a transaction, perhaps more than once."""

    directory: Directory
    lanes: Lanes
    want: Want
    version: int
    started: float
    found: list[Begun | Declined] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    next_due_ms: int | None = None

    def __call__(self, tx: Transaction) -> Claim:
        self.found, self.events, self.next_due_ms = [], [], None
        wake_timers(tx)
        begun = extra = 0
        for group, gid, rid, since_ms in self._ready(tx):
            record = self.directory.record(tx, rid, gid, group)
            result = self._claim(
                tx, record, since_ms, spare=self.want.extra - extra, free=self.want.limit - begun
            )
            if isinstance(result, Begun):
                begun += 1
                extra += result.extra
            if result is not None:
                self.found.append(result)
            if begun == self.want.limit:
                break
        if begun == self.want.limit or self._more_is_ready(tx):
            self.next_due_ms = 0
        elif row := tx.first("next_timer"):
            self.next_due_ms = row[0]
        return self

    def _more_is_ready(self, tx: Transaction) -> bool:
        """Whether a request was left unseen, or is ready again for one more consumer."""
        gids = [self.directory.group(tx, name).gid for name in self.want.groups]
        return any(tx.first("ready", gid, lane, 1) for gid in gids for lane in (0, 1, 2))

    def _ready(self, tx: Transaction) -> Iterator[tuple[str, int, int, int]]:
        """Ready requests in the order in which they are to be taken."""
        queues: dict[tuple[int, int], list[Row]] = {}
        groups = {}
        for name in self.want.groups:
            gid = self.directory.group(tx, name).gid
            groups[gid] = name
            for lane in (0, 1, 2):
                if rows := tx.all("ready", gid, lane, self.want.limit):
                    queues[gid, lane] = rows[::-1]
        for _ in range(_LOOKED_AT):
            waiting = [key for key, rows in queues.items() if rows]
            if not waiting:
                return
            key = self.lanes.pick(waiting) if len(waiting) > 1 else waiting[0]
            rid, since_ms, _place = queues[key].pop()
            yield groups[key[0]], key[0], rid, since_ms

    def _claim(
        self, tx: Transaction, record: Record, since_ms: int, *, spare: int, free: int
    ) -> Begun | Declined | None:
        if record.state is not State.ACTIVE:
            return self._discard(tx, record)
        until, probes = limits.stopped(tx, record)
        if until:
            return self._block(tx, record, Hold.STOP, until)
        tokens = self._valid_tokens(tx, record)
        if len(tokens) >= record.policy.max_consumers or (tokens and spare <= 0):
            return self._block(tx, record, Hold.BUSY, min(row[2] for row in tokens))
        limit = 1 if probes else min(self.want.take, record.policy.max_messages)
        allowed, until = limits.allowance(tx, record, limit)
        if not allowed:
            return self._block(tx, record, Hold.RATE, until)
        others = loan_of(tokens)
        rows = take_living(tx, record, allowed, others, self.events)
        if not rows:
            self._waste(tx, record, tokens, others)
            return None
        limits.charge(tx, record, len(rows))
        if probes:
            limits.begin_probe(tx, record, probes)
        return self._grant(tx, record, tokens, rows, since_ms, probes, free)

    def _grant(
        self,
        tx: Transaction,
        record: Record,
        tokens: list[Row],
        rows: list[Row],
        since_ms: int,
        probes: str | None,
        free: int,
    ) -> Begun:
        slot = next(n for n in range(len(tokens) + 1) if n not in {row[0] for row in tokens})
        fence, until_ms = tx.next(), tx.now_ms + record.policy.lease // MS
        ranges, loan = lend(rows, loan_of(tokens), record.resource)
        text = write_ranges(ranges).decode()
        tx.run("grant", record.rid, slot, self.want.owner, fence, until_ms, text)
        ends = min([until_ms, *(row[2] for row in tokens)])
        self._leave_request(tx, record, len(tokens) + 1, ends, free)
        token = Token(record.resource, slot, self.want.owner, fence, from_ms(until_ms))
        handle = Handle(record, len(rows), probes, self.version, self.started)
        waited = max(tx.now_ms - since_ms, 0) / 1000
        return self._begun(record, token, loan, handle, extra=bool(tokens), waited=waited)

    def _begun(
        self,
        record: Record,
        token: Token,
        loan: list[Delivery],
        handle: Handle,
        *,
        extra: bool,
        waited: float,
    ) -> Begun:
        names = (record.group, record.resource, record.plan)
        self.events.append(CycleStarted(*names, token.slot, token.fence, len(loan), waited))
        return Begun(
            group=record.group,
            resource=record.resource,
            plan=record.plan,
            policy=record.policy,
            routing=record.routing,
            token=token,
            loan=loan,
            handle=handle,
            extra=extra,
            waited=waited,
            backlog=record.backlog,
        )

    def _leave_request(
        self, tx: Transaction, record: Record, tokens: int, ends: int, free: int
    ) -> None:
        """The request stays: full, it waits for a release or the first lease end; else for more."""
        policy = record.policy
        if tokens >= policy.max_consumers:
            tx.run("park", ends, ends, Hold.BUSY.value, record.rid)
        elif record.backlog > policy.max_messages * tokens and free > 1:
            tx.run("to_tail", tx.next(), tx.now_ms, int(policy.priority), record.rid)
        else:
            tx.run("wait_until", ends, record.rid)

    def _discard(self, tx: Transaction, record: Record) -> Declined:
        until = record.state_until_ms
        tx.run("park", until, until, Hold.STATE.value, record.rid)
        tx.books.count(record.gid, f"requests_discarded_{record.state.value}")
        self.events.append(RequestDiscarded(record.group, record.resource, record.state))
        return Declined(record.group, record.resource, record.state, from_ms(until))

    def _block(self, tx: Transaction, record: Record, why: Hold, until_ms: int) -> Declined:
        until_ms = max(until_ms, tx.now_ms + 1)
        tx.run("park", until_ms, until_ms, why.value, record.rid)
        until = from_ms(until_ms)
        tx.books.count(record.gid, f"requests_blocked_{why.value}")
        self.events.append(RequestBlocked(record.group, record.resource, why, until))
        return Declined(record.group, record.resource, why, until)

    def _waste(
        self, tx: Transaction, record: Record, tokens: list[Row], others: list[Range]
    ) -> None:
        """Nothing to take now: leave the request for the next moment there may be, or drop it."""
        due = free_message(tx, record.rid, others)
        moments = [row[2] for row in tokens] + ([due] if due is not None else [])
        if moments:
            tx.run("wait_until", max(min(moments), tx.now_ms + 1), record.rid)
        else:
            request = tx.first("request", record.rid)
            tx.books.arrived(record.rid, request[4] if request else 0)
            tx.run("drop_request", record.rid)
        tx.books.count(record.gid, "requests_wasted")
        self.events.append(RequestWasted(record.group, record.resource))

    def _valid_tokens(self, tx: Transaction, record: Record) -> list[Row]:
        """Tokens that have not ended; what the others had on loan comes back."""
        valid = []
        for row in tx.all("tokens", record.rid):
            if row[2] > tx.now_ms:
                valid.append(row)
            else:
                tx.run("take_token", record.rid, row[0], row[1])
                self.events.extend(rescue(tx, record, read_ranges(row[3])))
        return valid


def wake_timers(tx: Transaction) -> None:
    """Requests whose moment has come go to the tail, behind those that were ready before them."""
    for rid, due_ms in tx.all("wake_timers", tx.now_ms, _LOOKED_AT):
        tx.run("release_hold", tx.next(), due_ms, rid)


def rescue(tx: Transaction, record: Record, loan: list[Range]) -> list[Event]:
    """Bring back what a dead holder had on loan, as suspect: it is taken alone from now on.

    The death counts against a message only if that one, already a suspect, was all it had in hand:
    so the one that kills is found, and its neighbours lose nothing.
    """
    rows = [row for r in loan for row in tx.all("on_loan", record.rid, *r)]
    if not rows:
        return []
    events: list[Event] = []
    charged = len(rows) == 1 and bool(rows[0][2])
    if charged:
        due, seq, _, crashes = rows[0]
        tx.run("charge", record.rid, due, seq)
        deadly = crashes + 1 >= record.policy.max_crashes
        tx.books.settled(record.gid, record.rid, done=0, failed=int(not deadly), dead=int(deadly))
        if deadly:
            events.append(bury_poison(tx, record, due, seq))
    else:
        for r in loan:
            tx.run("suspect", record.rid, *r)
    return [LoansRescued(record.group, record.resource, len(rows), int(charged)), *events]


def bury_poison(tx: Transaction, record: Record, due: int, seq: int) -> DeadLettered:
    text = f"the process died {record.policy.max_crashes} times with this message alone in hand"
    values = (tx.now_ms, 0, "poison", "ProcessDied", text, None, record.rid, due, seq)
    row = tx.first("bury", *values)
    assert row is not None
    tx.run("done", record.rid, due, seq, seq)
    leave(tx, record, 1)
    return DeadLettered(record.group, record.resource, row[0], row[1], "poison", row[2])
