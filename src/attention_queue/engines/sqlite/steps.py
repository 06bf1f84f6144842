"""One step of an operation: some dead letters or messages moved or deleted, and noted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from attention_queue.clock import MS
from attention_queue.contract import State
from attention_queue.contract.events import DeadLettered, Event, OperationAdvanced, StateChanged
from attention_queue.contract.operation import Kind, OperationFigures, Progress
from attention_queue.engines.sqlite.loans import MAX_BYTES, Range, loan_of
from attention_queue.engines.sqlite.operations import (
    Order,
    chunk,
    figures,
    load,
    next_step_ms,
)
from attention_queue.engines.sqlite.requests import ask_for_due, drop_request
from attention_queue.engines.sqlite.transaction import Row, Transaction

_SPREAD = 2_654_435_761  # Knuth's multiplier: neighbours' numbers fall far apart
_WAIT_MS = 250  # between two looks at a holder that a retirement waits for


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step did; ``figures`` are those after it."""

    figures: OperationFigures
    events: tuple[Event, ...]


def step(tx: Transaction, number: int, limit: int) -> Stepped:
    """Do one step of the operation; nothing if it has ended or its next moment is to come."""
    order = load(tx, number)
    if order.progress is not Progress.RUNNING or order.row[18] > tx.now_ms:
        return Stepped(figures(order), ())
    match order.kind:
        case Kind.REDRIVE | Kind.DISCARD_DEAD:
            done, skipped, events = _dead_letters(tx, order, chunk(order, limit))
        case Kind.DISCARD | Kind.RETIRE:
            done, skipped, events = _backlog(tx, order, chunk(order, limit))
    after = load(tx, number)
    advanced = OperationAdvanced(
        order.operation.group, number, order.kind.value, done, skipped, after.progress.value
    )
    return Stepped(figures(after), (advanced, *events))


def _dead_letters(tx: Transaction, order: Order, limit: int) -> tuple[int, int, list[Event]]:
    page = _dead_page(tx, order, limit)
    rows = _light(page)
    revived: dict[int, Counter[int]] = {}
    skipped = 0
    for dead_id, rid, tenant, state, _size in rows:
        if order.kind is Kind.REDRIVE:
            gone = state in (State.RETIRING.value, State.REMOVED.value)
            due_ms = _spread(tx, order, dead_id)
            if gone or not tx.run("revive", due_ms, tx.next(), dead_id):
                skipped += 1
                continue
            revived.setdefault(rid, Counter())[due_ms] += 1
            tx.books.load(order.gid, tenant, 1)
        tx.run("delete_dead", dead_id)
    for rid, dues in revived.items():
        ask_for_due(tx, order.gid, rid, min(dues), dues.total())
        tx.books.count(order.gid, "messages_redriven", dues.total())
    last = rows[-1][0] if rows else order.last
    done = len(rows) - skipped
    _note(tx, order, (order.last_due, last), done, skipped)
    if len(rows) == len(page) < limit:
        tx.run("end_operation", Progress.DONE.value, tx.now_ms, order.number)
    return done, skipped, []


def _dead_page(tx: Transaction, order: Order, limit: int) -> list[Row]:
    of = order.operation.selection
    ids = None if of.ids is None else "[" + ",".join(str(number) for number in of.ids) + "]"
    name = "dead_page" if order.rid is None else "dead_page_of"
    return tx.all(
        name, order.last, order.upto, order.gid, order.rid, of.tenant, of.type, of.error,
        of.reason, order.older_than_ms(), ids, limit,
    )  # fmt: skip


def _light(page: list[Row]) -> list[Row]:
    """As many as one transaction should move: the others wait for its commit."""
    size = 0
    for n, row in enumerate(page, 1):
        size += row[4]
        if size > MAX_BYTES:
            return page[:n]
    return page


def _spread(tx: Transaction, order: Order, dead_id: int) -> int:
    """When a revived message falls due: now, or somewhere in the jitter."""
    jitter_ms = order.operation.jitter // MS
    if jitter_ms == 0:
        return 0
    return tx.now_ms + dead_id * _SPREAD % 2**32 * jitter_ms // 2**32 + 1


def _backlog(tx: Transaction, order: Order, limit: int) -> tuple[int, int, list[Event]]:
    """What is on loan is left to its holder: a retirement waits for it, a discard does not."""
    assert order.rid is not None
    tokens = _living(tx, order)
    loaned = loan_of(tokens)
    start = (order.last_due, order.last) if order.kind is Kind.DISCARD else (-1, -1)
    page = tx.all("backlog_page", order.rid, *start, _upto(order), limit)
    rows = _light(page)
    events: list[Event] = []
    done = skipped = 0
    for row in rows:
        if _on_loan(row, loaned):
            skipped += 1
        elif _selected(order, row):
            events += _take_out(tx, order, row)
            done += 1
    if done:
        _count_out(tx, order, done)
    retires = order.kind is Kind.RETIRE
    last = (rows[-1][0], rows[-1][1]) if rows else start
    waits = retires and bool(tokens)
    skipped = 0 if retires else skipped  # it comes back to them until they are gone
    _note(tx, order, last, done, skipped, wait_ms=_WAIT_MS if waits and not done else 0)
    if len(rows) == len(page) < limit and not waits:
        tx.run("end_operation", Progress.DONE.value, tx.now_ms, order.number)
        events += _bury_resource(tx, order) if retires else []
    return done, skipped, events


def _count_out(tx: Transaction, order: Order, messages: int) -> None:
    """A request that stands for nothing any more goes with them."""
    resource = order.operation.selection.resource
    assert resource is not None and order.rid is not None
    tx.run("count_out", messages, order.rid)
    tx.books.load(order.gid, resource.tenant, -messages)
    if order.kind is Kind.RETIRE:
        tx.books.settled(order.gid, order.rid, done=0, failed=0, dead=messages)
    else:
        tx.books.count(order.gid, "messages_discarded", messages)
    if not tx.first("has_work", order.rid) and not tx.all("tokens", order.rid):
        drop_request(tx, order.rid)


def _living(tx: Transaction, order: Order) -> list[Row]:
    """The tokens that count. No claim comes to a retiring resource, so the dead ones end here."""
    tokens = tx.all("tokens", order.rid)
    if order.kind is not Kind.RETIRE:
        return tokens
    for slot, fence, until_ms, _loan in tokens:
        if until_ms <= tx.now_ms:
            tx.run("take_token", order.rid, slot, fence)
    return [row for row in tokens if row[2] > tx.now_ms]


def _upto(order: Order) -> int:
    """A retirement takes all: nothing is accepted any more."""
    return order.upto if order.kind is Kind.DISCARD else 1 << 62


def _selected(order: Order, row: Row) -> bool:
    of, before = order.operation.selection, order.older_than_ms()
    return (of.type is None or row[2] == of.type) and (before is None or row[3] <= before)


def _on_loan(row: Row, loaned: list[Range]) -> bool:
    return any(due == row[0] and first <= row[1] <= last for due, first, last in loaned)


def _take_out(tx: Transaction, order: Order, row: Row) -> list[Event]:
    events: list[Event] = []
    if order.kind is Kind.RETIRE:
        operation, resource = order.operation, order.operation.selection.resource
        assert resource is not None
        error = (None, operation.reason, None)
        dead = tx.first("bury", tx.now_ms, 0, "retired", *error, order.rid, row[0], row[1])
        assert dead is not None
        id, type, attempts = dead
        events.append(DeadLettered(operation.group, resource, id, type, "retired", attempts))
    tx.run("done", order.rid, row[0], row[1], row[1])
    return events


def _bury_resource(tx: Transaction, order: Order) -> list[Event]:
    """No work, no token, and none will come: what is left is a tombstone."""
    operation, resource = order.operation, order.operation.selection.resource
    assert resource is not None
    actor = order.row[7]
    tx.run("set_state", State.REMOVED.value, operation.reason, actor, None, order.rid)
    assert order.rid is not None
    drop_request(tx, order.rid)
    tx.directory_changed = True
    return [StateChanged(operation.group, resource, State.REMOVED, operation.reason, actor)]


def _note(
    tx: Transaction,
    order: Order,
    last: tuple[int, int],
    done: int,
    skipped: int,
    wait_ms: int = 0,
) -> None:
    next_ms = next_step_ms(tx, order, done) + wait_ms
    tx.run("advance_operation", *last, done, skipped, next_ms, order.number)
