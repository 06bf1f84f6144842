"""One slice of one resource: from a begun request to its finish.

The engine has done the first half in one step: the request is begun, the state was looked at, a
token is ours, the first messages are on loan. Here they are handled in order, one at a time, and
settled; and ``finish`` does the last half in one step: outcomes, release, THEN look, ask, and the
request last. A crash at any line leaves the token to its lease, and the request falls due with it.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from attention_queue.clock import Clock, moment_in
from attention_queue.contract import (
    Admission,
    Admit,
    CycleEnd,
    Defer,
    Delivery,
    Discard,
    Done,
    Hold,
    Order,
    Outcome,
    Reject,
    ResourceState,
    Retry,
    Stop,
)
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import LoopFailed, TokenWasLost
from attention_queue.core.call import Call, Calls
from attention_queue.core.outcomes import settlement
from attention_queue.core.service import Service
from attention_queue.errors import EngineUnavailable, TokenLost
from attention_queue.ports import Begun, Ending, Engine, Settled

SETTLE_WITHIN = 0.02  # seconds that an outcome may wait for others to be settled with
TAKE = 100  # messages on loan at once, at most
STOP_AFTER = timedelta(seconds=5)  # left alone for so long after a Stop that names no time
DISCARDED_FOR = timedelta(minutes=10)
_ANSWER_WAITS = (0.05, 0.5, 2.0)  # seconds between tries to finish an unanswered finish


class Turn:
    """How the worker and a running cycle talk: the one sets, the other reads at each message."""

    __slots__ = ("free_slots", "leave", "yielding")

    def __init__(self) -> None:
        self.leave = False  # the worker drains
        self.yielding = False  # somebody else has waited too long
        self.free_slots = False  # a slot is free and nobody waits for it


class Cycle:
    """See ``run``. One per token; not to be used twice."""

    def __init__(
        self,
        begun: Begun,
        service: Service,
        *,
        engine: Engine,
        clock: Clock,
        bus: Bus,
        calls: Calls,
        chance: random.Random,
    ) -> None:
        self.begun, self.turn = begun, Turn()
        self.call: Call | None = None  # the handler that runs now
        self._service, self._engine, self._clock, self._bus = service, engine, clock, bus
        self._calls, self._chance = calls, chance
        self.started = clock.monotonic()
        self._loan: deque[Delivery] = deque(begun.loan)
        self._outcomes: list[Settled] = []
        self._oldest_outcome = 0.0
        self._handled = 0
        self._overrides: Mapping[str, object] = {}  # what admission said

    async def run(self) -> CycleEnd:
        """Serve the slice and say why it ended.

        Raises:
            EngineUnavailable: The finish is unanswered; the lease will end it.
        """
        try:
            ending = await self._slice()
            await self._finish(ending)
        except TokenLost:
            self._lose()
            return CycleEnd.TOKEN_LOST
        return ending.end

    async def _slice(self) -> Ending:
        try:
            return await self._admission() or await self._scoped()
        except asyncio.CancelledError:
            return await self._leave()
        except TokenLost:
            raise
        except Exception as exc:  # the store, or a scope that does not close: blame no message
            return self._broken("cycle", exc)

    async def _leave(self) -> Ending:
        """The grace is over: what was not settled goes back without an attempt.

        A handler in a thread runs on, so its token is not given back: nobody else may be at work on
        the resource before the lease has ended.
        """
        if not self.turn.leave:
            return self._broken("handler", RuntimeError("it cancelled its own task"))
        if self.call is not None and self.call.in_thread:
            await self._settle(take=0)
            raise asyncio.CancelledError
        return Ending(end=CycleEnd.SHUTDOWN)

    def _lose(self) -> None:
        begun = self.begun
        if not begun.lost:  # else the renewal has told it
            begun.lost = True
            self._bus.emit(TokenWasLost(begun.group, begun.resource, begun.token.fence))

    def _broken(self, what: str, error: Exception) -> Ending:
        text = f"{type(error).__name__}: {error}"
        self._bus.emit(LoopFailed(what, text))
        return _stopped(STOP_AFTER, f"{what}: {text}")

    async def _admission(self) -> Ending | None:
        """The application's own say, before its first message."""
        if self._service.admissions is None:
            return None
        try:
            answer = await self._service.admissions.of(self.begun.resource, self._clock)
            return self._admit(answer)
        except Exception as exc:
            return self._broken("admit", exc)

    def _admit(self, answer: Admission) -> Ending | None:
        """Raises: TypeError, ContractError: Overrides that no policy can have."""
        match answer:
            case Admit(overrides):
                self._overrides = overrides
                self._override()
                return None
            case Defer(until, reason):
                return _stopped(until - self._clock.now(), reason)
            case Discard(reason):
                return _stopped(DISCARDED_FOR, reason)
        raise TypeError(f"admit: want Admit, Defer or Discard, got {answer!r:.80}")

    def _override(self) -> None:
        if self._overrides:
            self.begun.policy = replace(self.begun.policy, **self._overrides)  # type: ignore[arg-type]

    async def _scoped(self) -> Ending:
        """The slice inside the application's scope, opened once: the shop's API session."""
        if self._service.scope is None:
            return await self._serve(None)
        serving = False
        try:
            async with self._service.scope(self.begun.resource) as opened:
                serving = True
                ending = await self._serve(opened)
                serving = False
        except Exception as exc:
            if serving:
                raise
            return self._broken("cycle_scope", exc)  # no message is to blame for it
        return ending

    async def _serve(self, scope: object) -> Ending:
        task = asyncio.current_task()
        while True:
            if ending := await self._must_end():
                return ending
            if not self._loan and (ending := await self._take_more()):
                return ending
            batch = self._calls.batch(self._service, self._loan)
            self.call = self._calls.start(self._service, self.begun, batch, scope, task=task)
            outcomes = await self.call.outcomes()
            call, self.call = self.call, None
            ending = await self._record(batch, outcomes)
            if call.stopped:
                return Ending(end=CycleEnd.STATE)
            if ending:
                return ending
            if call.timed_out:
                return Ending(end=CycleEnd.TIMEOUT)
            # A slow one is likely to be followed by a slow one: do not let its outcome wait for it.
            since = min(self._oldest_outcome, call.started)
            if self._outcomes and self._clock.monotonic() - since > SETTLE_WITHIN:
                await self._settle(take=0)

    async def reload(self) -> None:
        """Read state and policy afresh; what admission said about the policy stays said."""
        await self._engine.reload(self.begun)
        self._override()

    async def _must_end(self) -> Ending | None:
        """What is looked at before each message."""
        begun, turn = self.begun, self.turn
        if begun.lost:
            raise TokenLost(begun.resource, begun.token.slot)
        if turn.leave:
            return Ending(end=CycleEnd.SHUTDOWN)
        if self._engine.changed(begun):
            await self.reload()
        if not begun.active:
            return Ending(end=CycleEnd.STATE)
        if self._handled >= begun.policy.max_messages:
            return Ending(end=CycleEnd.MESSAGES)
        if not self._handled:
            return None  # the first message of a slice always runs
        if turn.yielding:
            return Ending(end=CycleEnd.YIELDED)
        if self._clock.monotonic() - self.started >= begun.policy.max_seconds.total_seconds():
            return Ending(end=CycleEnd.SECONDS)
        return None

    async def _take_more(self) -> Ending | None:
        """Settle what is done and take the next messages; with none left the slice is over."""
        if self.begun.backlog <= self._handled:
            return Ending(end=CycleEnd.DRAINED)  # finish looks, so what came since is not missed
        await self._settle(take=min(TAKE, self.begun.policy.max_messages - self._handled))
        if self._loan:
            return None
        if self.begun.limited is not None:
            return Ending(end=CycleEnd.RATE, not_before=self.begun.limited, hold=Hold.RATE)
        return Ending(end=CycleEnd.DRAINED)

    async def _settle(self, take: int) -> None:
        """Without an answer the outcomes stay, and the finish says them again."""
        taken = await self._engine.settle(
            self.begun, self._outcomes, take=take, invite=self.turn.free_slots
        )
        self._outcomes = []
        self._loan.extend(taken)

    async def _record(
        self, batch: Sequence[Delivery], outcomes: Sequence[Outcome | None]
    ) -> Ending | None:
        """Note what became of each; an ending if the slice cannot go on after it."""
        if not self._outcomes:
            self._oldest_outcome = self._clock.monotonic()
        ending: Ending | None = None
        gap = False
        for delivery, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Stop):
                ending, gap = ending or self._stop(outcome), True
                continue
            if gap:  # what is settled together must stand together: a run is deleted as one
                await self._settle(take=0)
                gap = False
            ending = self._note(delivery, outcome) or ending
        return ending

    def _note(self, delivery: Delivery, outcome: Done | Retry | Reject | None) -> Ending | None:
        strict = self.begun.policy.order is Order.STRICT
        if outcome is None:
            unknown = self._service.unknown
            self._outcomes.append((delivery, unknown))
            hold = (unknown.retry_in, Hold.HEAD) if strict else (None, None)
            return Ending(end=CycleEnd.UNKNOWN_TYPE, not_before=hold[0], hold=hold[1])
        self._handled += 1
        settled = settlement(delivery, outcome, self.begun.policy, self._chance)
        self._outcomes.append((delivery, settled))
        if strict and isinstance(settled, Retry):
            return Ending(end=CycleEnd.HEAD, not_before=settled.after, hold=Hold.HEAD)
        return None

    def _stop(self, stop: Stop) -> Ending:
        after = STOP_AFTER if stop.after is None else stop.after
        state = None
        if stop.state is not None:
            until = None if stop.after is None else moment_in(self._clock.now(), stop.after)
            state = ResourceState(stop.state, stop.reason, "handler", until)
        return replace(_stopped(after, stop.reason), state=state, scope=stop.scope)

    async def _finish(self, ending: Ending) -> None:
        """Repeated while unanswered: if it had happened, the repetition finds no token."""
        outcomes = self._outcomes
        for wait in (*_ANSWER_WAITS, None):
            try:
                await self._engine.finish(self.begun, outcomes, ending, self._handled)
                return
            except EngineUnavailable:
                if wait is None:
                    raise
            await self._clock.sleep(wait)


def _stopped(after: timedelta, reason: str) -> Ending:
    return Ending(end=CycleEnd.STOPPED, not_before=after, hold=Hold.STOP, reason=reason)
