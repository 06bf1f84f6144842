"""What can be seen of a running system at one moment, for people and machines that look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from attention_queue.contract.operation import AuditEntry
from attention_queue.contract.outcome import Hold
from attention_queue.contract.policy import Override, Policy, Priority
from attention_queue.contract.resource import Resource
from attention_queue.contract.state import ResourceState, State

AHEAD_COUNTED = 10_000  # a place in line further back than this is shown as this
BACKLOG_COUNTED = 100_000  # the same of messages that no request stands for
DEAD_COUNTED = 100_000  # dead letters of one resource beyond it are shown as this


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFigures:
    """The request that stands for a resource."""

    priority: Priority
    since: datetime  # when it could first be taken
    due: datetime | None  # None: it is in line now
    hold: Hold | None  # why it may not be taken before ``due``
    ahead: int  # requests of the same lane that come first, `AHEAD_COUNTED` at most


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFigures:
    """A token that has not been given back; past ``until`` its holder is taken to be dead."""

    slot: int
    owner: str
    fence: int
    until: datetime
    loaned: int  # messages


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFigures:
    """The message that is taken next."""

    id: str
    type: str
    enqueued: datetime
    due: datetime | None  # None: now
    failed: int  # attempts
    crashes: int  # deaths of a process with it alone in hand
    error: str  # of the last failed attempt
    unknown_since: datetime | None  # since when nobody handles its type
    redriven: int = 0  # times it was a dead letter
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFigures:
    """One slice that is over."""

    at: datetime  # when it ended
    end: str  # a `CycleEnd`
    handled: int  # messages
    duration: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceFigures:
    """How fast a resource goes: messages per second, weighed towards the last minute."""

    arrival: float
    service: float
    cycles: tuple[CycleFigures, ...] = ()  # newest first

    @property
    def measured(self) -> float | None:
        """Messages per second of one consumer while it is at work, over the cycles kept."""
        seconds = sum(each.duration.total_seconds() for each in self.cycles)
        handled = sum(each.handled for each in self.cycles)
        return handled / seconds if handled and seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFigures:
    """One resource, and as much of the whole as its verdict needs."""

    at: datetime  # the moment of the look
    group: str
    type: str
    resource: Resource
    version: int = 1  # of what a person may change; grows with every change
    plan: str
    policy: Policy  # in force at ``at``
    overrides: tuple[Override, ...]
    routing: Mapping[str, str]
    state: ResourceState
    request: RequestFigures | None
    tokens: tuple[TokenFigures, ...]
    backlog: int  # unfinished messages, those on loan and delayed ones included
    oldest: datetime | None  # when the oldest of them was published
    next: NextFigures | None
    dead: int  # `DEAD_COUNTED` at most
    expired: int = 0  # of its newest 1,000 dead letters
    pace: PaceFigures | None = None  # None: nothing was ever published for it
    changes: tuple[AuditEntry, ...] = ()  # the newest, newest first
    stop: str  # why a scope that it belongs to is stopped, or nothing
    line: LineFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFigures:
    """Whether anybody works at the line that the requests stand in."""

    tokens: int  # that have not ended, of all groups
    waiting_since: datetime | None  # the longest wait of a request that could be taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow:
    """One line of a list."""

    resource: Resource
    plan: str
    state: State
    backlog: int
    oldest: datetime | None
    tokens: int
    due: datetime | None  # of its request; None: it has none, or it is in line now
    hold: Hold | None
    has_request: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    name: str
    policy: Policy
    is_default: bool
    is_declared: bool  # False: a person has changed it since the application declared it


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigures:
    """Counted over the resources that have work; the others cost nothing and are not counted."""

    name: str
    type: str
    plans: tuple[PlanFigures, ...]
    backlog: int
    busy: int  # resources that have work or a token
    ready: int  # requests in line
    parked: Mapping[str, int]  # requests that wait for a moment, by hold; "" waits for none
    tokens: int
    ended_tokens: int  # whose holder is taken to be dead and that nobody has found yet
    waiting_since: datetime | None
    dead: int
    ledger: Mapping[str, int] = field(default_factory=dict)  # what has happened so far, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    at: datetime
    groups: tuple[GroupFigures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCensus:
    """The resources of one plan that have work, the noisy or the quiet ones.

    Noisy has more work than one slice of its plan takes.
    """

    plan: str
    noisy: bool
    resources: int
    backlog: int
    oldest: datetime | None  # publish of what has waited longest and could be taken now


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCensus:
    """``requests`` are ``ready`` (in line), ``begun`` (being served) or ``parked``."""

    name: str
    plans: tuple[PlanCensus, ...]
    requests: Mapping[str, int]
    waiting_since: datetime | None  # the longest wait in line
    tokens: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The whole, for gauges."""

    at: datetime
    groups: tuple[GroupCensus, ...]
    unattended: int  # resources that have work, and neither a request nor a token


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFilter:
    """What a list is to show. ``tenant`` and ``id`` may end in ``*``."""

    tenant: str | None = None
    id: str | None = None
    plan: str | None = None
    state: State | None = None
    more_than: int = -1  # backlog
    older_than: timedelta | None = None  # its oldest message
    error: str | None = None  # of one of its dead letters
    busy: bool = False  # only those with work or a token


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The version of a database, 0 if it is not made yet, and the latest that is known here."""

    place: str
    version: int
    latest: int


class Grade(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at, what was found, and what to do about it."""

    name: str
    grade: Grade
    found: str
    fix: str = ""
