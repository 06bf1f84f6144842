"""All that has work, counted by group and plan in a few statements that run outside Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from attention_queue import sql
from attention_queue.clock import from_ms
from attention_queue.contract.figures import Census, GroupCensus, PlanCensus
from attention_queue.engines.sqlite.transaction import Row

STATEMENTS = sql.load("attention_queue.engines.sqlite", "census.sql")
Read = Callable[..., list[Row]]


def census(read: Read, now_ms: int) -> Census:
    """``read`` gives the rows of one of ``STATEMENTS``; all of them see the same moment."""
    plans = defaultdict(list)
    for gid, *row in read("census_plans", now_ms):
        plans[gid].append(_plan(*row))
    requests = {row[:2]: row[2:] for row in read("census_requests", now_ms)}
    tokens: dict[int, int] = dict(read("census_tokens", now_ms))
    dead: dict[int, int] = dict(read("census_dead"))
    groups = tuple(
        GroupCensus(
            name=name,
            plans=tuple(plans[gid]),
            requests={state: row[0] for (g, state), row in requests.items() if g == gid},
            waiting_since=_moment(requests.get((gid, "ready"), (0, None))[1]),
            tokens=tokens.get(gid, 0),
            dead=dead.get(gid, 0),
        )
        for gid, name in read("census_groups")
    )
    return Census(
        at=from_ms(now_ms), groups=groups, unattended=int(read("census_unattended")[0][0])
    )


def _plan(
    plan: str, noisy: int, resources: int, backlog: int, *oldest_ms: int | None
) -> PlanCensus:
    moments = [ms for ms in oldest_ms if ms is not None]
    return PlanCensus(
        plan=plan,
        noisy=bool(noisy),
        resources=resources,
        backlog=backlog,
        oldest=_moment(min(moments, default=None)),
    )


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
