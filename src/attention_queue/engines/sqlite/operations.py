"""Redrive, discard, retire: each step is one transaction that also notes where the next goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from attention_queue.clock import MS, from_ms
from attention_queue.contract import State
from attention_queue.contract.events import Event, StateChanged
from attention_queue.contract.operation import (
    Kind,
    Operation,
    OperationFigures,
    Progress,
    Selection,
)
from attention_queue.engines.sqlite.directory import Directory, encode_map, state_at
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import Conflict, UnknownOperation, UnknownResource

_GONE = (State.RETIRING, State.REMOVED)
_PACE_MS = 200  # a paced operation steps about so often
_BACK_OFF_MS = 5_000  # after a step that has failed


@dataclass(frozen=True, slots=True)
class Order:
    """An operation as a step sees it."""

    number: int
    gid: int
    rid: int | None
    operation: Operation
    progress: Progress
    last_due: int
    last: int
    upto: int
    row: Row

    @property
    def kind(self) -> Kind:
        return self.operation.kind

    def older_than_ms(self) -> int | None:
        """The moment before which what is selected has come, judged from the start."""
        age = self.operation.selection.older_than
        return None if age is None else int(self.row[16]) - age // MS


def start(tx: Transaction, directory: Directory, operation: Operation, actor: str) -> int:
    """Note the order, and make sure that it can be followed. Nothing is moved yet.

    Raises:
        UnknownResource: There is no such resource.
        Conflict: The same is under way, or the resource is being retired.
    """
    gid = directory.group(tx, operation.group).gid
    rid = _find(tx, gid, operation) if operation.selection.resource else None
    if rid is not None:
        _check_resource(tx, rid, operation)
    upto, total = _extent(tx, gid, rid, operation)
    row = tx.first(
        "start_operation", gid, rid, operation.kind.value, _write(operation.selection),
        operation.reason, actor, operation.per_second, operation.jitter // MS, upto, total,
        tx.now_ms, tx.now_ms,
    )  # fmt: skip
    assert row is not None
    number = int(row[0])
    if operation.kind is Kind.RETIRE and rid is not None:
        tx.run("set_state", State.RETIRING.value, operation.reason, actor, None, rid)
        tx.directory_changed = True
    detail = encode_map({"operation": number, "selection": operation.selection})
    tx.run("audit", tx.now_ms, gid, rid, actor, operation.kind.value, operation.reason, detail)
    return number


def _find(tx: Transaction, gid: int, operation: Operation) -> int:
    resource = operation.selection.resource
    assert resource is not None
    row = tx.first("find", gid, resource.tenant, resource.id)
    if row is None:
        raise UnknownResource(operation.group, resource)
    return int(row[0])


def _check_resource(tx: Transaction, rid: int, operation: Operation) -> None:
    kind, resource = operation.kind, operation.selection.resource
    if same := tx.first("operation_of", rid, kind.value):
        raise Conflict(
            f"operation {same[0]} ({kind.value}) of {resource} is under way",
            f"wait for it or cancel it: attn op cancel {same[0]}",
        )
    row = tx.first("state", rid)
    assert row is not None
    if state_at(row[0], row[1], tx.now_ms) in _GONE and kind is not Kind.DISCARD_DEAD:
        raise Conflict(
            f"{resource} is {row[0]}", "it takes no more work, so there is nothing to do with it"
        )


def _extent(tx: Transaction, gid: int, rid: int | None, operation: Operation) -> tuple[int, int]:
    """Where it ends (what comes later is not part of it), and how much that is now."""
    if operation.kind in (Kind.REDRIVE, Kind.DISCARD_DEAD):
        newest = tx.first("last_dead")
        upto = int(newest[0] or 0) if newest else 0
        row = tx.first("count_dead", upto, gid, rid, *_narrowed(operation.selection, tx.now_ms))
    else:
        upto, row = tx.next(), tx.first("count_work", rid)
    assert row is not None
    return upto, int(row[0])


def _narrowed(of: Selection, start_ms: int) -> tuple[object, ...]:
    before = None if of.older_than is None else start_ms - of.older_than // MS
    ids = None if of.ids is None else encode_map(of.ids)
    return (of.tenant, of.type, of.error, of.reason, before, ids)


def due(tx: Transaction) -> int | None:
    """The number of the operation whose turn it is, if it is anybody's."""
    row = tx.first("running_operation", tx.now_ms)
    return int(row[0]) if row else None


def put_off(tx: Transaction, number: int) -> None:
    """Its step has failed and was undone: the others go first for a while."""
    tx.run("put_off_operation", tx.now_ms + _BACK_OFF_MS, number)


def retirement(of: Operation, state: State, actor: str, reason: str) -> tuple[Event, ...]:
    """What is told when one begins or is cancelled; of another kind of operation nothing."""
    if of.kind is not Kind.RETIRE or of.selection.resource is None:
        return ()
    return (StateChanged(of.group, of.selection.resource, state, reason, actor),)


def cancel(tx: Transaction, number: int, actor: str) -> tuple[OperationFigures, tuple[Event, ...]]:
    """What is done stays done. A resource whose retirement is cancelled is left disabled.

    Raises:
        UnknownOperation: There is none of that number.
        Conflict: It has ended already.
    """
    order = load(tx, number)
    if order.progress is not Progress.RUNNING:
        raise Conflict(
            f"operation {number} is {order.progress.value}", "there is nothing to cancel"
        )
    tx.run("end_operation", Progress.CANCELLED.value, tx.now_ms, number)
    text = f"retirement cancelled (operation {number})"
    if order.kind is Kind.RETIRE:
        tx.run("set_state", State.DISABLED.value, text, actor, None, order.rid)
        tx.directory_changed = True
    detail = encode_map({"operation": number})
    tx.run(
        "audit", tx.now_ms, order.gid, order.rid, actor, "cancel", order.operation.reason, detail
    )
    events = retirement(order.operation, State.DISABLED, actor, text)
    return figures(load(tx, number)), events


def load(tx: Transaction, number: int) -> Order:
    row = tx.first("operation", number)
    if row is None:
        raise UnknownOperation(number)
    operation = Operation(
        kind=Kind(row[3]),
        group=row[19],
        selection=_read(row[4]),
        reason=row[6],
        per_second=row[8],
        jitter=row[9] * MS,
    )
    return Order(
        row[0], row[1], row[2], operation, Progress(row[5]), row[10], row[11], row[12], row
    )


def figures(order: Order) -> OperationFigures:
    row = order.row
    return OperationFigures(
        number=order.number,
        operation=order.operation,
        actor=row[7],
        progress=order.progress,
        total=row[13],
        done=row[14],
        skipped=row[15],
        started=from_ms(row[16]),
        ended=None if row[17] is None else from_ms(row[17]),
        next=from_ms(row[18]),
    )


def chunk(order: Order, limit: int) -> int:
    """How many one step may take: of a paced operation a fifth of a second's worth."""
    pace = order.operation.per_second
    return limit if pace is None else max(1, min(limit, int(pace * _PACE_MS / 1000)))


def next_step_ms(tx: Transaction, order: Order, taken: int) -> int:
    pace = order.operation.per_second
    return tx.now_ms if pace is None else tx.now_ms + math.ceil(taken / pace * 1000)


def _write(selection: Selection) -> str:
    return msgspec.json.encode(selection).decode()


def _read(text: str) -> Selection:
    return msgspec.json.decode(text, type=Selection)
