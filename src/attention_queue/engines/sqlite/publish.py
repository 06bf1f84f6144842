"""Publishing: the work and a request for it, as one unit."""

from __future__ import annotations

from collections.abc import Sequence

from attention_queue.clock import from_ms, to_ms
from attention_queue.contract import Resource, State, WorkMessage
from attention_queue.engines.sqlite.directory import Directory, StoredGroup, encode_map, state_at
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import ResourceRetired, ResourceUnderMaintenance, UnknownResource
from attention_queue.ports import Put


def put(tx: Transaction, directory: Directory, group: str, messages: Sequence[WorkMessage]) -> Put:
    """Refuse all, or store all and make sure that each resource has a request early enough.

    The look at the request and the insert are one transaction under SQLite's one write lock: no
    worker can drop the request between the two.
    """
    stored_group = directory.group(tx, group)
    by_resource: dict[Resource, list[WorkMessage]] = {}
    for message in messages:
        by_resource.setdefault(message.resource, []).append(message)
    places = {resource: _place(tx, stored_group, resource) for resource in by_resource}
    stored = requests = 0
    for resource, theirs in by_resource.items():
        place = places[resource] or _register(tx, stored_group, resource)
        new = _store(tx, place[0], theirs)
        stored += new
        if new:
            requests += _ask(tx, stored_group.gid, place, theirs, new)
    return Put(
        stored=stored,
        duplicates=len(messages) - stored,
        requests=requests,
        coalesced=len(by_resource) - requests,
    )


def _place(tx: Transaction, group: StoredGroup, resource: Resource) -> Row | None:
    """The resource's row, or None if this publish is to register it; refusals come first."""
    row = tx.first("place_of", group.gid, resource.tenant, resource.id)
    if row is None:
        if not group.register_unknown:
            raise UnknownResource(group.name, resource)
        return None
    if row[1] == "active":
        return row
    match state_at(row[1], row[3], tx.now_ms):
        case State.RETIRING | State.REMOVED:
            raise ResourceRetired(group.name, resource)
        case State.MAINTENANCE if group.refuse_in_maintenance:
            raise ResourceUnderMaintenance(group.name, resource, row[2])
        case _:
            return row


def _register(tx: Transaction, group: StoredGroup, resource: Resource) -> Row:
    names = (resource.tenant, resource.id)
    tx.first("register", group.gid, *names, group.default_plan, None, None)
    row = tx.first("place_of", group.gid, *names)
    assert row is not None
    return row


def _store(tx: Transaction, rid: int, messages: Sequence[WorkMessage]) -> int:
    """How many were new."""
    seq = tx.next(len(messages))
    rows = [
        (
            rid,
            _due_ms(tx, message),
            seq + n,
            message.id,
            message.type,
            tx.now_ms,
            None if message.content_type == "application/json" else message.content_type,
            encode_map(dict(message.headers)) if message.headers else None,
            message.payload,
        )
        for n, message in enumerate(messages)
    ]
    if len(rows) == 1:
        return tx.run("put_message", *rows[0])
    before = tx.total_changes()
    tx.run_many("put_message", rows)
    return tx.total_changes() - before


def _due_ms(tx: Transaction, message: WorkMessage) -> int:
    if message.not_before is None:
        return 0
    due_ms = to_ms(message.not_before)
    if from_ms(due_ms) < message.not_before:
        due_ms += 1  # never early
    return due_ms if due_ms > tx.now_ms else 0


def _ask(tx: Transaction, gid: int, place: Row, messages: Sequence[WorkMessage], new: int) -> int:
    """Make sure that a request stands that fires no later than the earliest message falls due.

    A request that stands but would fire later is pulled forward, never through a hold: a hold ends
    by itself, by a release or by a person. Returns 1 if a request was asked for, 0 if one stood.
    """
    rid, _, _, _, lane, waits_until, hold_until, standing_lane = place
    due = min(_due_ms(tx, message) for message in messages)
    lane = min((m.priority for m in messages if m.priority is not None), default=lane)
    lane = min(lane, place[4])
    if waits_until is None:
        tx.run("ask", rid, gid, lane, due, tx.next(), tx.now_ms, new)
        return 1
    if hold_until is not None and hold_until > tx.now_ms:
        due = max(due, hold_until)
    if due < waits_until:
        tx.run("pull_forward", due, tx.next(), tx.now_ms, lane, new, rid)
        return 1
    if lane < standing_lane:
        tx.run("relane", lane, rid)
    tx.run("count_in", new, rid)
    return 0
