"""What a person starts and then watches: redrive, discard, retire; many small steps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import Enum

from attention_queue.contract.resource import Resource
from attention_queue.errors import ContractError

MAX_PER_SECOND = 1_000_000.0


class Kind(Enum):
    REDRIVE = "redrive"  # dead letters go back to work, marked as a reprocess
    DISCARD_DEAD = "discard_dead"  # dead letters are deleted
    DISCARD = "discard"  # a resource's backlog is deleted
    RETIRE = "retire"  # a resource takes no more work; what it has goes to the dead letters


class Progress(Enum):
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which messages or dead letters; None does not narrow it down.

    ``error``, ``reason`` and ``ids`` are of dead letters alone; ``ids`` are their numbers.
    """

    resource: Resource | None = None
    tenant: str | None = None
    type: str | None = None
    error: str | None = None
    reason: str | None = None
    ids: tuple[int, ...] | None = None
    older_than: timedelta | None = None

    @property
    def is_everything(self) -> bool:
        return all(getattr(self, field.name) is None for field in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An order. ``reason`` is asked for because every one of them loses or moves something.

    ``per_second`` bounds how fast it goes; redriven messages fall due spread over ``jitter``.
    """

    kind: Kind
    group: str
    selection: Selection
    reason: str
    per_second: float | None = None
    jitter: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ContractError(f"{self.kind.value}: want a reason: it is kept with the operation")
        if self.per_second is not None and not 0 < self.per_second <= MAX_PER_SECOND:
            raise ContractError(f"{self.kind.value}: rate: want more than 0, got {self.per_second}")
        if self.jitter < timedelta(0):
            raise ContractError(f"{self.kind.value}: jitter: want no negative time")
        self._check_selection()

    def _check_selection(self) -> None:
        of = self.selection
        if self.kind in (Kind.DISCARD, Kind.RETIRE):
            if of.resource is None:
                raise ContractError(f"{self.kind.value}: want one resource")
            if of.error or of.reason or of.ids is not None or of.tenant:
                raise ContractError(f"{self.kind.value}: error, reason, ids: of dead letters alone")
        if self.kind is Kind.RETIRE and (of.type or of.older_than is not None):
            raise ContractError("retire: want the whole resource, not some of its messages")
        if self.kind is Kind.DISCARD_DEAD and of.is_everything:
            raise ContractError("discard_dead: want a selection: it deletes for good")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFigures:
    """How far an operation has come. ``total`` is what it had before it at its start."""

    number: int
    operation: Operation
    actor: str
    progress: Progress
    total: int
    done: int
    skipped: int  # left where they were: the same message id is back at work
    started: datetime
    ended: datetime | None
    next: datetime  # the earliest moment of its next step


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that will not be delivered again unless somebody redrives it."""

    number: int
    resource: Resource
    id: str
    type: str
    reason: str  # attempts_exhausted, poison, undecodable, unknown_type, expired, retired, or said
    error: str | None
    text: str | None
    trace: str | None
    attempts: int
    enqueued: datetime
    died: datetime
    redriven: int
    content_type: str
    payload: bytes
    history: str | None  # JSON: the failed attempts, newest last


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters that have something in common."""

    reason: str
    error: str | None
    type: str
    count: int
    first: datetime
    last: datetime
    example: int  # the newest
    resource: Resource | None = None  # if they are grouped by it, and then the others are samples


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change by one actor."""

    number: int
    at: datetime
    group: str
    resource: Resource | None
    actor: str
    verb: str
    reason: str
    detail: str  # JSON
