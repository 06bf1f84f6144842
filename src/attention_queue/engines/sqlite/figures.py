"""Rows into the figures that people look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import apsw
import msgspec

from attention_queue import sql
from attention_queue.clock import FOREVER_MS, from_ms
from attention_queue.contract import Hold, Plan, Priority, Resource, ResourceState, State, effective
from attention_queue.contract.codec import overrides_from_json, policy_from_json
from attention_queue.contract.figures import (
    AHEAD_COUNTED,
    BACKLOG_COUNTED,
    DEAD_COUNTED,
    GroupFigures,
    LineFigures,
    NextFigures,
    Overview,
    PlanFigures,
    RequestFigures,
    ResourceFigures,
    ResourceFilter,
    ResourceRow,
    TokenFigures,
)
from attention_queue.contract.operation import AuditEntry
from attention_queue.engines.sqlite import census, recent
from attention_queue.engines.sqlite.directory import state_at
from attention_queue.engines.sqlite.loans import read_ranges
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import InvalidResource

STATEMENTS = {
    **sql.load("attention_queue.engines.sqlite", "insight.sql"),
    **sql.load("attention_queue.engines.sqlite", "letters.sql"),
}
_MAX_FOUND = 20
_CHANGES = 3  # shown beside a verdict


class Look:
    """Passed to each read; all statements of one look see the same moment."""

    def __init__(self, db: apsw.Connection, now_ms: int) -> None:
        self._db, self.now_ms = db, now_ms

    def first(self, name: str, *values: object) -> Row | None:
        return self._db.execute(STATEMENTS[name], values).fetchone()

    def all(self, name: str, *values: object) -> list[Row]:
        return self._db.execute(STATEMENTS[name], values).fetchall()

    def counted(self, name: str, *values: object) -> list[Row]:
        return self._db.execute(census.STATEMENTS[name], values).fetchall()

    def all_where(self, name: str, values: dict[str, object]) -> list[Row]:
        return self._db.execute(STATEMENTS[name], values).fetchall()

    def transaction(self) -> Transaction:
        """The same moment, for what is written for a transaction and only reads."""
        return Transaction(self._db, self.now_ms)


def overview(look: Look) -> Overview:
    groups = tuple(_group(look, *row) for row in look.all("groups"))
    return Overview(at=from_ms(look.now_ms), groups=groups)


def find(look: Look, text: str) -> list[tuple[str, Resource]]:
    """What ``tenant/id`` names; if it names nothing, the resources with that text as their id."""
    rows: list[Row] = []
    try:
        resource = Resource.parse(text)
    except InvalidResource:
        pass
    else:
        rows = look.all("named", resource.tenant, resource.id)
    rows = rows or look.all("named_anywhere", text)
    return [(group, Resource(tenant, id)) for group, tenant, id in rows[:_MAX_FOUND]]


def resource(look: Look, group: str, name: Resource) -> ResourceFigures | None:
    if (row := look.first("resource", group, name.tenant, name.id)) is None:
        return None
    rid, gid, type, plan, policy, overrides, routing = row[:7]
    now, oldest = from_ms(look.now_ms), _oldest(look, rid)
    changes = overrides_from_json(overrides) if overrides else ()
    routes = msgspec.json.decode(routing, type=dict[str, str]) if routing else {}
    return ResourceFigures(
        at=now,
        group=group,
        type=type,
        resource=name,
        version=row[18],
        plan=plan,
        policy=effective(Plan(plan, policy_from_json(policy)), changes, now),
        overrides=changes,
        routing=routes,
        state=ResourceState(State(row[7]), row[8], row[9], moment_of(row[10])),
        request=_request(look, gid, row),
        tokens=tuple(token_of(look, rid, *each) for each in look.all("tokens_of", rid)),
        backlog=row[17] if row[17] is not None else _count(look, "unasked", rid, BACKLOG_COUNTED),
        oldest=oldest,
        next=_next(look, rid),
        dead=_count(look, "dead_of", rid, DEAD_COUNTED),
        expired=_count(look, "expired_of", rid),
        pace=recent.pace(look.first("pace", rid), row[19], oldest, look.now_ms),
        changes=_changes(look, gid, group, rid),
        stop=_stop(look, gid, routes),
        line=_line(look),
    )


def _changes(look: Look, gid: int, group: str, rid: int) -> tuple[AuditEntry, ...]:
    rows = look.all("audit_newest_of", gid, FOREVER_MS, _CHANGES, rid)
    return tuple(recent.audit_entries(group, rows))


def page(
    look: Look, group: str, wanted: ResourceFilter, after: Resource | None, limit: int
) -> Sequence[ResourceRow]:
    busy = wanted.busy or wanted.more_than >= 0 or wanted.older_than is not None
    values: dict[str, object] = {
        "group": group,
        "tenant": after.tenant if after else "",
        "id": after.id if after else "",
        "tenants": _pattern(wanted.tenant),
        "ids": _pattern(wanted.id),
        "plan": wanted.plan,
        "error": wanted.error,
        "state": wanted.state.value if wanted.state else None,
        "now": look.now_ms,
        "limit": limit,
    }
    if busy:
        age = wanted.older_than
        values["more_than"] = wanted.more_than
        values["before"] = None if age is None else look.now_ms - age // timedelta(milliseconds=1)
    return [
        row_of(look, row) for row in look.all_where("listed_busy" if busy else "listed", values)
    ]


def unattended(look: Look) -> int:
    return int(look.counted("census_unattended")[0][0])


def _group(look: Look, gid: int, name: str, type: str, default_plan: str) -> GroupFigures:
    lines = look.all("line", gid, look.now_ms)
    ready = [row for row in lines if row[0]]
    tokens = look.first("tokens_of_group", gid, look.now_ms) or (0, 0)
    return GroupFigures(
        name=name,
        type=type,
        plans=tuple(
            PlanFigures(
                name=plan,
                policy=policy_from_json(policy),
                is_default=plan == default_plan,
                is_declared=bool(declared),
            )
            for plan, policy, declared in look.all("plans", gid)
        ),
        backlog=sum(row[3] for row in lines),
        busy=sum(row[2] for row in lines),
        ready=sum(row[2] for row in ready),
        parked={row[1] or "": row[2] for row in lines if not row[0]},
        tokens=tokens[0],
        ended_tokens=tokens[1],
        waiting_since=moment_of(min((row[4] for row in ready), default=None)),
        dead=_count(look, "dead_of_group", gid),
        ledger=dict(look.all("ledger", gid)),
    )


def _request(look: Look, gid: int, row: Row) -> RequestFigures | None:
    lane, due_ms, place, since_ms, hold_ms, hold_why, _backlog = row[11:18]
    if lane is None:
        return None
    in_line = due_ms <= look.now_ms
    ahead = look.first("ahead", gid, lane, place, AHEAD_COUNTED) if due_ms == 0 else None
    return RequestFigures(
        priority=Priority(lane),
        since=from_ms(due_ms or since_ms) if in_line else from_ms(since_ms),
        due=None if in_line else from_ms(due_ms),
        hold=_hold(look, hold_ms, hold_why),
        ahead=ahead[0] if ahead else 0,
    )


def token_of(
    look: Look, rid: int, slot: int, owner: str, fence: int, until_ms: int, loan: str
) -> TokenFigures:
    """A range on loan spans the numbers of other resources, so its messages are counted."""
    counts = [look.first("in_hand", rid, *each) for each in read_ranges(loan)]
    return TokenFigures(
        slot=slot,
        owner=owner,
        fence=fence,
        until=from_ms(until_ms),
        loaned=sum(row[0] for row in counts if row),
    )


def _next(look: Look, rid: int) -> NextFigures | None:
    row = look.first("next_due_now", rid, look.now_ms) or look.first("next_ready", rid)
    if row is None:
        return None
    id, type, enqueued_ms, due_ms, failed, crashes, history, unknown_ms, redriven, expires_ms = row
    return NextFigures(
        id=id,
        type=type,
        enqueued=from_ms(enqueued_ms),
        due=from_ms(due_ms) if due_ms > look.now_ms else None,
        failed=failed,
        crashes=crashes,
        error=_last_error(history),
        unknown_since=moment_of(unknown_ms),
        redriven=redriven,
        expires=moment_of(expires_ms),
    )


def _last_error(history: str | None) -> str:
    entries = msgspec.json.decode(history, type=list[dict[str, object]]) if history else []
    if not entries:
        return ""
    said = [str(part) for name in ("error", "message") if (part := entries[-1].get(name))]
    return ": ".join(said)


def _stop(look: Look, gid: int, routing: dict[str, str]) -> str:
    scopes = {f"routing.{name}={value}" for name, value in routing.items()}
    rows = [row for row in look.all("stops", gid) if row[0] in scopes]
    return "; ".join(f"{scope.removeprefix('routing.')}: {reason}" for scope, reason, _ in rows)


def _line(look: Look) -> LineFigures:
    tokens, since_ms, due_ms = look.first("attended", look.now_ms) or (0, None, None)
    longest = min((ms for ms in (since_ms, due_ms) if ms is not None), default=None)
    return LineFigures(tokens=tokens, waiting_since=moment_of(longest))


def row_of(look: Look, row: Row) -> ResourceRow:
    rid, tenant, id, plan, state, until_ms, due_ms, hold_ms, hold_why, backlog = row
    return ResourceRow(
        resource=Resource(tenant, id),
        plan=plan,
        state=state_at(state, until_ms, look.now_ms),
        backlog=backlog,
        oldest=_oldest(look, rid) if due_ms is not None else None,
        tokens=sum(token[3] > look.now_ms for token in look.all("tokens_of", rid)),
        due=from_ms(due_ms) if due_ms is not None and due_ms > look.now_ms else None,
        hold=_hold(look, hold_ms, hold_why),
        has_request=due_ms is not None,
    )


def _hold(look: Look, hold_ms: int | None, why: str | None) -> Hold | None:
    return Hold(why) if why and hold_ms is not None and hold_ms > look.now_ms else None


def _oldest(look: Look, rid: int) -> datetime | None:
    row = look.first("oldest", rid)
    return moment_of(row[0]) if row else None


def _count(look: Look, name: str, *key: int) -> int:
    row = look.first(name, *key)
    return int(row[0]) if row else 0


def moment_of(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


def _pattern(text: str | None) -> str | None:
    """A GLOB pattern in which ``*`` at the end alone is more than itself."""
    if text is None:
        return None
    star = "*" if text.endswith("*") else ""
    plain = text.removesuffix("*") if star else text
    return "".join(f"[{c}]" if c in "*?[" else c for c in plain) + star
