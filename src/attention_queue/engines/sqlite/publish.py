"""Publishing: the work and a request for it, as one unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attention_queue.clock import from_ms, to_ms
from attention_queue.contract import Resource, State, WorkMessage
from attention_queue.engines.sqlite.directory import Directory, StoredGroup, encode_map, state_at
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import ResourceRetired, ResourceUnderMaintenance, UnknownResource
from attention_queue.ports import Put


@dataclass(slots=True)
class Publishing:
    """One call of ``put``; executed in a transaction, together with those that came beside it."""

    directory: Directory
    group: str
    messages: Sequence[WorkMessage]

    def __call__(self, tx: Transaction) -> Put:
        return Publishing.together(tx, [self])[0]

    @staticmethod
    def together(tx: Transaction, puts: Sequence[Publishing]) -> list[Put]:
        """Refuse all, or store all and make sure that each resource has a request early enough.

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
    request: Row  # a row of place_of
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
        self._sizes: list[tuple[int, int]] = []  # of the puts: gid, messages

    def add(self, put: Publishing) -> None:
        group = self._groups.get(put.group)
        if group is None:
            group = self._groups[put.group] = put.directory.group(self._tx, put.group)
        for message in put.messages:
            key = group.gid, message.resource
            place = self._places.get(key)
            if place is None:
                row = _place(self._tx, group, message.resource)
                row = row or _register(self._tx, group, message.resource)
                place = self._places[key] = _Place(group.gid, row)
            self._owners.append(place)
        self._messages.extend(put.messages)
        self._sizes.append((group.gid, len(put.messages)))

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
            if place.new and not _ask(self._tx, place):
                counted.append((place.new, place.request[0]))
        if counted:
            self._tx.run_many("count_in", counted)

    def answers(self, stored: Sequence[bool]) -> list[Put]:
        """A request that several have asked for is the first one's; the others coalesced."""
        found, first = [], 0
        for gid, size in self._sizes:
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
        None if message.content_type == "application/json" else message.content_type,
        encode_map(dict(message.headers)) if message.headers else None,
        message.payload,
    )


def _due_ms(tx: Transaction, message: WorkMessage) -> int:
    if message.not_before is None:
        return 0
    due_ms = to_ms(message.not_before)
    if from_ms(due_ms) < message.not_before:
        due_ms += 1  # never early
    return due_ms if due_ms > tx.now_ms else 0


def _count(tx: Transaction, place: _Place, message: WorkMessage) -> None:
    due = 0 if message.not_before is None else _due_ms(tx, message)
    lane: int = place.request[4] if message.priority is None else message.priority
    if place.new:
        due, lane = min(due, place.due), min(lane, place.lane)
    place.due, place.lane = due, min(lane, place.request[4])
    place.new += 1


def _ask(tx: Transaction, place: _Place) -> bool:
    """Ask, or leave it to the request that stands; True if that is all the new work needs.

    A request that stands but would fire later is pulled forward, never through a hold: a hold ends
    by itself, by a release or by a person.
    """
    rid, _, _, _, _, waits_until, hold_until, standing_lane = place.request
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
