"""What travels: work, deliveries of it, requests for attention, tokens."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

import msgspec

from attention_queue.contract.names import id_fault, type_fault
from attention_queue.contract.policy import Priority
from attention_queue.contract.resource import Resource
from attention_queue.errors import InvalidMessage

JSON, BYTES = "application/json", "application/octet-stream"
_USUAL = frozenset((JSON, BYTES))
MAX_PAYLOAD = 256 * 1024  # bytes
MAX_HEADERS = 8 * 1024  # characters of all names and values
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class WorkMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a resource's work; the payload is opaque to us, its type is not.

    A msgspec struct, because a hundred thousand a second are made: a frozen dataclass costs four
    times as much.
    """

    id: str  # 1-200 printable characters; the same id twice is one message while the first is kept
    resource: Resource
    type: str
    payload: bytes  # at most 256 KiB
    content_type: str = JSON
    headers: Mapping[str, str] = NO_HEADERS
    not_before: datetime | None = None
    priority: Priority | None = None  # None: the plan's
    expires_at: datetime | None = None  # not delivered after it; None: the plan's ttl alone

    def __post_init__(self) -> None:
        id = self.id
        if (
            type(id) is not str
            or not id.isascii()
            or not id.isprintable()
            or not 0 < len(id) <= 200
        ) and (why := id_fault(id)):
            raise InvalidMessage("id", why)
        if type(self.payload) is not bytes:
            raise InvalidMessage("payload", f"want bytes, got {type(self.payload).__name__}")
        if len(self.payload) > MAX_PAYLOAD:
            raise InvalidMessage(
                "payload", f"{len(self.payload)} bytes, at most {MAX_PAYLOAD} are allowed"
            )
        if type(self.type) is not str or self.type not in _known_types:
            if why := type_fault(self.type):
                raise InvalidMessage("type", f"{self.type!r}: {why}")
            if len(_known_types) < 1_000:
                _known_types.add(self.type)
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise InvalidMessage("expires_at", "want a time with its zone (datetime.now(UTC))")
        if self.priority is not None and type(self.priority) is not Priority:
            raise InvalidMessage("priority", f"want a Priority, got {self.priority!r:.40}")
        if self.headers or self.not_before is not None or self.content_type not in _USUAL:
            self._check_rare()

    def _check_rare(self) -> None:
        if not isinstance(self.content_type, str) or not (
            0 < len(self.content_type) <= 128 and self.content_type.isprintable()
        ):
            raise InvalidMessage("content_type", "want 1-128 printable characters")
        if self.not_before is not None and self.not_before.tzinfo is None:
            raise InvalidMessage("not_before", "want a time with its zone (datetime.now(UTC))")
        size = 0
        for name, value in self.headers.items():
            if not isinstance(value, str) or id_fault(name) or name.lower().startswith("x-"):
                raise InvalidMessage(f"headers.{name}", "want text, and a name without x-")
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise InvalidMessage(f"headers.{name}", "NUL or a lone surrogate")
            size += len(name) + len(value)
        if size > MAX_HEADERS:
            raise InvalidMessage("headers", f"{size} characters, at most {MAX_HEADERS} are allowed")


_known_types: set[str] = set()  # bounded; spares the regular expression on the hot path


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message on loan for its nth attempt (1 is the first).

    ``suspect``: it was on loan to a holder that died; it is taken alone and settled alone.
    ``receipt`` is the engine's own and means nothing to anybody else.
    """

    message: WorkMessage
    attempt: int
    enqueued_ms: int
    receipt: tuple[int, ...]
    suspect: bool = False
    unknown_since_ms: int | None = None
    redriven: int = 0  # times that it was a dead letter: it is a reprocess, not a new fact


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRequest:
    """“Somebody look at this resource.” Carries no work and no authority."""

    group: str
    resource: Resource
    type: str = "resource"  # the group's word for it, such as "store"
    priority: Priority = Priority.NORMAL
    routing: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    reason: str = "publish"
    requested_at: datetime | None = None
    gen: int | None = None  # generation and incarnation: ours only, for coalescing on a broker
    inc: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """The right of one worker to consume one resource, until ``until`` or release.

    ``fence`` only grows: of two holders the one with the lower fence is stale.
    """

    resource: Resource
    slot: int  # 0 <= slot < policy.max_consumers
    owner: str
    fence: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Busy:
    """No token is free; one will be at ``until`` at the latest, if its holder has died."""

    until: datetime


# Of our own, because an application that seeds the module's generator would repeat our ids.
_chance = random.Random()
os.register_at_fork(after_in_child=_chance.seed)  # a child is not to go on with its parent's


def new_id() -> str:
    """A UUIDv7 (RFC 9562): sorts by the millisecond it was made in. Unique, but no secret."""
    ms, bits = time.time_ns() // 1_000_000, _chance.getrandbits(74)
    n = ms << 80 | 7 << 76 | bits >> 62 << 64 | 2 << 62 | bits & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{n:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
