"""What a handler may say about a message, what admission may say about a resource, and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from attention_queue.contract.state import State
from attention_queue.errors import ContractError


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in one attempt, as it is kept with a dead letter."""

    error: str  # the exception's type
    message: str  # at most 2,000 characters
    trace: str = ""  # at most 8,000 characters, the end of it


@dataclass(frozen=True, slots=True)
class Done:
    """It is finished; forget it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Deliver it again, ``after`` from now (None: the policy's back-off). Counts as an attempt."""

    after: timedelta | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        if self.after is not None and self.after < timedelta(0):
            raise ContractError(f"Retry: after: want no negative wait, got {self.after}")


@dataclass(frozen=True, slots=True)
class Reject:
    """Never deliver it again; keep it with the dead letters."""

    reason: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The outside world is down, the message is not to blame: it stays, and is no attempt.

    The slice ends and the resource is left alone for ``after`` (None: 5 s). With ``state`` it moves
    to that state until somebody clears it. With ``scope`` (``routing.<name>``) every resource of
    the same routing value waits as well, and one of them probes when the time is over.
    """

    reason: str
    state: State | None = None
    after: timedelta | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        if self.state in (State.ACTIVE, State.RETIRING, State.REMOVED):
            raise ContractError(f"Stop: state: want one that can be cleared, got {self.state}")
        if self.after is not None and self.after < timedelta(0):
            raise ContractError(f"Stop: after: want no negative wait, got {self.after}")
        if self.scope is not None and not self.scope.startswith("routing."):
            raise ContractError(f'Stop: scope: want "routing.<name>", got {self.scope!r}')


Outcome = Done | Retry | Reject | Stop
DONE = Done()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody in this process handles the type: another process may. Never said by a handler."""

    retry_in: timedelta = timedelta(seconds=2)
    grace: timedelta = timedelta(minutes=10)  # unknown this long = dead-lettered


Settlement = Done | Retry | Reject | Unknown


@dataclass(frozen=True, slots=True)
class Admit:
    """Serve it, with other values for some policy fields for this cycle."""

    overrides: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defer:
    """Not before ``until``."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Discard:
    """Drop the request, keep the work; the resource is looked at again in ten minutes."""

    reason: str


Admission = Admit | Defer | Discard


class CycleEnd(Enum):
    """Why a cycle ended."""

    DRAINED = "drained"  # no work was left
    MESSAGES = "messages"  # the quantum is used up
    SECONDS = "seconds"  # no new message starts after max_seconds
    YIELDED = "yielded"  # another resource waited
    STOPPED = "stopped"  # a handler said Stop, or the slice could not be set up
    BUSY = "busy"  # all tokens of the resource were out
    STATE = "state"  # it is not active
    RATE = "rate"  # a rate is used up
    HEAD = "head"  # strict order: the head waits for its retry
    TIMEOUT = "timeout"  # a handler took longer than handler_timeout
    TOKEN_LOST = "token_lost"  # the lease ended under us
    SHUTDOWN = "shutdown"
    NO_QUEUE = "no_queue"  # RabbitMQ: the queue is not there
    UNKNOWN_TYPE = "unknown_type"  # nobody here handles the next message's type


class Hold(Enum):
    """Why a waiting request may not be taken before its time."""

    BUSY = "busy"
    RATE = "rate"
    STOP = "stop"
    HEAD = "head"
    STATE = "state"
