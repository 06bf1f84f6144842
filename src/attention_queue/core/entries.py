"""Dead letters, operations, tokens, plans, the line and the audit trail as plain tables."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

import msgspec

from attention_queue.contract.codec import Table, policy_to_table
from attention_queue.contract.operation import (
    AuditEntry,
    DeadGroup,
    DeadLetter,
    OperationFigures,
    Selection,
)
from attention_queue.contract.units import write_duration
from attention_queue.contract.views import (
    BusyRow,
    Finding,
    HeldToken,
    InLine,
    Line,
    PlanUse,
    Waiting,
)
from attention_queue.core.tables import moment_or_none, row_table, seconds_since, token_table
from attention_queue.core.wording import plain

PREVIEW = 1000  # characters of a payload
_CUT = "…"


def letter_row(letter: DeadLetter) -> Table:
    """One line of a list: without payload, trace and history."""
    return {
        "number": letter.number,
        "resource": str(letter.resource),
        "id": letter.id,
        "type": letter.type,
        "reason": letter.reason,
        "error": letter.error,
        "text": letter.text,
        "attempts": letter.attempts,
        "redriven": letter.redriven,
        "enqueued": letter.enqueued.isoformat(),
        "died": letter.died.isoformat(),
    }


def letter_table(group: str, letter: DeadLetter) -> Table:
    """The whole of it; of the payload what can be read, and not more than the beginning."""
    return {
        "group": group,
        **letter_row(letter),
        "content_type": letter.content_type,
        "payload_bytes": len(letter.payload),
        "payload": preview(letter.payload),
        "history": _history(letter.history),
        "trace": letter.trace,
    }


def letter_export(group: str, letter: DeadLetter) -> Table:
    """All of it, so that it can be published again: a payload that is no JSON is in base64."""
    table = letter_table(group, letter)
    del table["payload"]
    try:
        return table | {"payload": msgspec.json.decode(letter.payload)}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return table | {"payload_base64": base64.b64encode(letter.payload).decode()}


def preview(payload: bytes, most: int = PREVIEW) -> str:
    """As text, controls and what is no UTF-8 escaped, cut to ``most`` characters."""
    text = payload[: most * 4].decode("utf-8", "backslashreplace")
    cut = len(text) > most or len(payload) > most * 4
    return plain(text[:most]) + (_CUT if cut else "")


def dead_group_table(group: DeadGroup) -> Table:
    return {
        "resource": str(group.resource) if group.resource else None,
        "reason": group.reason,
        "error": group.error,
        "type": group.type,
        "count": group.count,
        "first": group.first.isoformat(),
        "last": group.last.isoformat(),
        "example": group.example,
    }


def operation_table(seen: OperationFigures) -> Table:
    return {
        "number": seen.number,
        "kind": seen.operation.kind.value,
        "group": seen.operation.group,
        "selection": selection_table(seen.operation.selection),
        "progress": seen.progress.value,
        "total": seen.total,
        "done": seen.done,
        "skipped": seen.skipped,
        "reason": seen.operation.reason,
        "actor": seen.actor,
        "per_second": seen.operation.per_second,
        "jitter_seconds": seen.operation.jitter.total_seconds(),
        "started": seen.started.isoformat(),
        "ended": moment_or_none(seen.ended),
    }


def selection_table(of: Selection) -> Table:
    """What narrows it down, and nothing else."""
    table: Table = {
        "resource": str(of.resource) if of.resource else None,
        "tenant": of.tenant,
        "type": of.type,
        "error": of.error,
        "reason": of.reason,
        "ids": list(of.ids) if of.ids is not None else None,
        "older_than": None if of.older_than is None else write_duration(of.older_than),
    }
    return {name: value for name, value in table.items() if value is not None}


def audit_table(entry: AuditEntry) -> Table:
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "group": entry.group,
        "resource": str(entry.resource) if entry.resource else None,
        "actor": entry.actor,
        "verb": entry.verb,
        "reason": entry.reason,
        "detail": msgspec.json.decode(entry.detail),
    }


def plan_table(use: PlanUse) -> Table:
    """``busy_resources``: those that have work; how many idle ones are on it is not counted."""
    return {
        "plan": use.plan.name,
        "default": use.plan.is_default,
        "as_declared": use.plan.is_declared,
        "version": use.version,
        "busy_resources": use.busy,
        "backlog": use.backlog,
        "policy": policy_to_table(use.plan.policy),
    }


def held_table(held: HeldToken, now: datetime) -> Table:
    return {"resource": str(held.resource), **token_table(held.token, now)}


def line_tables(line: Line) -> list[Table]:
    """One table per request that is shown, in the order in which they are come to."""
    rows = [
        _in_line(each, line.at) | {"lane": lane.name.lower(), "place": place, "parked": None}
        for lane, waiting in line.lanes.items()
        for place, each in enumerate(waiting, 1)
    ]
    for parked in line.parked:
        why = parked.hold.value if parked.hold else "delayed"
        rows += [_in_line(e, line.at) | {"lane": None, "place": None, "parked": why}
                 for e in parked.first]  # fmt: skip
    return rows


def _in_line(each: InLine, now: datetime) -> Table:
    return {
        "resource": str(each.resource),
        "plan": each.plan,
        "backlog": each.backlog,
        "waited_seconds": seconds_since(each.since, now) if each.due is None else None,
        "due": moment_or_none(each.due),
    }


def waiting_table(message: Waiting, now: datetime) -> Table:
    return {
        "id": message.id,
        "type": message.type,
        "age_seconds": seconds_since(message.enqueued, now),
        "due": moment_or_none(message.due),
        "failed": message.failed,
        "redriven": message.redriven,
        "expires": moment_or_none(message.expires),
        "on_loan": message.on_loan,
        "payload_bytes": message.size,
        "payload": preview(message.payload),
    }


def busy_table(busy: BusyRow, now: datetime) -> Table:
    return row_table(busy.row, now) | {
        "arrival_per_second": _rounded(busy.arrival),
        "service_per_second": _rounded(busy.service),
    }


def finding_tables(findings: Sequence[Finding]) -> list[Table]:
    return [{"group": f.group, "resource": str(f.resource), "finding": f.why} for f in findings]


def _history(text: str | None) -> object:
    return msgspec.json.decode(text) if text else []


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)
