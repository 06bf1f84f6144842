"""Rows into what has happened lately: the pace of a resource, its cycles, who changed what."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

import msgspec

from attention_queue.clock import MS, from_ms, to_ms
from attention_queue.contract import Resource
from attention_queue.contract.figures import CycleFigures, PaceFigures
from attention_queue.contract.operation import AuditEntry
from attention_queue.engines.sqlite.books import DECAY_MS
from attention_queue.engines.sqlite.transaction import Row

_cycles = msgspec.json.Decoder(list[tuple[int, str, int, int]])


def pace(
    row: Row | None, arrived: int | None, oldest: datetime | None, now_ms: int
) -> PaceFigures | None:
    """The books as of now, and what has ``arrived`` since they were written last.

    Without a row, nothing was ever served; all that is there came since the ``oldest`` message.
    """
    if row is None and not arrived:
        return None
    since_ms = to_ms(oldest) if oldest else now_ms
    at_ms, arrival, service, cycles = row or (since_ms, 0.0, 0.0, "[]")
    passed_ms = max(now_ms - at_ms, 0)
    kept = math.exp(-passed_ms / DECAY_MS)
    return PaceFigures(
        arrival=arrival * kept + _spread(arrived or 0, passed_ms),
        service=service * kept,
        cycles=tuple(
            CycleFigures(at=from_ms(each_ms), end=end, handled=handled, duration=took_ms * MS)
            for each_ms, end, handled, took_ms in reversed(_cycles.decode(cycles))
        ),
    )


def _spread(messages: int, passed_ms: int) -> float:
    """Per second, decayed, of messages that came evenly over the time that has passed."""
    if passed_ms < 1:
        return messages * 1000 / DECAY_MS
    return messages * 1000 / passed_ms * (1 - math.exp(-passed_ms / DECAY_MS))


def audit_entries(group: str, rows: Iterable[Row]) -> list[AuditEntry]:
    return [
        AuditEntry(
            number=number,
            at=from_ms(at_ms),
            group=group,
            resource=Resource(tenant, id) if id is not None else None,
            actor=actor,
            verb=verb,
            reason=reason,
            detail=detail,
        )
        for number, at_ms, tenant, id, actor, verb, reason, detail in rows
    ]
