"""One group's application: its handlers and what stands around them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta

from attention_queue.clock import Clock
from attention_queue.contract import Admission, Resource, Unknown
from attention_queue.core.context import Publishes
from attention_queue.core.handlers import Handlers, Middleware
from attention_queue.ports import Group

Scope = Callable[[Resource], AbstractAsyncContextManager[object]]
Lifespan = Callable[[], AbstractAsyncContextManager[object]]
_REMEMBERED = 10_000  # admissions


@dataclass(slots=True)
class Admissions:
    """The application's own say, asked once in ``keep`` per resource; bounded."""

    ask: Callable[[Resource], Awaitable[Admission]]
    keep: timedelta
    _answers: OrderedDict[Resource, tuple[float, Admission]] = field(default_factory=OrderedDict)

    async def of(self, resource: Resource, clock: Clock) -> Admission:
        known = self._answers.get(resource)
        if known and clock.monotonic() < known[0]:
            return known[1]
        answer = await self.ask(resource)
        self._answers[resource] = (clock.monotonic() + self.keep.total_seconds(), answer)
        self._answers.move_to_end(resource)
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return answer


@dataclass(slots=True)
class Service:
    """What a worker needs to serve one group."""

    group: Group
    queue: Publishes
    handlers: Handlers = field(default_factory=Handlers)
    middleware: list[Middleware] = field(default_factory=list)
    scope: Scope | None = None
    lifespans: list[Lifespan] = field(default_factory=list)
    admissions: Admissions | None = None
    unknown: Unknown = field(default_factory=Unknown)
