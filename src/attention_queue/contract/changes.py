"""What people change: states, plans, places on them; each one unit with the request it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attention_queue.contract.policy import Override, Plan
from attention_queue.contract.resource import Resource
from attention_queue.contract.state import ResourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class SetState:
    """``expect``: only if the resource still has this version; None: whatever it has."""

    group: str
    resource: Resource
    state: ResourceState
    stop_now: bool = False  # cancel the handlers that run; else they finish their message
    expect: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Make or move a resource: its plan, routing and overrides; None leaves what is there."""

    group: str
    resource: Resource
    plan: str | None = None
    routing: Mapping[str, str] | None = None
    overrides: tuple[Override, ...] | None = None
    expect: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    group: str
    plan: Plan
    expect: int | None = None  # the plan's version
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge:
    """Ask for attention now, whatever the request waits for."""

    group: str
    resource: Resource
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseToken:
    """End a lease now. Whoever lives renews it; what a dead holder had in hand comes back.

    ``fence``: only if the slot still has this one.
    """

    group: str
    resource: Resource
    slot: int
    fence: int
    reason: str


Change = SetState | Register | SetPlan | Nudge | ReleaseToken
