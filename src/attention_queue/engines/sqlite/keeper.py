"""Keeping leases: a thread for files, so that a blocked event loop does not lose its tokens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from attention_queue.clock import MS, Clock
from attention_queue.engines.sqlite.settle import handle_of
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.engines.sqlite.writer import Writer
from attention_queue.errors import EngineUnavailable
from attention_queue.ports import Begun

LONGEST = 1.0  # seconds between two looks at what is to be renewed, at most
_HAIR = 0.001  # seconds: what is due so soon is renewed with the others


class Renews(Protocol):
    """What a keeper needs of its engine."""

    clock: Clock
    writer: Writer

    async def renew(self, begun: Collection[Begun]) -> Collection[Begun]: ...
    def tell_renewed(self, begun: Collection[Begun], lost: Collection[Begun]) -> None: ...


class _Held:
    """The leases that are kept, and when each is to be renewed next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renewed: dict[Begun, float] = {}  # when it was asked for, not when it was answered
        self._asked = 0.0
        self._looks_at = 0.0  # when the next look is

    def add(self, begun: Begun) -> bool:
        """Whether the next look would come too late for it."""
        self._renewed[begun] = started = handle_of(begun).started
        return started + _third(begun) < self._looks_at

    def drop(self, begun: Begun) -> None:
        self._renewed.pop(begun, None)

    def look_in(self) -> float | None:
        """Seconds until the next look; None while there is nothing to look at."""
        self._looks_at = float("inf")  # what is added from here on has not been seen: it wakes
        moments = [renewed + _third(begun) for begun, renewed in list(self._renewed.items())]
        if not moments:
            return None
        now = self._clock.monotonic()
        self._looks_at = min([now + LONGEST, *moments])
        return max(self._looks_at - now, 0.0)

    def due(self) -> list[Begun]:
        """Those at a third of their lease. One whose handler is stuck is let go, silently."""
        now, due = self._clock.monotonic(), []
        for begun, renewed in list(self._renewed.items()):
            if begun.lost or now >= begun.renew_before:
                self.drop(begun)
            elif now - renewed >= _third(begun) - _HAIR:
                due.append(begun)
        self._asked = now
        return due

    def renewed(self, begun: Collection[Begun], lost: Collection[Begun]) -> None:
        for each in begun:
            if each in self._renewed:
                self._renewed[each] = self._asked
        for each in lost:
            each.lost = True
            self.drop(each)

    def unanswered(self) -> None:
        """Without an answer for a whole lease it has to be taken for lost."""
        now = self._clock.monotonic()
        for begun, renewed in list(self._renewed.items()):
            if now - renewed >= begun.policy.lease.total_seconds():
                begun.lost = True


def _third(begun: Begun) -> float:
    return begun.policy.lease.total_seconds() / 3


def renewal(begun: Collection[Begun]) -> Callable[[Transaction], list[Begun]]:
    """Extends each lease that still stands; returns those that do not."""

    def renew(tx: Transaction) -> list[Begun]:
        lost = []
        for each in begun:
            token, rid = each.token, handle_of(each).record.rid
            until_ms = tx.now_ms + each.policy.lease // MS
            if not tx.run("renew", until_ms, rid, token.slot, token.fence):
                lost.append(each)
        return lost

    return renew


class LoopKeeper:
    """Renews on the event loop, by the engine's clock: for memory and the simulator."""

    def __init__(self, engine: Renews) -> None:
        self._engine, self._held = engine, _Held(engine.clock)
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def keep(self, begun: Begun) -> None:
        if self._held.add(begun):
            self._woken.set()

    def drop(self, begun: Begun) -> None:
        self._held.drop(begun)

    async def __aenter__(self) -> LoopKeeper:
        self._task = asyncio.get_running_loop().create_task(self._renew())
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _renew(self) -> None:
        while True:
            await self._pause(self._held.look_in())
            if not (due := self._held.due()):
                continue
            try:
                self._held.renewed(due, await self._engine.renew(due))
            except EngineUnavailable:
                self._held.unanswered()

    async def _pause(self, seconds: float | None) -> None:
        """So long, or until something is kept for which that is too long."""
        self._woken.clear()
        if seconds is None:
            await self._woken.wait()
            return
        alarm = asyncio.get_running_loop().create_task(self._engine.clock.sleep(seconds))
        alarm.add_done_callback(lambda alarm: None if alarm.cancelled() else self._woken.set())
        try:
            await self._woken.wait()
        finally:
            alarm.cancel()


class ThreadKeeper:
    """Renews on a thread of its own: a handler that blocks the event loop does not stop it."""

    def __init__(self, engine: Renews) -> None:
        self._engine, self._held = engine, _Held(engine.clock)
        self._woken, self._leave = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._renew, name="attn-keeper", daemon=True)

    def keep(self, begun: Begun) -> None:
        if self._held.add(begun):
            self._woken.set()

    def drop(self, begun: Begun) -> None:
        self._held.drop(begun)

    async def __aenter__(self) -> ThreadKeeper:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._leave.set()
        self._woken.set()
        await asyncio.to_thread(self._thread.join)

    def _renew(self) -> None:
        while not self._leave.is_set():
            self._woken.wait(self._held.look_in())
            self._woken.clear()  # before the look, so that what comes now is seen by the next
            if due := self._held.due():
                self._try(due)

    def _try(self, due: list[Begun]) -> None:
        try:
            lost = self._engine.writer.run_blocking(renewal(due))
        except EngineUnavailable:
            self._held.unanswered()
            return
        self._held.renewed(due, lost)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._engine.tell_renewed, due, lost)
