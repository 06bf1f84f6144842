"""Rows into what is looked at one by one: dead letters, operations, the audit trail, findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from attention_queue.clock import FOREVER_MS, from_ms
from attention_queue.contract import Resource
from attention_queue.contract.operation import (
    AuditEntry,
    DeadGroup,
    DeadLetter,
    Kind,
    OperationFigures,
    Selection,
)
from attention_queue.contract.views import Finding, GroupBy, Scanned
from attention_queue.engines.sqlite import operations, recent, sweep
from attention_queue.engines.sqlite.directory import encode_map
from attention_queue.engines.sqlite.figures import Look
from attention_queue.engines.sqlite.loans import long_content_type
from attention_queue.engines.sqlite.transaction import Row
from attention_queue.errors import ContractError, UnknownOperation, UnknownResource

_MS = timedelta(milliseconds=1)


def dead_letters(
    look: Look, group: str, of: Selection, before: int | None, limit: int
) -> Sequence[DeadLetter]:
    values = _selected(look, group, of)
    values |= {"before": _below(before), "limit": limit}
    if values["rid"] is None:
        del values["rid"]
        return [_letter(row) for row in look.all_where("dead_newest", values)]
    return [_letter(row) for row in look.all_where("dead_newest_of", values)]


def dead_letter(look: Look, number: int) -> tuple[str, DeadLetter] | None:
    row = look.first("dead_letter", number)
    return (row[0], _letter(row[1:])) if row else None


def dead_groups(look: Look, group: str, of: Selection, by: GroupBy) -> Sequence[DeadGroup]:
    name = "dead_by_error" if by is GroupBy.ERROR else "dead_by_resource"
    return [
        DeadGroup(
            reason=reason,
            error=error,
            type=type,
            count=count,
            first=from_ms(first),
            last=from_ms(last),
            example=example,
            resource=Resource(tenant, id) if id is not None else None,
        )
        for reason, error, type, count, first, last, example, tenant, id in look.all_where(
            name, _selected(look, group, of)
        )
    ]


def extent(look: Look, group: str, kind: Kind, of: Selection) -> int:
    values = _selected(look, group, of)
    if kind in (Kind.DISCARD, Kind.RETIRE):
        names = ("rid", "type", "died_ms")
        rows = look.all_where("work_selected", {name: values[name] for name in names})
    else:
        rows = look.all_where("dead_selected", values)
    return int(rows[0][0])


def operation(look: Look, number: int) -> OperationFigures | None:
    try:
        return operations.figures(operations.load(look.transaction(), number))
    except UnknownOperation:
        return None


def started(look: Look, group: str, before: int | None, limit: int) -> Sequence[OperationFigures]:
    numbers = look.all("operations_newest", gid_of(look, group), _below(before), limit)
    found = (operation(look, number) for (number,) in numbers)
    return [figures for figures in found if figures is not None]


def audit(
    look: Look, group: str, resource: Resource | None, before: int | None, limit: int
) -> Sequence[AuditEntry]:
    gid = gid_of(look, group)
    if resource is None:
        rows = look.all("audit_newest", gid, _below(before), limit)
    else:
        rid = rid_of(look, group, resource)
        rows = look.all("audit_newest_of", gid, _below(before), limit, rid)
    return recent.audit_entries(group, rows)


def scan(look: Look, after: int, limit: int) -> Scanned:
    """The same judgement as a sweep's, page by page."""
    tx, findings = look.transaction(), list[Finding]()
    if after < 0:
        findings += [
            _finding(look, rid, "ended_token") for rid in sweep.with_ended_token(tx, limit)
        ]
    for _ in range(limit):
        rid = sweep.following(tx, after)
        if rid is None:
            return Scanned(None, tuple(findings))
        after = rid
        if why := sweep.fault(tx, after):
            findings.append(_finding(look, rid, why))
    return Scanned(after, tuple(findings))


def _finding(look: Look, rid: int, why: str) -> Finding:
    name = look.first("named_by_rid", rid)
    assert name is not None
    return Finding(name[0], Resource(name[1], name[2]), why)


def gid_of(look: Look, group: str) -> int:
    row = look.first("gid", group)
    if row is None:
        raise ContractError(f"no group {group!r}: open it before publishing or serving")
    return int(row[0])


def rid_of(look: Look, group: str, resource: Resource) -> int:
    row = look.first("rid", gid_of(look, group), resource.tenant, resource.id)
    if row is None:
        raise UnknownResource(group, resource)
    return int(row[0])


def _selected(look: Look, group: str, of: Selection) -> dict[str, object]:
    return {
        "gid": gid_of(look, group),
        "rid": None if of.resource is None else rid_of(look, group, of.resource),
        "tenant": of.tenant,
        "type": of.type,
        "error": of.error,
        "reason": of.reason,
        "died_ms": None if of.older_than is None else look.now_ms - of.older_than // _MS,
        "ids": None if of.ids is None else encode_map(of.ids),
    }


def _letter(row: Row) -> DeadLetter:
    return DeadLetter(
        number=row[0],
        resource=Resource(row[1], row[2]),
        id=row[3],
        type=row[4],
        reason=row[5],
        error=row[6],
        text=row[7],
        trace=row[8],
        attempts=row[9],
        enqueued=from_ms(row[10]),
        died=from_ms(row[11]),
        redriven=row[12],
        content_type=long_content_type(row[13]),
        payload=row[14],
        history=row[15],
    )


def _below(before: int | None) -> int:
    return FOREVER_MS if before is None else before
