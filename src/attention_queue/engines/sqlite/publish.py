"""Publishing: the work and a request for it, as one unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attention_queue.clock import FOREVER_MS, from_ms, to_ms
from attention_queue.contract import Resource, State, WorkMessage
from attention_queue.engines.sqlite.caps import all_known, max_backlog
from attention_queue.engines.sqlite.directory import Directory, StoredGroup, encode_map, state_at
from attention_queue.engines.sqlite.loans import short_content_type
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import (
    BacklogFull,
    ContractError,
    ResourceRetired,
    ResourceUnderMaintenance,
    UnknownResource,
)
from attention_queue.ports import Put


@dataclass(slots=True)
class Publishing:
    """One call of ``put``; executed in a transaction, together with those that came beside it."""

    directory: Directory
    group: str
    messages: Sequence[WorkMessage]

    def __call__(self, tx: Transaction) -> Put:
        (put,) = Publishing.together(tx, [self])
        if isinstance(put, ContractError):
            raise put
        return put

    @staticmethod
    def together(tx: Transaction, puts: Sequence[Publishing]) -> list[Put | ContractError]:
        """Refuse a put whole, or store it whole with a request early enough for each resource.

        The look at the request and the insert are one transaction under SQLite's one write lock: no
        worker can drop the request between the two. Sixty-four callers with a message each cost
        little more than one with sixty-four.
        """
        batch = _Batch(tx)
        for put in puts:
            batch.add(put)
        stored = batch.store()
        batch.ask(stored)
        return batch.answers(stored)


@dataclass(slots=True, eq=False)
class _Place:
    """A resource that takes work: its request as it stands, and what the new work asks of it."""

    gid: int
    tenant: str
    request: Row  # a row of place_of
    wanted: int = 0  # messages of this batch, duplicates included
    due: int = 0  # when the earliest new message falls due; 0: now
    lane: int = 0
    new: int = 0
    asked: bool = False


class _Batch:
    """The messages of some puts, in the order in which they came."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._groups: dict[str, StoredGroup] = {}
        self._places: dict[tuple[int, Resource], _Place] = {}
        self._messages: list[WorkMessage] = []
        self._owners: list[_Place] = []  # of the messages
        # Of the puts: gid, messages, why it is refused.
        self._sizes: list[tuple[int, int, ContractError | None]] = []
        self._loads: Counter[tuple[int, str]] = Counter()  # of tenants that have a limit

    def add(self, put: Publishing) -> None:
        """Take the put in, or note why it is refused: all of it, before anything is written."""
        group = self._groups.get(put.group)
        if group is None:
            group = self._groups[put.group] = put.directory.group(self._tx, put.group)
        wanted = Counter(message.resource for message in put.messages)
        try:
            rows = self._admit(group, wanted, put.messages)
        except ContractError as refusal:
            self._sizes.append((group.gid, 0, refusal))
            return
        for resource, count in wanted.items():
            self._place(group, resource, rows.get(resource)).wanted += count
        places = self._places
        self._owners.extend(places[group.gid, message.resource] for message in put.messages)
        self._messages.extend(put.messages)
        self._sizes.append((group.gid, len(put.messages), None))

    def _admit(
        self, group: StoredGroup, wanted: Counter[Resource], messages: Sequence[WorkMessage]
    ) -> dict[Resource, Row]:
        """The rows of those that are registered.

        Raises what forbids the put; nothing is written yet, and no place counts it yet.
        """
        rows: dict[Resource, Row] = {}
        tenants: Counter[str] = Counter()
        for resource, count in wanted.items():
            place = self._places.get((group.gid, resource))
            row = place.request if place else _place(self._tx, group, resource)
            if row is not None:
                rows[resource] = row
            limit = max_backlog(self._tx, group, row)
            waiting = (row[8] if row else 0) + (place.wanted if place else 0)
            if waiting + count > limit and not all_known(self._tx, row, messages, resource):
                raise BacklogFull(resource, waiting, limit)
            tenants[resource.tenant] += count
        if group.max_tenant_backlog is not None:
            self._admit_tenants(group, tenants)
        return rows

    def _admit_tenants(self, group: StoredGroup, tenants: Counter[str]) -> None:
        limit = group.max_tenant_backlog
        assert limit is not None
        for tenant, count in tenants.items():
            key = group.gid, tenant
            row = self._tx.first("tenant_load", *key)
            if row is None:
                self._tx.run("count_tenant", *key)
                self._tx.books.recounted(*key)
                row = self._tx.first("tenant_load", *key)
            assert row is not None
            waiting = row[0] + self._tx.books.noted_load(*key) + self._loads[key]
            if waiting + count > limit:
                raise BacklogFull(f"tenant {tenant}", waiting, limit)
        self._loads.update({(group.gid, tenant): count for tenant, count in tenants.items()})

    def _place(self, group: StoredGroup, resource: Resource, row: Row | None) -> _Place:
        place = self._places.get((group.gid, resource))
        if place is None:
            row = row or _register(self._tx, group, resource)
            place = self._places[group.gid, resource] = _Place(group.gid, resource.tenant, row)
        return place

    def store(self) -> Sequence[bool]:
        """Of each message whether it was new."""
        tx, first = self._tx, self._tx.next(len(self._messages))
        rows = [
            _row(tx, place.request[0], seq, message)
            for seq, (place, message) in enumerate(
                zip(self._owners, self._messages, strict=True), first
            )
        ]
        before = tx.total_changes()
        tx.run_many("put_message", rows)
        if tx.total_changes() - before == len(rows):
            return [True] * len(rows)
        return [tx.first("is_stored", *row[:3]) is not None for row in rows]

    def ask(self, stored: Iterable[bool]) -> None:
        """Make sure that requests stand that fire no later than the earliest message falls due."""
        for place, message, new in zip(self._owners, self._messages, stored, strict=True):
            if new:
                _count(self._tx, place, message)
        counted = []
        for place in self._places.values():
            self._tx.books.load(place.gid, place.tenant, place.new)
            if place.new and not _ask(self._tx, place):
                counted.append((place.new, place.request[0]))
        if counted:
            self._tx.run_many("count_in", counted)

    def answers(self, stored: Sequence[bool]) -> list[Put | ContractError]:
        """A request that several have asked for is the first one's; the others coalesced."""
        found: list[Put | ContractError] = []
        first = 0
        for gid, size, refusal in self._sizes:
            if refusal is not None:
                found.append(refusal)
                continue
            places = set(self._owners[first : first + size])
            new, requests = sum(stored[first : first + size]), 0
            for place in places:
                requests += place.asked
                place.asked = False
            put = Put(new, size - new, requests, len(places) - requests)
            self._enter(gid, put)
            found.append(put)
            first += size
        return found

    def _enter(self, gid: int, put: Put) -> None:
        books = self._tx.books
        books.count(gid, "messages_published", put.stored)
        books.count(gid, "messages_duplicate", put.duplicates)
        books.count(gid, "requests_published", put.requests)
        books.count(gid, "requests_coalesced", put.coalesced)


def _place(tx: Transaction, group: StoredGroup, resource: Resource) -> Row | None:
    """The resource's row, or None if this publish is to register it."""
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


def _row(tx: Transaction, rid: int, seq: int, message: WorkMessage) -> tuple[object, ...]:
    return (
        rid,
        0 if message.not_before is None else _due_ms(tx, message),
        seq,
        message.id,
        message.type,
        tx.now_ms,
        short_content_type(message.content_type),
        encode_map(dict(message.headers)) if message.headers else None,
        message.payload,
        None if message.expires_at is None else to_ms(message.expires_at),
    )


def _due_ms(tx: Transaction, message: WorkMessage) -> int:
    if message.not_before is None:
        return 0
    due_ms = to_ms(message.not_before)
    if from_ms(due_ms) < message.not_before:
        due_ms += 1  # never early
    return due_ms if due_ms > tx.now_ms else 0


def _count(tx: Transaction, place: _Place, message: WorkMessage) -> None:
    if not place.new:
        place.due, place.lane = FOREVER_MS, place.request[4]
    place.new += 1
    if message.not_before is None:
        place.due = 0
    else:
        place.due = min(place.due, _due_ms(tx, message))
    if message.priority is not None:
        place.lane = min(place.lane, message.priority)


def _ask(tx: Transaction, place: _Place) -> bool:
    """Ask, or leave it to the request that stands; True if that is all the new work needs.

    A request that stands but would fire later is pulled forward, never through a hold: a hold ends
    by itself, by a release or by a person.
    """
    rid, waits_until = place.request[0], place.request[5]
    hold_until, standing_lane = place.request[6], place.request[7]
    due = place.due
    if waits_until is None:
        tx.run("ask", rid, place.gid, place.lane, due, tx.next(), tx.now_ms, place.new)
        place.asked = True
        return True
    if hold_until is not None and hold_until > tx.now_ms:
        due = max(due, hold_until)
    if due < waits_until:
        tx.run("pull_forward", due, tx.next(), tx.now_ms, place.lane, place.new, rid)
        place.asked = True
        return True
    if place.lane < standing_lane:
        tx.run("relane", place.lane, rid)
    return False
