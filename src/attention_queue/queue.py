"""The public face of a group: publish to it, say how its messages are handled, serve it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from attention_queue import app
from attention_queue.application import Application
from attention_queue.clock import Clock, SystemClock, moment_in
from attention_queue.contract import (
    PLANS,
    Override,
    Plan,
    Priority,
    Resource,
    ResourceState,
    State,
    Unknown,
    WorkMessage,
    new_id,
)
from attention_queue.contract.bus import Bus
from attention_queue.contract.names import word_fault
from attention_queue.contract.operation import Operation
from attention_queue.core.handlers import encode
from attention_queue.core.service import Service
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import ContractError, EngineUnavailable, UnknownPlan
from attention_queue.ports import Change, Engine, Group, Nudge, Put, Register, SetPlan, SetState

F = TypeVar("F", bound=Callable[..., Any])


class AttentionQueue(Application):
    """One group: a named attention queue with its resources, plans and handlers.

    Nothing is opened until ``async with queue``. ``url`` defaults to the configured one.
    ``register="explicit"`` refuses work for resources that nobody registered;
    ``maintenance="refuse"`` refuses it for resources under maintenance.

    Raises:
        ContractError: A bad name, or no plan of the default's name.
    """

    loop: asyncio.AbstractEventLoop | None = None  # the one on which it is open
    _engine: Engine | None = None
    _owns_engine = False

    def __init__(
        self,
        name: str,
        *,
        url: str | None = None,
        type: str = "resource",
        plans: Sequence[Plan] = PLANS,
        default_plan: str | None = None,
        register: str = "auto",
        maintenance: str = "accept",
        max_tenant_backlog: int | None = None,
        unknown_type_grace: timedelta = timedelta(minutes=10),
        clock: Clock | None = None,
        bus: Bus | None = None,
    ) -> None:
        _check_words(name, type, register, maintenance)
        self.name, self.url = name, url
        self.clock, self.bus = clock or SystemClock(), bus or Bus()
        group = Group(
            name=name,
            type=type,
            plans=tuple(plans),
            default_plan=_default(name, plans, default_plan),
            register_unknown=register == "auto",
            refuse_in_maintenance=maintenance == "refuse",
            max_tenant_backlog=max_tenant_backlog,
        )
        self.service = Service(group, self, unknown=Unknown(grace=unknown_type_grace))
        self._own = (self.clock, self.bus)  # those of an engine that it joins replace them

    # Publishing.

    async def publish(
        self,
        resource: Resource | str,
        type: str,
        payload: object = None,
        *,
        id: str | None = None,
        delay: timedelta | None = None,
        ttl: timedelta | None = None,
        priority: Priority | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Publish one message; its id. When it returns, the work is durable and asked for.

        ``resource`` may be written ``tenant/id``. ``payload`` is bytes, or anything that can be
        written as JSON. The same ``id`` again is the same message while the first is kept.

        Raises:
            ContractError: Nothing is stored; the class says why.
            EngineUnavailable: It may be stored; publish again with the same ``id``.
        """
        message = self.message(
            resource, type, payload, id=id, delay=delay, ttl=ttl, priority=priority, headers=headers
        )
        await self.engine.put(self.name, (message,))
        return message.id

    async def publish_many(self, messages: Iterable[WorkMessage]) -> Put:
        """Publish all in one transaction, or none. Raises as ``publish``."""
        return await self.engine.put(self.name, tuple(messages))

    def message(
        self,
        resource: Resource | str,
        type: str,
        payload: object = None,
        *,
        id: str | None = None,
        delay: timedelta | None = None,
        ttl: timedelta | None = None,
        priority: Priority | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> WorkMessage:
        """A message for ``publish_many``; the arguments are those of ``publish``."""
        body, content_type = encode(payload)
        return WorkMessage(
            id=id or new_id(),
            resource=resource if isinstance(resource, Resource) else Resource.parse(resource),
            type=type,
            payload=body,
            content_type=content_type,
            headers=headers or {},
            not_before=None if delay is None else moment_in(self.clock.now(), delay),
            priority=priority,
            expires_at=None if ttl is None else moment_in(self.clock.now(), ttl),
        )

    # What people change.

    async def register(
        self,
        resource: Resource | str,
        *,
        plan: str | None = None,
        routing: Mapping[str, str] | None = None,
        overrides: Sequence[Override] | None = None,
        actor: str = "application",
    ) -> None:
        """Make or change a resource; None leaves what is there. Acts on its backlog at once."""
        place = tuple(overrides) if overrides is not None else None
        change = Register(
            group=self.name, resource=_resource(resource), plan=plan, routing=routing,
            overrides=place,
        )  # fmt: skip
        await self.change(change, actor=actor)

    async def set_plan(self, plan: Plan, *, actor: str = "application") -> None:
        """Make or change a plan; acts on the backlog of all its resources at once."""
        await self.change(SetPlan(group=self.name, plan=plan), actor=actor)

    async def set_state(
        self,
        resource: Resource | str,
        state: ResourceState,
        *,
        stop_now: bool = False,
        actor: str = "application",
    ) -> None:
        """Pause, resume, disable. Active again, its work is asked for in the same step."""
        place = _resource(resource)
        change = SetState(group=self.name, resource=place, state=state, stop_now=stop_now)
        await self.change(change, actor=actor)

    async def pause(
        self,
        resource: Resource | str,
        reason: str,
        *,
        until: datetime | None = None,
        stop_now: bool = False,
        actor: str = "application",
    ) -> None:
        """Stop serving, not accepting. What runs finishes its message, unless ``stop_now``."""
        state = ResourceState(State.PAUSED, reason, actor, until)
        await self.set_state(resource, state, stop_now=stop_now, actor=actor)

    async def maintenance(
        self,
        resource: Resource | str,
        reason: str,
        *,
        until: datetime | None = None,
        actor: str = "application",
    ) -> None:
        """As ``pause``; a group with ``maintenance="refuse"`` refuses publishes meanwhile."""
        state = ResourceState(State.MAINTENANCE, reason, actor, until)
        await self.set_state(resource, state, actor=actor)

    async def disable(
        self, resource: Resource | str, reason: str, *, actor: str = "application"
    ) -> None:
        """Stop serving until somebody resumes it."""
        await self.set_state(resource, ResourceState(State.DISABLED, reason, actor), actor=actor)

    async def resume(self, resource: Resource | str, *, actor: str = "application") -> None:
        await self.set_state(resource, ResourceState(State.ACTIVE, "", actor), actor=actor)

    async def nudge(self, resource: Resource | str, *, actor: str = "application") -> None:
        """Ask for attention now, whatever the request waits for."""
        await self.change(Nudge(group=self.name, resource=_resource(resource)), actor=actor)

    async def change(self, change: Change, *, actor: str) -> None:
        await self.engine.change(change, actor=actor)

    async def start(self, operation: Operation, *, actor: str = "application") -> int:
        """Redrive, discard or retire; its number. The workers do it, step by step.

        Raises:
            Conflict: The same is under way, or the resource is being retired.
        """
        return await self.engine.start(operation, actor=actor)

    # Opening and serving.

    @property
    def engine(self) -> Engine:
        """The open engine.

        Raises:
            EngineUnavailable: The queue is not open.
        """
        if self._engine is None:
            raise EngineUnavailable(f"group {self.name!r} is not open: use async with queue")
        return self._engine

    async def open(self, engine: Engine | None = None) -> None:
        """Open the engine of ``url``, or join one that somebody else closes.

        Plans of ``attn.toml`` take the place of declared ones of their name; an engine that is
        joined has no configuration of its own.
        """
        if self._engine is not None:
            raise ContractError(f"group {self.name!r} is open already")
        if engine is None:
            self.service.group = app.with_configured_plans(self.service.group)
            url = self.url or app.configured_url()
        self._owns_engine = engine is None
        self._engine = engine or app.open_engine(url, self.clock, self.bus)
        self.clock, self.bus = self._engine.clock, self._engine.bus
        self.loop = asyncio.get_running_loop()
        try:
            await self._engine.open_group(self.service.group)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        engine, self._engine, self.loop = self._engine, None, None
        self.clock, self.bus = self._own
        if engine is not None and self._owns_engine:
            await engine.close()

    async def __aenter__(self) -> AttentionQueue:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def worker(self, *others: AttentionQueue, **options: Any) -> AttentionWorker:
        """A worker that serves this open group, and others on the same engine."""
        services = [self.service, *(other.service for other in others)]
        return AttentionWorker(self.engine, services, clock=self.clock, bus=self.bus, **options)


def _check_words(name: str, type: str, register: str, maintenance: str) -> None:
    for word, text in (("group", name), ("type", type)):
        if why := word_fault(text):
            raise ContractError(f"{word} {text!r}: {why}")
    if register not in ("auto", "explicit"):
        raise ContractError(f'register: want "auto" or "explicit", got {register!r}')
    if maintenance not in ("accept", "refuse"):
        raise ContractError(f'maintenance: want "accept" or "refuse", got {maintenance!r}')


def _default(group: str, plans: Sequence[Plan], name: str | None) -> str:
    names = tuple(plan.name for plan in plans)
    default = name or (names[0] if names else "")
    if default not in names:
        raise UnknownPlan(group, default, names)
    return default


def _resource(resource: Resource | str) -> Resource:
    return resource if isinstance(resource, Resource) else Resource.parse(resource)
