"""What a test of an application holds: the real engine in memory, its clock, and what happened."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, get_args

from attention_queue import app
from attention_queue.clock import ManualClock
from attention_queue.contract import CycleEnd, Priority, Resource, new_id
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    CycleFinished,
    DeadLettered,
    Event,
    HandlerEnded,
    LoopFailed,
)
from attention_queue.contract.figures import ResourceFigures
from attention_queue.core.cycle import TAKE
from attention_queue.core.insight import Verdict, explain
from attention_queue.core.worker import AttentionWorker
from attention_queue.errors import ContractError
from attention_queue.ports import Begun, Keeper, Want
from attention_queue.queue import AttentionQueue

T = TypeVar("T")
MANY = 100_000  # cycles after which a drain is taken to be endless
_OURS = ("cycle", "dispatch", "watch", "sweep")  # loops that no application's error may break
_PASSES = 30  # turns of the event loop in which whoever was woken comes to rest


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that is delivered no more, and why."""

    resource: Resource
    id: str
    type: str
    reason: str  # attempts_exhausted, undecodable, poison, unknown_type, or what Reject said
    attempts: int
    error: str  # the last exception's type; empty if there was none
    text: str  # and what it said


class Attn:
    """Serves queues on one engine in memory, when it is told to and not before.

    Time stands still until ``advance``. Whatever a test does not open or start does not run:
    ``drain`` serves what is due at this moment and comes back. While a queue is open here, its
    clock and its bus are those of this engine.
    """

    def __init__(self) -> None:
        self.clock, self.bus = ManualClock(), Bus()
        self.engine, self.insight = app.open_in_memory(self.clock, self.bus)
        self.events: list[Event] = []  # all, in the order in which they happened
        self._queues: list[AttentionQueue] = []
        for kind in get_args(Event):
            self.bus.on(kind, self.events.append)

    async def open(self, *queues: AttentionQueue) -> None:
        """Bind the queues to this engine; several may share it."""
        for queue in queues:
            await queue.open(self.engine)
            self._queues.append(queue)

    async def publish(
        self,
        resource: Resource | str,
        type: str,
        payload: object = None,
        *,
        id: str | None = None,
        delay: timedelta | None = None,
        priority: Priority | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """``AttentionQueue.publish`` of the queue that was opened first."""
        return await self._first().publish(
            resource, type, payload, id=id, delay=delay, priority=priority, headers=headers
        )

    async def drain(self) -> list[CycleEnd]:
        """Serve until nothing more is due at this moment; how each cycle ended, in order.

        Delayed messages, retries that wait and parked resources are due later: ``advance``.
        """
        return await self._serve(MANY)

    async def cycle(self) -> CycleEnd | None:
        """Serve one slice of the resource that is next; None if none is due."""
        return next(iter(await self._serve(1)), None)

    async def advance(self, by: timedelta) -> None:
        """Move the clock, waking each sleeper at its own moment, in order."""
        left = by
        await _come_to_rest()
        while (wake := self.clock.next_wake()) is not None:
            # Rounded up, because a sleeper that is passed by less than a microsecond sleeps on.
            step = timedelta(microseconds=math.ceil(wake * 1_000_000))
            if step > left:
                break
            self.clock.advance(step)
            left -= step
            await _come_to_rest()
        self.clock.advance(left)
        await _come_to_rest()

    async def crash(self, *, take: int = TAKE) -> Sequence[str]:
        """A worker begins the request that is next and dies: the ids that it had in hand.

        They come back when its lease has ended (30 s, unless the policy says otherwise), suspect.
        """
        want = Want(owner=f"crashed-{new_id()}", groups=self._groups(), limit=1, extra=1, take=take)
        begun = [each for each in await self.engine.begin(want) if isinstance(each, Begun)]
        return [each.message.id for one in begun for each in one.loan]

    async def backlog(
        self, resource: Resource | str, *, queue: AttentionQueue | None = None
    ) -> int:
        """Its unfinished messages, those on loan and delayed ones included."""
        seen = await self._seen(resource, queue)
        return seen.backlog if seen else 0

    async def explain(
        self, resource: Resource | str, *, queue: AttentionQueue | None = None
    ) -> Verdict:
        """Why it is, or is not, being served: what ``attn explain`` says."""
        return explain(await self._seen(resource, queue))

    async def dead(self) -> list[DeadLetter]:
        """What has become a dead letter so far, oldest first."""
        failures = {
            (event.resource, message): event.failure
            for event in self.events
            if isinstance(event, HandlerEnded) and event.failure
            for message in event.messages
        }
        return [
            DeadLetter(e.resource, e.message, e.type, e.reason, e.attempts, *_error(failures, e))
            for e in self.events
            if isinstance(e, DeadLettered)
        ]

    def close(self) -> None:
        """Let go of the queues and of all that was stored; nothing of it waits for anything."""
        for queue in self._queues:
            _at_once(queue.close())
        self._queues = []
        _at_once(self.engine.close())
        _at_once(self.insight.close())

    async def _serve(self, most: int) -> list[CycleEnd]:
        first, *others = self._all()
        worker = first.worker(*others, slots=1)
        start = len(self.events)
        async with worker.attending() as keeper:
            while await self._turn(worker, keeper, start, most):
                pass
        ends = self._ends(start)
        for event in self.events[start:]:
            if isinstance(event, LoopFailed) and event.loop in _OURS:
                raise AssertionError(f"{event.loop}: {event.error}")
        assert len(ends) < MANY, f"work is still due after {MANY:,} cycles: {ends[-3:]}"
        return ends

    async def _turn(self, worker: AttentionWorker, keeper: Keeper, start: int, most: int) -> bool:
        """Whether there was anything to look at, and more may be looked at."""
        before = len(self.events)
        found = await worker.turn(keeper)
        await worker.idle()
        return len(self._ends(start)) < most and (bool(found) or len(self.events) > before)

    def _ends(self, start: int) -> list[CycleEnd]:
        return [event.end for event in self.events[start:] if isinstance(event, CycleFinished)]

    def _groups(self) -> tuple[str, ...]:
        return tuple(queue.name for queue in self._all())

    async def _seen(
        self, resource: Resource | str, queue: AttentionQueue | None
    ) -> ResourceFigures | None:
        name = resource if isinstance(resource, Resource) else Resource.parse(resource)
        return await self.insight.resource((queue or self._first()).name, name)

    def _first(self) -> AttentionQueue:
        return self._all()[0]

    def _all(self) -> Sequence[AttentionQueue]:
        if not self._queues:
            raise ContractError("no queue is open: await attn.open(queue) first")
        return self._queues


def _error(failures: Mapping[tuple[Resource, str], Any], letter: DeadLettered) -> tuple[str, str]:
    failure = failures.get((letter.resource, letter.message))
    return (failure.error, failure.message) if failure else ("", "")


async def _come_to_rest() -> None:
    """Let everybody run who was woken, and whoever they wake."""
    for _ in range(_PASSES):
        await asyncio.sleep(0)


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that has nothing to wait for; needs no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    coroutine.close()
    raise AssertionError("an engine in memory waits for nobody")
