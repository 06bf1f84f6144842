"""How a group's messages are handled: what an application says about it with decorators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from attention_queue.contract import Admission, Resource
from attention_queue.core.handlers import Middleware
from attention_queue.core.service import Admissions, Lifespan, Scope, Service
from attention_queue.errors import ContractError

F = TypeVar("F", bound=Callable[..., Any])


class Application:
    """The decorators of an ``AttentionQueue``; they may be used before it is open."""

    service: Service

    def handler(self, type: str, *, batch: int | None = None) -> Callable[[F], F]:
        """Handle messages of ``type`` with the decorated function, async or not.

        The annotation of its first parameter decodes and validates the payload: bytes as they are;
        a msgspec struct, dataclass, pydantic model or any builtin type from JSON; ``list[T]`` takes
        up to ``batch`` messages of one resource in one call. A second parameter gets the
        ``Context``. It returns None or an outcome (one, or one per message of a list).
        """

        def register(function: F) -> F:
            self.service.handlers.add(type, function, batch)
            return function

        return register

    def middleware(self, function: Middleware) -> Middleware:
        """Run ``function(context, proceed)`` around every call, the first registered outermost."""
        self.service.middleware.append(function)
        return function

    def cycle_scope(self, scope: Scope) -> Scope:
        """Open ``scope(resource)``, an async context, once per slice: the shop's API session."""
        if self.service.scope is not None:
            raise ContractError("cycle_scope: there is one already")
        self.service.scope = scope
        return scope

    def lifespan(self, lifespan: Lifespan) -> Lifespan:
        """Open ``lifespan()``, an async context, for as long as a worker serves."""
        self.service.lifespans.append(lifespan)
        return lifespan

    def admit(
        self, *, keep: timedelta = timedelta(seconds=5)
    ) -> Callable[
        [Callable[[Resource], Awaitable[Admission]]], Callable[[Resource], Awaitable[Admission]]
    ]:
        """Ask the decorated function before a resource is served; answers hold for ``keep``."""

        def register(
            ask: Callable[[Resource], Awaitable[Admission]],
        ) -> Callable[[Resource], Awaitable[Admission]]:
            self.service.admissions = Admissions(ask, keep)
            return ask

        return register
