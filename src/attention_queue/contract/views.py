"""What a person looks at when work is late: the line, tokens, plans in use, what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from attention_queue.contract.figures import PlanFigures, ResourceRow, TokenFigures
from attention_queue.contract.outcome import Hold
from attention_queue.contract.policy import Priority
from attention_queue.contract.resource import Resource


class GroupBy(Enum):
    """What the dead letters of one row have in common."""

    ERROR = "error"  # reason, error and message type
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUse:
    """A plan and how much hangs on it now."""

    plan: PlanFigures
    version: int
    busy: int  # resources on it that have work or a token: those that a change is felt by now
    backlog: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyRow:
    """A resource with work, and how fast it goes, in messages per second over a minute or so."""

    row: ResourceRow
    arrival: float | None  # None: it was never served
    service: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that is not finished. ``payload`` is its beginning."""

    id: str
    type: str
    enqueued: datetime
    due: datetime | None  # None: now
    failed: int
    redriven: int
    expires: datetime | None
    on_loan: bool
    size: int  # bytes
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InLine:
    """One request that stands for a resource."""

    resource: Resource
    plan: str
    backlog: int
    since: datetime  # when it could first be taken
    due: datetime | None  # None: it is in line now


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Requests that wait for a moment, for one reason."""

    hold: Hold | None  # None: all their work is delayed
    count: int
    first: tuple[InLine, ...]  # those that come next


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The requests of a group: each lane in order, and what is parked."""

    at: datetime
    lanes: Mapping[Priority, tuple[InLine, ...]]
    counts: Mapping[Priority, int]
    parked: tuple[Parked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldToken:
    resource: Resource
    token: TokenFigures


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; ``why`` as in ``Swept.repairs``."""

    group: str
    resource: Resource
    why: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """One page of a scan. ``after`` is where the next page starts; None: that was the last."""

    after: int | None
    findings: tuple[Finding, ...]
