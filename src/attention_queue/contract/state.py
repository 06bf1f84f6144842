"""Whether a resource may be served now, and who says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from attention_queue.errors import ContractError


class State(Enum):
    """Only ``active`` is served. All but ``retiring`` and ``removed`` keep the work and wait."""

    ACTIVE = "active"
    PAUSED = "paused"  # stops serving, not accepting
    MAINTENANCE = "maintenance"  # the same; a group may refuse publishes meanwhile
    DISABLED = "disabled"
    CREDENTIALS_ERROR = "credentials_error"  # set by ``Stop``, until somebody clears it
    RETIRING = "retiring"  # takes no more work
    REMOVED = "removed"  # a tombstone


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A state with its reason, who set it and until when (None: until somebody changes it).

    ``until`` is when the resource is active again by itself.
    """

    state: State = State.ACTIVE
    reason: str = ""
    actor: str = ""
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.until is not None and self.until.tzinfo is None:
            raise ContractError("state: until: want a time with its zone (datetime.now(UTC))")
        if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in self.reason + self.actor):
            raise ContractError("state: reason: NUL or a lone surrogate")

    def at(self, now: datetime) -> State:
        """The state that counts at ``now``: one whose ``until`` has passed is over."""
        return State.ACTIVE if self.until is not None and self.until <= now else self.state


ACTIVE = ResourceState()
