"""Rows into what stands and waits: the line, the tokens, the plans in use, the busiest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attention_queue.clock import FOREVER_MS, from_ms
from attention_queue.contract import Hold, Priority, Resource
from attention_queue.contract.codec import policy_from_json
from attention_queue.contract.figures import PlanFigures
from attention_queue.contract.views import (
    BusyRow,
    HeldToken,
    InLine,
    Line,
    Parked,
    PlanUse,
    Waiting,
)
from attention_queue.engines.sqlite import figures
from attention_queue.engines.sqlite.figures import Look
from attention_queue.engines.sqlite.letters import gid_of, rid_of
from attention_queue.engines.sqlite.loans import Range, read_ranges
from attention_queue.engines.sqlite.transaction import Row

_DECAY_MS = 60_000  # as the books keep their rates


def line(look: Look, group: str, first: int) -> Line:
    gid = gid_of(look, group)
    counts = {Priority(lane): count for lane, count in look.all("lane_counts", gid)}
    return Line(
        at=from_ms(look.now_ms),
        lanes={
            lane: tuple(_in_line(look, row) for row in look.all("lane_first", gid, lane, first))
            for lane in Priority
        },
        counts={lane: counts.get(lane, 0) for lane in Priority},
        parked=tuple(
            Parked(
                hold=Hold(why) if why else None,
                count=count,
                first=tuple(
                    _in_line(look, row)
                    for row in look.all("parked_first", gid, look.now_ms, why, first)
                ),
            )
            for why, count in look.all("parked_counts", gid, look.now_ms)
        ),
    )


def tokens(look: Look, group: str) -> Sequence[HeldToken]:
    return [
        HeldToken(resource=Resource(tenant, id), token=figures.token_of(look, rid, *rest))
        for rid, tenant, id, *rest in look.all("tokens_out", gid_of(look, group))
    ]


def plans(look: Look, group: str) -> Sequence[PlanUse]:
    gid = gid_of(look, group)
    default = next(row[3] for row in look.all("groups") if row[0] == gid)
    use = {plan: (busy, backlog) for plan, busy, backlog in look.all("plans_in_use", gid)}
    return [
        PlanUse(
            plan=PlanFigures(
                name=name,
                policy=policy_from_json(policy),
                is_default=name == default,
                is_declared=bool(declared),
            ),
            version=version,
            busy=use.get(name, (0, 0))[0],
            backlog=use.get(name, (0, 0))[1],
        )
        for name, version, policy, declared in look.all("plan_versions", gid)
    ]


def busiest(look: Look, group: str, limit: int) -> Sequence[BusyRow]:
    return [_busy(look, row) for row in look.all("busiest", gid_of(look, group), limit)]


def peek(look: Look, group: str, resource: Resource, limit: int) -> Sequence[Waiting]:
    """First the delayed that have fallen due, then those without a due time, then the others."""
    rid = rid_of(look, group, resource)
    loans = [each for row in look.all("tokens_of", rid) for each in read_ranges(row[4])]
    rows: list[Row] = []
    for first, last in ((1, look.now_ms), (0, 0), (look.now_ms + 1, FOREVER_MS)):
        rows += look.all("waiting", rid, first, last, limit - len(rows))
    return [_waiting(look, row, loans) for row in rows]


def _in_line(look: Look, row: Row) -> InLine:
    tenant, id, plan, backlog, since_ms, due_ms = row
    return InLine(
        resource=Resource(tenant, id),
        plan=plan,
        backlog=backlog,
        since=from_ms(since_ms),
        due=from_ms(due_ms) if due_ms > look.now_ms else None,
    )


def _busy(look: Look, row: Row) -> BusyRow:
    at_ms, arrival, service = row[10:]
    kept = math.exp(-max(look.now_ms - at_ms, 0) / _DECAY_MS) if at_ms is not None else 0.0
    return BusyRow(
        row=figures.row_of(look, row[:10]),
        arrival=None if arrival is None else arrival * kept,
        service=None if service is None else service * kept,
    )


def _waiting(look: Look, row: Row, loans: list[Range]) -> Waiting:
    id, type, enqueued_ms, due_ms, seq, failed, redriven, expires_ms, size, payload = row
    return Waiting(
        id=id,
        type=type,
        enqueued=from_ms(enqueued_ms),
        due=from_ms(due_ms) if due_ms > look.now_ms else None,
        failed=failed,
        redriven=redriven,
        expires=figures.moment_of(expires_ms),
        on_loan=any(due == due_ms and first <= seq <= last for due, first, last in loans),
        size=size,
        payload=payload,
    )
