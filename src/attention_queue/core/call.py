"""Calling a handler: decoding, middleware, threads for sync ones, time-outs, errors."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from attention_queue.clock import Clock
from attention_queue.contract import Delivery, Failure, Outcome, Reject, Retry, Stop
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import HandlerEnded, HandlerStarted
from attention_queue.core.context import Context
from attention_queue.core.handlers import Handler, Proceed, Undecodable
from attention_queue.core.outcomes import failure_of, outcomes_of
from attention_queue.core.service import Service
from attention_queue.ports import Begun

LET_GO = 5.0  # seconds after its time-out at which a handler that ignores being cancelled is let go


class Calls:
    """Makes calls; holds what all of them share."""

    def __init__(self, clock: Clock, bus: Bus, threads: int) -> None:
        self.clock, self.bus = clock, bus
        self._max_threads = threads
        self._threads: ThreadPoolExecutor | None = None

    @property
    def threads(self) -> ThreadPoolExecutor:
        """For sync handlers; made when the first one runs."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._max_threads, "attn-handler")
        return self._threads

    def let_go(self) -> None:
        """A thread is stuck: later handlers get threads of their own, not what it leaves over."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def batch(self, service: Service, loan: deque[Delivery]) -> Sequence[Delivery]:
        """Take the next call's messages off the loan: one, or neighbours of one batch type."""
        first = loan.popleft()
        handler = service.handlers.get(first.message.type)
        if handler is None or handler.batch is None or handler.batch == 1:
            return (first,)
        batch = [first]
        while loan and len(batch) < handler.batch and loan[0].message.type == first.message.type:
            batch.append(loan.popleft())
        return batch

    def start(
        self,
        service: Service,
        begun: Begun,
        batch: Sequence[Delivery],
        scope: object,
        *,
        task: asyncio.Task[Any] | None,
    ) -> Call:
        """``task`` runs the whole slice: asked for at each message, it would cost a tenth of it."""
        call = Call(self, service, begun, batch, scope, task=task)
        begun.renew_before = call.started + begun.policy.handler_timeout.total_seconds() + LET_GO
        return call


class Call:
    """One call of one handler. ``cancel`` makes it a failed attempt, whatever it then says."""

    __slots__ = (
        "_batch", "_begun", "_calls", "_failure", "_scope", "_service", "_task", "_thread",
        "started", "stopped", "timed_out",
    )  # fmt: skip

    def __init__(
        self,
        calls: Calls,
        service: Service,
        begun: Begun,
        batch: Sequence[Delivery],
        scope: object,
        *,
        task: asyncio.Task[Any] | None,
    ) -> None:
        self._calls, self._service, self._begun = calls, service, begun
        self._batch, self._scope = batch, scope
        self._task = task
        self._failure: Failure | None = None
        self._thread: asyncio.Future[Any] | None = None
        self.started = calls.clock.monotonic()
        self.timed_out = False
        self.stopped = False

    def stop(self) -> None:
        """Called by the worker's watch: a person's word. The message stays, without an attempt."""
        self.stopped = True
        if self._task is not None:
            self._task.cancel("stopped")

    def time_out(self) -> None:
        """Called by the worker's watch: cancel the handler, not the cycle."""
        self.timed_out = True
        if self._task is not None:
            self._task.cancel("handler_timeout")

    async def outcomes(self) -> Sequence[Outcome | None]:
        """One per message; None: nobody here handles the type. A handler's fault is an outcome."""
        handler = self._service.handlers.get(self._batch[0].message.type)
        bus = self._calls.bus
        if bus.wants(HandlerStarted):
            bus.emit(self._started_event())
        outcomes: Sequence[Outcome | None]
        outcomes = [None] * len(self._batch) if handler is None else await self._handle(handler)
        if bus.wants(HandlerEnded):
            bus.emit(self._ended_event(outcomes))
        return outcomes

    async def _handle(self, handler: Handler) -> Sequence[Outcome]:
        """What cannot be decoded is set aside; its neighbours are handled."""
        refused: dict[int, Outcome] = {}
        good: list[Delivery] = []
        values: list[object] = []
        for n, each in enumerate(self._batch):
            try:
                values.append(handler.decode(each.message))
                good.append(each)
            except Undecodable as exc:
                refused[n] = self._undecodable(exc)
            except Exception as exc:  # a validator of the application's own is broken
                refused[n] = self._failed(failure_of(exc))
        handled = iter(await self._guarded(handler, good, values) if good else ())
        return [refused[n] if n in refused else next(handled) for n in range(len(self._batch))]

    async def _guarded(
        self, handler: Handler, good: Sequence[Delivery], values: Sequence[object]
    ) -> Sequence[Outcome]:
        """Whatever the handler raises is a failed attempt, and what comes too late is one too."""
        try:
            result = await self._invoke(handler, good, values)
            if not self._was_cancelled or self._ran_on:
                self._forget_cancel()
                return outcomes_of(result, len(good))
            failure = self._timeout_failure()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:  # SystemExit too: one handler does not end the worker
            if self._is_leaving(exc):
                raise
            failure = self._timeout_failure() if self.timed_out else failure_of(exc)
        self._forget_cancel()
        if self.stopped:
            return [Stop("stopped by a change of state")] * len(good)
        return [self._failed(failure)] * len(good)

    @property
    def _ran_on(self) -> bool:
        """It was to stop, but a thread that is within its time has done its work undisturbed."""
        return self._thread is not None and not self.timed_out

    def _forget_cancel(self) -> None:
        """Our own cancellation is spent."""
        if self._was_cancelled and self._task is not None:
            self._task.uncancel()

    def _is_leaving(self, error: BaseException) -> bool:
        """Whether the worker has cancelled the cycle; a handler may raise the same by itself."""
        return (
            isinstance(error, asyncio.CancelledError)
            and not self._was_cancelled
            and (self._task is None or self._task.cancelling() > 0)
        )

    async def _invoke(
        self, handler: Handler, good: Sequence[Delivery], values: Sequence[object]
    ) -> object:
        context = Context(
            self._begun,
            good,
            clock=self._calls.clock,
            queue=self._service.queue,
            scope=self._scope,
        )
        arguments = handler.arguments(values, context)
        if not self._service.middleware:
            if handler.is_async:
                return await handler.call(*arguments)
            return await self._in_thread(handler, arguments)
        call: Proceed = partial(self._innermost, handler, arguments)
        for middleware in reversed(self._service.middleware):
            call = partial(middleware, context, call)
        return await call()

    async def _innermost(self, handler: Handler, arguments: tuple[object, ...]) -> object:
        if handler.is_async:
            return await handler.call(*arguments)
        return await self._in_thread(handler, arguments)

    async def _in_thread(self, handler: Handler, arguments: tuple[object, ...]) -> object:
        """A thread cannot be cancelled, so neither is the wait for it: the token stays ours."""
        loop = asyncio.get_running_loop()
        work = partial(copy_context().run, _plain, handler.call, arguments)
        self._thread = loop.run_in_executor(self._calls.threads, work)
        while True:
            try:
                result = await asyncio.shield(self._thread)
                return await result if inspect.iscoroutine(result) else result
            except asyncio.CancelledError:
                if not self._was_cancelled or self._thread.cancelled():
                    raise

    @property
    def _was_cancelled(self) -> bool:
        return self.timed_out or self.stopped

    @property
    def in_thread(self) -> bool:
        """Whether the handler runs in a thread now; nothing can stop it there."""
        return self._thread is not None and not self._thread.done()

    @property
    def type(self) -> str:
        return self._batch[0].message.type

    def _failed(self, failure: Failure) -> Retry:
        self._failure = failure
        return Retry(failure=failure)

    def _undecodable(self, error: Undecodable) -> Reject:
        self._failure = Failure("Undecodable", str(error)[:2_000])
        return Reject("undecodable", self._failure)

    def _timeout_failure(self) -> Failure:
        seconds = self._begun.policy.handler_timeout.total_seconds()
        return Failure("HandlerTimeout", f"it took longer than handler_timeout ({seconds:g} s)")

    def _started_event(self) -> HandlerStarted:
        first = self._batch[0]
        waited = max(self._calls.clock.now_ms() - first.enqueued_ms, 0) / 1000
        ids = tuple(each.message.id for each in self._batch)
        return HandlerStarted(
            self._begun.group, self._begun.resource, first.message.type, ids, first.attempt, waited
        )

    def _ended_event(self, outcomes: Sequence[Outcome | None]) -> HandlerEnded:
        first, clock = self._batch[0], self._calls.clock
        duration = clock.monotonic() - self.started
        latency = (clock.now_ms() - first.enqueued_ms) / 1000
        return HandlerEnded(
            self._begun.group,
            self._begun.resource,
            first.message.type,
            tuple([each.message.id for each in self._batch]),
            tuple([_word(outcome) for outcome in outcomes]),
            duration,
            self._failure,
            self._begun.plan,
            max(latency - duration, 0.0),
        )


def _plain(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    try:
        return function(*arguments)
    except StopIteration as exc:  # no future can hold it: whoever waits would wait for ever
        raise RuntimeError("the handler raised StopIteration") from exc


def _word(outcome: Outcome | None) -> str:
    return "unknown" if outcome is None else type(outcome).__name__.lower()
