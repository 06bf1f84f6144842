"""The read model as plain tables: the same JSON in every face. Times are seconds or ISO 8601."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from attention_queue.contract.codec import Table, override_to_table, policy_to_table
from attention_queue.contract.figures import (
    Check,
    CycleFigures,
    GroupFigures,
    NextFigures,
    Overview,
    ResourceFigures,
    ResourceRow,
    TokenFigures,
)
from attention_queue.contract.operation import AuditEntry
from attention_queue.core.health import Status
from attention_queue.core.insight import Verdict
from attention_queue.core.outlook import forecast, rates
from attention_queue.core.wording import END_OF_TIME


def overview_table(seen: Overview, status: Status) -> Table:
    return {
        "health": status.health.value,
        "because": status.because,
        "try_this": list(status.try_this),
        "at": seen.at.isoformat(),
        "groups": [group_table(group, seen.at) for group in seen.groups],
    }


def group_table(group: GroupFigures, now: datetime) -> Table:
    return {
        "group": group.name,
        "type": group.type,
        "backlog": group.backlog,
        "resources_with_work": group.busy,
        "ready": group.ready,
        "parked": {why or "delayed": count for why, count in group.parked.items()},
        "tokens": group.tokens,
        "oldest_wait_seconds": seconds_since(group.waiting_since, now),
        "dead_letters": group.dead,
        "requests": ledger_table(group),
        "plans": [plan.name for plan in group.plans],
    }


def row_table(row: ResourceRow, now: datetime) -> Table:
    return {
        "resource": str(row.resource),
        "tenant": row.resource.tenant,
        "id": row.resource.id,
        "plan": row.plan,
        "state": row.state.value,
        "backlog": row.backlog,
        "tokens": row.tokens,
        "request": request_word(row),
        "due": moment_or_none(row.due),
        "oldest_seconds": seconds_since(row.oldest, now),
    }


def request_word(row: ResourceRow) -> str | None:
    """How its request stands: ``ready``, the hold that it waits for, ``parked``, or none."""
    if not row.has_request:
        return None
    if row.due is None:
        return "ready"
    return row.hold.value if row.hold else "parked"


def ledger_table(group: GroupFigures) -> Table:
    """What became of requests since the group was made."""
    ledger = group.ledger
    names = ("published", "coalesced", "republished", "wasted")
    return {
        **{name: ledger.get(f"requests_{name}", 0) for name in names},
        "discarded": _by_reason(ledger, "requests_discarded_"),
        "blocked": _by_reason(ledger, "requests_blocked_"),
    }


def _by_reason(ledger: Mapping[str, int], start: str) -> dict[str, int]:
    return {
        name.removeprefix(start): count for name, count in ledger.items() if name.startswith(start)
    }


def resource_table(seen: ResourceFigures) -> Table:
    return {
        "group": seen.group,
        "type": seen.type,
        "resource": str(seen.resource),
        "tenant": seen.resource.tenant,
        "id": seen.resource.id,
        "version": seen.version,
        "at": seen.at.isoformat(),
        "state": state_table(seen),
        "plan": seen.plan,
        "policy": policy_to_table(seen.policy),
        "overrides": [override_to_table(override) for override in seen.overrides],
        "routing": dict(seen.routing),
        "backlog": seen.backlog,
        "oldest_seconds": seconds_since(seen.oldest, seen.at),
        "dead_letters": seen.dead,
        "request": _request(seen),
        "tokens": [token_table(token, seen.at) for token in seen.tokens],
        "next": _next(seen.next),
        **rates(seen.pace),
        **_lately(seen),
    }


def _lately(seen: ResourceFigures) -> Table:
    """The forecast, cycles and changes, newest first."""
    pace, expected = seen.pace, forecast(seen)
    clear = expected.clear
    return {
        "forecast": {
            "clear_seconds": None if clear is None else round(clear.total_seconds(), 3),
            "because": expected.because,
        },
        "cycles": [_cycle(each) for each in pace.cycles] if pace else [],
        "changes": [_change(each) for each in seen.changes],
    }


def _cycle(cycle: CycleFigures) -> Table:
    return {
        "at": cycle.at.isoformat(),
        "end": cycle.end,
        "handled": cycle.handled,
        "duration_seconds": cycle.duration.total_seconds(),
    }


def _change(entry: AuditEntry) -> Table:
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "did": did(entry),
        "reason": entry.reason,
    }


def did(entry: AuditEntry) -> str:
    """What a change did, in a few words."""
    detail = msgspec.json.decode(entry.detail)
    verb = entry.verb.replace("_", " ")
    if not isinstance(detail, dict):
        return verb
    match entry.verb:
        case "plan" if detail.get("overrides") is not None:
            return "overrides"
        case "state" | "plan":
            return f"{verb} {detail.get('was')} → {detail.get('is')}"
        case "set_plan":
            return f"set plan {detail.get('plan')}"
        case _:
            number = detail.get("operation")
            return verb + (f" (operation {number})" if number else "")


def state_table(seen: ResourceFigures) -> Table:
    return {
        "state": seen.state.at(seen.at).value,
        "reason": seen.state.reason,
        "actor": seen.state.actor,
        "until": moment_or_none(seen.state.until),
    }


def _next(head: NextFigures | None) -> Table | None:
    if head is None:
        return None
    return {
        "id": head.id,
        "type": head.type,
        "enqueued": head.enqueued.isoformat(),
        "due": moment_or_none(head.due),
        "failed": head.failed,
        "crashes": head.crashes,
        "error": head.error or None,
        "redriven": head.redriven,
        "expires": moment_or_none(head.expires),
    }


def _request(seen: ResourceFigures) -> Table | None:
    request = seen.request
    if request is None:
        return None
    return {
        "priority": request.priority.name.lower(),
        "due": moment_or_none(request.due),
        "hold": request.hold.value if request.hold else None,
        "ahead": request.ahead if request.due is None else None,
        "waited_seconds": seconds_since(request.since, seen.at) if request.due is None else None,
    }


def token_table(token: TokenFigures, now: datetime) -> Table:
    return {
        "slot": token.slot,
        "owner": token.owner,
        "fence": token.fence,
        "until": token.until.isoformat(),
        "ended": token.until <= now,
        "loaned": token.loaned,
    }


def verdict_table(seen: ResourceFigures, verdict: Verdict) -> Table:
    return {
        "group": seen.group,
        "resource": str(seen.resource),
        "version": seen.version,
        "at": seen.at.isoformat(),
        "verdict": verdict.verdict.value,
        "because": verdict.because,
        "limit": verdict.limit.value if verdict.limit else None,
        "numbers": dict(verdict.numbers),
        "tokens": [token_table(token, seen.at) for token in seen.tokens],
        **_lately(seen),
        "try_this": list(verdict.try_this),
    }


def check_table(check: Check) -> Table:
    return {
        "check": check.name,
        "grade": check.grade.value,
        "found": check.found,
        "fix": check.fix or None,
    }


def seconds_since(then: datetime | None, now: datetime) -> float | None:
    return None if then is None else round((now - then).total_seconds(), 3)


def moment_or_none(value: datetime | None) -> str | None:
    return None if value is None or value >= END_OF_TIME else value.isoformat()
