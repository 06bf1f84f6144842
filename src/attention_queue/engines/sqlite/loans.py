"""Loans: ranges of messages that one token may settle and no other may take.

A range is ``(due_ms, first seq, last seq)``. It lies on the token's row, so that taking a message
writes nothing to the message. It is exact, because nothing can come to stand inside a range of
``due_ms = 0``: a new message has a higher ``seq`` than any before it, and a range ends where
another token's begins. A retried message that falls inside a range of a due time (it is due in the
same millisecond, or the clock stepped back) is hidden until that token ends: late, never lost and
never twice, because messages with a due time are settled one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from attention_queue.contract import Delivery, Resource, WorkMessage
from attention_queue.contract.messages import BYTES, JSON, NO_HEADERS
from attention_queue.engines.sqlite.transaction import Row, Transaction

Range = tuple[int, int, int]
LAST = 1 << 62  # above every seq
MAX_BYTES = 4 * 1024 * 1024  # of payloads on loan at once

_SHORT: dict[str, str | None] = {JSON: None, BYTES: ""}
_LONG = {stored: content_type for content_type, stored in _SHORT.items()}
_ranges = msgspec.json.Decoder(list[tuple[int, int, int]])
_headers = msgspec.json.Decoder(dict[str, str])
write_ranges = msgspec.json.Encoder().encode


def short_content_type(content_type: str) -> str | None:
    """As it is stored: the two usual ones take no room."""
    return _SHORT.get(content_type, content_type)


def long_content_type(stored: str | None) -> str:
    return _LONG.get(stored) or stored or JSON


def read_ranges(text: str) -> list[Range]:
    return _ranges.decode(text)


def take(
    tx: Transaction, rid: int, limit: int, others: Sequence[Range], born_after_ms: int
) -> tuple[list[Row], list[Row]]:
    """Up to ``limit`` rows that are due and on nobody else's loan, and the expired ones on the way.

    First those that were delayed and have fallen due, then the others by seq. A suspect comes
    alone: it is settled before anything else is taken.
    """
    taken: list[Row] = []
    expired: list[Row] = []
    size = 0
    for row in _due(tx, rid, limit, others):
        late = row[4] < born_after_ms or (row[11] is not None and row[11] <= tx.now_ms)
        if late and not row[12]:  # what somebody has redriven is wanted, late as it is
            expired.append(row)
            continue
        if row[6]:  # suspect
            return taken or [row], expired
        taken.append(row)
        size += len(row[10])
        if len(taken) == limit or size > MAX_BYTES:
            break
    return taken, expired


def _due(tx: Transaction, rid: int, limit: int, others: Sequence[Range]) -> Iterable[Row]:
    delayed = [r for r in others if r[0]]
    skip = sum(last - first + 1 for _, first, last in delayed)
    for row in tx.all("due_messages", rid, tx.now_ms, limit + skip):
        if not any(due == row[0] and first <= row[1] <= last for due, first, last in delayed):
            yield row
    after = -1
    for _, first, last in sorted(r for r in others if not r[0]):
        yield from tx.all("ready_messages", rid, after, first, limit)
        after = last
    yield from tx.all("ready_messages", rid, after, LAST, limit)


def lend(
    rows: Iterable[Row], others: Sequence[Range], resource: Resource
) -> tuple[list[Range], list[Delivery]]:
    """The loan that covers ``rows`` (in the order in which they were taken) and nothing else.

    A receipt is ``(due_ms, seq, number of its range)``.
    """
    ranges: list[Range] = []
    deliveries = []
    for row in rows:
        due, seq = row[0], row[1]
        if not ranges or ranges[-1][0] != due or _between(others, due, ranges[-1][2], seq):
            ranges.append((due, seq, seq))
        else:
            ranges[-1] = (due, ranges[-1][1], seq)
        deliveries.append(_delivery(row, resource, len(ranges)))
    return ranges, deliveries


def _between(others: Sequence[Range], due: int, after: int, before: int) -> bool:
    return bool(others) and any(d == due and after < first < before for d, first, _ in others)


def _delivery(row: Row, resource: Resource, number: int) -> Delivery:
    due, seq, id, type, enqueued_ms, failed, suspect, unknown_ms, content_type = row[:9]
    headers, payload, _expires_ms, redriven = row[9:]
    return Delivery(
        message=WorkMessage(
            id=id,
            resource=resource,
            type=type,
            payload=payload,
            content_type=long_content_type(content_type),
            headers=_headers.decode(headers) if headers else NO_HEADERS,
        ),
        attempt=failed + 1,
        enqueued_ms=enqueued_ms,
        receipt=(due, seq, number),
        suspect=bool(suspect),
        unknown_since_ms=unknown_ms,
        redriven=redriven,
    )


def runs(receipts: Iterable[tuple[int, ...]]) -> list[tuple[int, int, int]]:
    """Receipts as ``(due_ms, first seq, last seq)``, joined within a range of ``due_ms = 0``.

    Only for receipts in the order in which they were taken, with none left out between two.
    """
    found: list[tuple[int, int, int]] = []
    joined = 0
    for due, seq, number in receipts:
        if number == joined and not due:  # a retried message may have come between two others
            found[-1] = (due, found[-1][1], seq)
        else:
            found.append((due, seq, seq))
            joined = number
    return found


def free_message(tx: Transaction, rid: int, others: Sequence[Range]) -> int | None:
    """When the earliest message on nobody's loan falls due (0: now); None if there is none."""
    due, seq = -1, -1
    while (row := tx.first("next_due", rid, due, seq)) is not None:
        held = next((r for r in others if r[0] == row[0] and r[1] <= row[1] <= r[2]), None)
        if held is None:
            return int(row[0])
        due, seq = held[0], held[2]
    return None


def loan_of(tokens: Iterable[Row]) -> list[Range]:
    """All that other tokens have on loan."""
    return [r for _slot, _fence, _until, loan in tokens for r in read_ranges(loan)]
