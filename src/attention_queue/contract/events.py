"""The closed list of what can happen. Metrics, logs, the live view and the tests all read it.

Every effect on a store is followed by its event, so a test can stop a process at any of them.
Counts are of messages unless the name says otherwise; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import msgspec

from attention_queue.contract.outcome import CycleEnd, Failure, Hold
from attention_queue.contract.resource import Resource
from attention_queue.contract.state import State


@dataclass(frozen=True, slots=True)
class Published:
    """Durable and asked for."""

    name: ClassVar[str] = "messages.published"
    group: str
    stored: int
    duplicates: int  # same id as one that is kept
    requests: int  # of them new, or pulled forward
    coalesced: int  # requests that were there already


@dataclass(frozen=True, slots=True)
class CycleStarted:
    """A request is begun, a token is ours, the first messages are on loan: one effect."""

    name: ClassVar[str] = "cycle.started"
    group: str
    resource: Resource
    plan: str
    slot: int
    fence: int
    loaned: int
    waited: float  # since the request could first be taken


@dataclass(frozen=True, slots=True)
class RequestDiscarded:
    """Settled without a cycle, because the resource is not active."""

    name: ClassVar[str] = "request.discarded"
    group: str
    resource: Resource
    state: State


@dataclass(frozen=True, slots=True)
class RequestBlocked:
    """Parked until ``until`` at the latest by a limit (``busy``: consumers)."""

    name: ClassVar[str] = "request.blocked"
    group: str
    resource: Resource
    why: Hold
    until: datetime


@dataclass(frozen=True, slots=True)
class RequestWasted:
    """A request that found no work. Harmless."""

    name: ClassVar[str] = "request.wasted"
    group: str
    resource: Resource


@dataclass(frozen=True, slots=True)
class HandlerStarted:
    name: ClassVar[str] = "handler.started"
    group: str
    resource: Resource
    type: str
    messages: tuple[str, ...]  # ids
    attempt: int
    waited: float  # since the first was published


class HandlerEnded(msgspec.Struct, frozen=True):  # made for every message: a fifth of the time
    name: ClassVar[str] = "handler.ended"
    group: str
    resource: Resource
    type: str
    messages: tuple[str, ...]
    outcomes: tuple[str, ...]  # done, retry, reject, stop, unknown; one per message
    duration: float
    failure: Failure | None = None
    plan: str = ""
    waited: float = 0.0  # from the publish of the first to the start


@dataclass(frozen=True, slots=True)
class HandlerStuck:
    """It ran past its timeout and ignored being cancelled: its token lapses, its slot is free."""

    name: ClassVar[str] = "handler.stuck"
    group: str
    resource: Resource
    type: str


@dataclass(frozen=True, slots=True)
class MessagesTaken:
    """More messages of the same slice are on loan."""

    name: ClassVar[str] = "messages.taken"
    group: str
    resource: Resource
    loaned: int


@dataclass(frozen=True, slots=True)
class MessagesSettled:
    name: ClassVar[str] = "messages.settled"
    group: str
    resource: Resource
    done: int
    retried: int
    dead: int
    deferred: int  # nobody here handles their type


@dataclass(frozen=True, slots=True)
class DeadLettered:
    name: ClassVar[str] = "message.dead_lettered"
    group: str
    resource: Resource
    message: str
    type: str
    reason: str
    attempts: int


@dataclass(frozen=True, slots=True)
class CycleFinished:
    """Outcomes, release, look, ask and the settling of the request: one effect."""

    name: ClassVar[str] = "cycle.finished"
    group: str
    resource: Resource
    plan: str
    end: CycleEnd
    handled: int
    duration: float
    backlog: int  # left
    republished: bool  # a request stands for what is left


@dataclass(frozen=True, slots=True)
class TokensRenewed:
    name: ClassVar[str] = "tokens.renewed"
    renewed: int


@dataclass(frozen=True, slots=True)
class TokenWasLost:
    name: ClassVar[str] = "token.lost"
    group: str
    resource: Resource
    fence: int


@dataclass(frozen=True, slots=True)
class LoansRescued:
    """What a dead holder had on loan is back, suspect."""

    name: ClassVar[str] = "loans.rescued"
    group: str
    resource: Resource
    messages: int
    charged: int  # 0 or 1: only a death with one suspect in hand counts


@dataclass(frozen=True, slots=True)
class StateChanged:
    name: ClassVar[str] = "resource.state_changed"
    group: str
    resource: Resource
    state: State
    reason: str
    actor: str


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """``resource`` None: the plan itself; else the resource's plan or overrides."""

    name: ClassVar[str] = "plan.changed"
    group: str
    plan: str
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class ScopeStopped:
    """All resources of one routing value wait for one outside service."""

    name: ClassVar[str] = "scope.stopped"
    group: str
    scope: str  # routing.<name>=<value>
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class OperationStarted:
    """A redrive, discard or retirement is ordered; nothing is moved yet."""

    name: ClassVar[str] = "operation.started"
    group: str
    number: int
    kind: str
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class OperationAdvanced:
    """One step of a redrive, discard or retirement: one effect. Counts are of this step."""

    name: ClassVar[str] = "operation.advanced"
    group: str
    number: int
    kind: str
    done: int
    skipped: int
    progress: str


@dataclass(frozen=True, slots=True)
class SweepFinished:
    name: ClassVar[str] = "sweep.finished"
    repairs: Mapping[str, int]  # by reason


@dataclass(frozen=True, slots=True)
class LoopFailed:
    """A loop of ours met an error that it does not know; it goes on after a pause."""

    name: ClassVar[str] = "loop.failed"
    loop: str
    error: str


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    name: ClassVar[str] = "worker.started"
    owner: str
    slots: int


@dataclass(frozen=True, slots=True)
class WorkerDraining:
    name: ClassVar[str] = "worker.draining"
    owner: str


@dataclass(frozen=True, slots=True)
class WorkerStopped:
    name: ClassVar[str] = "worker.stopped"
    owner: str
    abandoned: int  # cycles that did not end within the grace


Event = (
    Published
    | CycleStarted
    | RequestDiscarded
    | RequestBlocked
    | RequestWasted
    | HandlerStarted
    | HandlerEnded
    | HandlerStuck
    | MessagesTaken
    | MessagesSettled
    | DeadLettered
    | CycleFinished
    | TokensRenewed
    | TokenWasLost
    | LoansRescued
    | StateChanged
    | PlanChanged
    | ScopeStopped
    | OperationStarted
    | OperationAdvanced
    | SweepFinished
    | LoopFailed
    | WorkerStarted
    | WorkerDraining
    | WorkerStopped
)
