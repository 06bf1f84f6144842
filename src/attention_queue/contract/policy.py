"""How a resource is attended: the quantum and limits, named plans, and overrides for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import Enum, IntEnum

from attention_queue.contract.names import word_fault
from attention_queue.errors import ContractError

UNBOUNDED = 1_000_000_000  # more messages than one resource will ever have
FOREVER = timedelta(days=36_500)


class Order(Enum):
    """What a failing head does to the messages behind it."""

    RELAXED = "relaxed"  # the rest goes on while one message waits for its retry
    STRICT = "strict"  # the rest waits until it succeeds or is dead-lettered; needs one consumer


class Expired(Enum):
    """What becomes of a message whose time to live is over when its turn comes."""

    DEAD_LETTER = "dead_letter"
    DROP = "drop"


class Priority(IntEnum):
    """The lane of a request: taken 8 : 4 : 1 while all wait, first come first served inside."""

    HIGH = 0
    NORMAL = 1
    LOW = 2

    @property
    def weight(self) -> int:
        return (8, 4, 1)[self]


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: ``messages`` per ``per``, saved up to one ``per``'s worth."""

    messages: int
    per: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        if self.messages < 1 or self.per < timedelta(milliseconds=1):
            raise ContractError(
                f"rate: want at least 1 message per millisecond or more, got {self}"
            )

    @property
    def per_ms(self) -> float:
        return self.messages / (self.per / timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between the attempts of one message: ``first`` x ``factor``^n up to ``cap``."""

    attempts: int = 10  # deliveries of one message before it is dead-lettered
    first: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        if (
            self.attempts < 1
            or not timedelta(0) <= self.first <= self.cap
            or not (1 <= self.factor < float("inf"))
        ):
            raise ContractError(
                f"retry: want attempts >= 1, first >= 0, factor >= 1, cap >= first; got {self}"
            )

    def wait(self, attempt: int, chance: float) -> timedelta:
        """How long after the failed ``attempt`` (1 is the first) to wait.

        ``chance`` in [0, 1) spreads it over all of the wait (full jitter): a thousand messages
        that failed together do not come back together.
        """
        try:
            grown = self.first * self.factor ** (attempt - 1)
        except OverflowError:  # longer than the calendar
            grown = self.cap
        return min(grown, self.cap) * chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules for one resource's cycles.

    ``rates`` has the key ``resource`` for a bucket of its own and ``routing.<name>`` for one that
    is shared by all resources of the same routing value (all shops on one marketplace).
    """

    max_messages: int = 100  # per cycle
    max_seconds: timedelta = timedelta(seconds=20)  # no new message starts after it
    max_consumers: int = 1  # cycles of one resource at the same time, fleet-wide
    handler_timeout: timedelta = timedelta(seconds=60)  # then the attempt has failed
    priority: Priority = Priority.NORMAL
    order: Order = Order.RELAXED
    rates: Mapping[str, Rate] = field(default_factory=dict)
    retry: Backoff = field(default_factory=Backoff)
    lease: timedelta = timedelta(seconds=30)  # unrenewed this long = free; renewed at a third
    max_crashes: int = 3  # deaths of a process on one message before it is dead-lettered
    max_backlog: int = UNBOUNDED  # messages that may wait; a publish beyond it is refused
    ttl: timedelta = FOREVER  # since the publish, judged when the message's turn comes
    expired: Expired = Expired.DEAD_LETTER

    def __post_init__(self) -> None:
        for name in ("max_messages", "max_consumers", "max_crashes", "max_backlog"):
            if not isinstance(n := getattr(self, name), int) or n < 1:
                raise ContractError(f"policy: {name}: want a whole number of at least 1, got {n!r}")
        for name in ("max_seconds", "handler_timeout", "lease", "ttl"):
            if getattr(self, name) < timedelta(milliseconds=1):
                raise ContractError(f"policy: {name}: want at least a millisecond")
        if self.order is Order.STRICT and self.max_consumers != 1:
            raise ContractError(
                f'policy: order "strict" needs max_consumers = 1, got {self.max_consumers}: '
                "two consumers cannot keep one order"
            )
        for key in self.rates:
            if key != "resource" and not key.startswith("routing."):
                raise ContractError(f'policy: rates: {key!r}: want "resource" or "routing.<name>"')


POLICY_FIELDS = frozenset(f.name for f in fields(Policy))


@dataclass(frozen=True, slots=True)
class Plan:
    """A named policy that resources are on."""

    name: str
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        if why := word_fault(self.name):
            raise ContractError(f"plan {self.name!r}: {why}")


BASIC = Plan("basic", Policy(max_consumers=1, max_messages=50))
PRO = Plan("pro", Policy(max_consumers=3, max_messages=200))
ENTERPRISE = Plan("enterprise", Policy(max_consumers=10, max_messages=1000))
PLANS = (BASIC, PRO, ENTERPRISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Other values for some policy fields of one resource, for a while: a campaign, a season."""

    changes: Mapping[str, object]
    since: datetime | None = None  # None: from the start of time; inclusive
    until: datetime | None = None  # None: until it is taken away; exclusive
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.changes:
            raise ContractError("override: it changes nothing")
        if unknown := set(self.changes) - POLICY_FIELDS:
            raise ContractError(
                f"override: no policy field {sorted(unknown)[0]!r}; "
                f"there are {', '.join(sorted(POLICY_FIELDS))}"
            )
        for name in ("since", "until"):
            if (moment := getattr(self, name)) is not None and moment.tzinfo is None:
                raise ContractError(f"override: {name}: want a time with its zone, got {moment}")
        if self.since and self.until and self.until <= self.since:
            raise ContractError(f"override: it ends ({self.until}) before it begins ({self.since})")

    def holds(self, now: datetime) -> bool:
        return not (self.since and now < self.since) and not (self.until and now >= self.until)


def effective(plan: Plan, overrides: Iterable[Override], now: datetime) -> Policy:
    """The policy in force at ``now``: the plan's, changed by the overrides that hold, last wins.

    Raises:
        ContractError: The fields do not go together (strict order with two consumers).
    """
    changes: dict[str, object] = {}
    for override in overrides:
        if override.holds(now):
            changes.update(override.changes)
    return replace(plan.policy, **changes) if changes else plan.policy  # type: ignore[arg-type]
