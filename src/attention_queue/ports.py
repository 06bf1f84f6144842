"""What the core asks of the outside world, in the domain's own words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from attention_queue.clock import Clock
from attention_queue.contract import (
    CycleEnd,
    Delivery,
    Hold,
    Plan,
    Policy,
    Resource,
    ResourceState,
    Settlement,
    State,
    Token,
    WorkMessage,
)
from attention_queue.contract.bus import Bus
from attention_queue.contract.changes import (
    Change as Change,
)
from attention_queue.contract.changes import (
    Nudge as Nudge,
)
from attention_queue.contract.changes import (
    Register as Register,
)
from attention_queue.contract.changes import (
    ReleaseToken as ReleaseToken,
)
from attention_queue.contract.changes import (
    SetPlan as SetPlan,
)
from attention_queue.contract.changes import (
    SetState as SetState,
)
from attention_queue.contract.events import Event
from attention_queue.contract.operation import Operation, OperationFigures
from attention_queue.contract.reads import Insight as Insight


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine claims. Each claim is tested both ways by ``tests/contract``."""

    dedup_on_publish: bool  # the same message id twice is one message while the first is kept
    joins_caller_transaction: bool
    message_delay_exact: bool  # ``not_before`` is honoured to the millisecond, not to a rung
    peek: bool
    place_in_line: bool
    strict_priority: bool  # 8 : 4 : 1 exactly, not on average


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What an engine has to know of a group; stored with the first publish or worker."""

    name: str
    type: str = "resource"
    plans: tuple[Plan, ...]
    default_plan: str
    register_unknown: bool = True  # False: only resources that were registered take work
    refuse_in_maintenance: bool = False
    max_tenant_backlog: int | None = None  # messages that all resources of a tenant may have


@dataclass(frozen=True, slots=True)
class Put:
    """What a publish did."""

    stored: int
    duplicates: int
    requests: int
    coalesced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a worker can begin now."""

    owner: str  # unique to this start of this process
    groups: tuple[str, ...]
    limit: int  # free slots
    extra: int  # of them for a second or later consumer of a resource
    take: int = 100  # messages on loan at once, at most


@dataclass(slots=True, kw_only=True, eq=False)
class Begun:
    """A request that is begun: its record, a token, and the first messages on loan.

    ``lost`` turns True when the lease is known to have ended: start nothing more.
    """

    group: str
    resource: Resource
    plan: str
    policy: Policy
    routing: Mapping[str, str]
    token: Token  # as it was granted; its lease is renewed elsewhere
    loan: list[Delivery]
    handle: object  # the engine's own
    extra: bool = False  # a second or later consumer of the resource
    waited: float = 0.0  # seconds between the request's falling due and now
    backlog: int = 0  # unfinished messages of the resource, those on loan included
    lost: bool = False
    active: bool = True  # what ``reload`` found
    stop_now: bool = False  # the state that it found cancels handlers
    limited: timedelta | None = None  # why nothing more was taken: a rate, until then
    renew_before: float = field(default=float("inf"))  # monotonic; a stuck handler is let go then


@dataclass(frozen=True, slots=True)
class Declined:
    """A request that was begun and settled without a token, and why."""

    group: str
    resource: Resource
    why: State | Hold
    until: datetime


Settled = tuple[Delivery, Settlement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a cycle leaves its resource."""

    end: CycleEnd
    not_before: timedelta | None = None  # leave the resource alone for this long, because of `hold`
    hold: Hold | None = None
    state: ResourceState | None = None  # move it there
    scope: str | None = None  # routing.<name>: and all others of the same value
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """What a finished cycle left behind."""

    backlog: int
    republished: bool


class Engine(Protocol):
    """Keeps work and the requests for it. Every verb is one step: it happened whole, or not at all.

    Any verb may raise ``EngineUnavailable``; whether it happened is then unknown, and repeating it
    is safe.
    """

    name: str
    capabilities: Capabilities
    clock: Clock
    bus: Bus

    async def open_group(self, group: Group) -> None:
        """Make the group and its plans known; the same again changes nothing."""

    async def put(self, group: str, messages: Sequence[WorkMessage]) -> Put:
        """Store the work and make sure a request stands for it, as one unit.

        Raises:
            ResourceRetired, ResourceUnderMaintenance, UnknownResource: None is stored.
        """

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        """Begin the requests that are due, in order; never wait. Empty: none is due."""

    async def wait(self, groups: Collection[str], at_most: float) -> None:
        """Return when a request may have fallen due, or after ``at_most`` seconds."""

    async def waiting(self, groups: Collection[str]) -> Sequence[tuple[Resource, float]]:
        """The two resources whose requests have waited longest, and how many seconds."""

    async def settle(
        self, begun: Begun, outcomes: Sequence[Settled], *, take: int = 0, invite: bool = False
    ) -> Sequence[Delivery]:
        """Record outcomes, then take up to ``take`` more; empty only when proven empty.

        ``invite``: if more than one quantum is left and a token is free, ask for another consumer.

        Raises:
            TokenLost: Fenced out; nothing was recorded.
        """

    async def renew(self, begun: Collection[Begun]) -> Collection[Begun]:
        """Extend the leases; returns those that are lost."""

    async def finish(
        self, begun: Begun, outcomes: Sequence[Settled], ending: Ending, handled: int = 0
    ) -> Left:
        """Record outcomes, return loans, release, THEN look, ask, and settle the request.

        Raises:
            TokenLost: A successor has taken over; nothing was recorded and the request is his.
        """

    def changed(self, begun: Begun) -> bool:
        """Whether a state or plan may have changed since; costs nothing, so ask at each message."""

    async def reload(self, begun: Begun) -> State:
        """Read state and policy afresh into ``begun``; returns the state."""

    async def change(self, change: Change, *, actor: str) -> None:
        """Change a state, plan or place, and ask if that makes work ready, as one unit."""

    async def lead(self, task: str, owner: str, lease: timedelta) -> bool:
        """Become or stay the leader of a periodic task; an economy, two leaders are harmless."""

    async def sweep(self, after: int, limit: int) -> Swept:
        """Repair one page of resources that have work and no request; see ``Swept``."""

    async def start(self, operation: Operation, *, actor: str) -> int:
        """Note a redrive, discard or retirement; its number. ``step`` does the work.

        Raises:
            Conflict: The same is under way, or the resource is being retired. Nothing was changed.
        """

    async def step(self, number: int | None, limit: int) -> OperationFigures | None:
        """Do one step of an operation (None: of the one whose turn it is, if there is one).

        A step is one unit: who repeats it after a crash goes on where the last one stopped.
        """

    async def cancel(self, number: int, *, actor: str) -> OperationFigures:
        """What is done stays done. Raises: ``Conflict`` if it has ended already."""

    def keeper(self) -> Keeper:
        """What renews the leases of this engine's cycles, off the handlers' loop where it can."""

    async def close(self) -> None: ...


class Keeper(Protocol):
    """Renews leases at a third of their length until they are dropped."""

    def keep(self, begun: Begun) -> None: ...
    def drop(self, begun: Begun) -> None: ...
    async def __aenter__(self) -> Keeper: ...
    async def __aexit__(self, *exc: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Swept:
    """One page of a sweep. ``after`` is where the next page starts; None: that was the last."""

    after: int | None
    repairs: Mapping[str, int]  # by reason


class Sink(Protocol):
    """Hears events. Must not block and must not raise."""

    def __call__(self, event: Event) -> None: ...
