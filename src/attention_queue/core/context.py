"""What a handler may know and do beside its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from attention_queue.clock import Clock
from attention_queue.contract import Delivery, Priority, Resource, WorkMessage
from attention_queue.ports import Begun


class Publishes(Protocol):
    """``AttentionQueue.publish``, as a context needs it."""

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
    ) -> str: ...


class Context:
    """Handed to a handler that takes two parameters; good for that one call.

    ``scope`` is what ``@queue.cycle_scope`` gave for this slice, None without one.
    """

    __slots__ = ("_begun", "_clock", "_queue", "_started", "deliveries", "scope")

    def __init__(
        self,
        begun: Begun,
        deliveries: Sequence[Delivery],
        *,
        clock: Clock,
        queue: Publishes,
        scope: object,
    ) -> None:
        self._begun, self._clock, self._queue = begun, clock, queue
        self._started = clock.monotonic()
        self.deliveries, self.scope = deliveries, scope

    @property
    def group(self) -> str:
        return self._begun.group

    @property
    def resource(self) -> Resource:
        return self._begun.resource

    @property
    def message(self) -> WorkMessage:
        """The first one's, for a handler that takes a list."""
        return self.deliveries[0].message

    @property
    def attempt(self) -> int:
        """1 the first time; the highest, for a handler that takes a list."""
        return max(each.attempt for each in self.deliveries)

    @property
    def redriven(self) -> bool:
        """It was a dead letter before: a reprocess of an old fact, not a new one."""
        return any(each.redriven for each in self.deliveries)

    @property
    def fence(self) -> int:
        """Grows with every token of the resource: let the store you write to refuse lower ones."""
        return self._begun.token.fence

    @property
    def deadline(self) -> datetime:
        """When this attempt will have failed by ``handler_timeout``."""
        used = timedelta(seconds=self._clock.monotonic() - self._started)
        return self._clock.now() + self._begun.policy.handler_timeout - used

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
        """Publish in the same group; durable when it returns, so before this message is settled.

        A crash between the two delivers this message again: give an ``id`` made of this message's
        to publish once.
        """
        return await self._queue.publish(
            resource, type, payload, id=id, delay=delay, ttl=ttl, priority=priority, headers=headers
        )
