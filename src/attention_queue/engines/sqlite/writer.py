"""Group commit: whatever waits to be written goes into one transaction.

The code is the same for a file and for memory; only who runs it differs: a thread of its own, or
the caller on its own turn. An operation is a function of the transaction. If one of a group fails,
the group is rolled back and each is run again alone, so that one bad apple costs the others a
little time and nothing else.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from itertools import groupby
from typing import Any, Protocol, TypeVar

import apsw

from attention_queue.clock import Clock
from attention_queue.engines.sqlite.database import mapped
from attention_queue.engines.sqlite.transaction import STATEMENTS, Transaction
from attention_queue.engines.sqlite.turn import Turn
from attention_queue.engines.sqlite.waiting import Waiting, answer
from attention_queue.errors import EngineUnavailable

T = TypeVar("T")
Operation = Callable[[Transaction], T]
GROUP = 512  # operations in one transaction, at most
POLL = 0.004  # seconds between two looks for another process's commit, while somebody waits
PATIENCE = 30.0  # seconds after which a caller is told "unknown"


class Writer(Protocol):
    """Runs operations in transactions, and tells when a request may have become ready."""

    group: Group
    listeners: list[Callable[[], None]]  # called on any thread, and must be quick

    async def run(self, operation: Operation[T], *, wakes: bool = False) -> T:
        """The operation's result, once it is on the disk. ``wakes``: it may make work ready."""

    def run_blocking(self, operation: Operation[T], *, wakes: bool = False) -> T: ...
    def watch(self, watching: bool) -> None: ...
    async def close(self) -> None: ...


class Group:
    """One database connection and the way a group of operations goes through it."""

    def __init__(self, db: apsw.Connection, path: str, clock: Clock, turn: Turn | None) -> None:
        self._db, self._path, self._clock, self._turn = db, path, clock, turn
        with mapped(path):
            self.directory = self._read_directory()
            self._seen = self._version()

    def execute(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        """The result of each, or the exception it raised. All that succeeded is on the disk."""
        try:
            return self._transaction(operations)
        except Exception as exc:
            if len(operations) == 1:
                return [exc]
        return [self.execute([operation])[0] for operation in operations]

    def others_committed(self) -> bool:
        """Whether another connection has committed since the last call; True if unknown."""
        try:
            version = self._version()
            if version == self._seen:
                return False
            self.directory = self._read_directory()
        except apsw.Error:  # whoever asks next gets the error; the thread must outlive it
            return True
        self._seen = version
        return True

    def close(self) -> None:
        self._db.close()
        if self._turn:
            self._turn.close()

    def _transaction(self, operations: Sequence[Operation[Any]]) -> list[Any]:
        with self._turn.taken() if self._turn else nullcontext(), mapped(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                tx = Transaction(self._db, self._clock.now_ms())
                results = _run(tx, operations)
                tx.close()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        if tx.directory_changed:
            self.directory = self._read_directory()
        return results

    def _version(self) -> int:
        return int(self._db.pragma("data_version"))

    def _read_directory(self) -> int:
        row = self._db.execute(STATEMENTS["directory_version"]).fetchone()
        assert row is not None
        return int(row[0])


def _run(tx: Transaction, operations: Sequence[Operation[Any]]) -> list[Any]:
    """The result of each, in order; neighbours of a kind that can go together do."""
    results: list[Any] = []
    for kind, neighbours in groupby(operations, key=type):
        run = list(neighbours)
        together = getattr(kind, "together", None)
        results += together(tx, run) if together else [operation(tx) for operation in run]
    return results


class InlineWriter:
    """Runs each operation at once, on the caller's turn: for memory and the simulator."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.listeners: list[Callable[[], None]] = []

    async def run(self, operation: Operation[T], *, wakes: bool = False) -> T:
        return self.run_blocking(operation, wakes=wakes)

    def run_blocking(self, operation: Operation[T], *, wakes: bool = False) -> T:
        (result,) = self.group.execute([operation])
        if isinstance(result, Exception):
            raise result
        if wakes:
            for listener in tuple(self.listeners):
                listener()
        return result  # type: ignore[no-any-return]

    def watch(self, watching: bool) -> None:
        """Nobody else can write to memory."""

    async def close(self) -> None:
        self.group.close()


class ThreadWriter:
    """One thread that commits whatever has queued up while it committed the last group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.listeners: list[Callable[[], None]] = []
        self._queue: queue.SimpleQueue[list[Waiting] | None] = queue.SimpleQueue()
        self._turns: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}
        self._pending: dict[asyncio.AbstractEventLoop, dict[Waiting, None]] = {}
        self._watchers = 0
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name="attn-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Operation[T], *, wakes: bool = False) -> T:
        """Raises ``EngineUnavailable`` after ``PATIENCE``: the operation may still happen."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(operation, loop, wakes)
        self._collect(loop, waiting)
        pending = self._pending.get(loop)
        if pending is None:
            pending = self._pending[loop] = {}
            loop.call_later(PATIENCE / 4, self._check_patience, loop)
        pending[waiting] = None
        assert waiting.future is not None
        try:
            return await waiting.future  # type: ignore[no-any-return]
        finally:
            pending.pop(waiting, None)

    def run_blocking(self, operation: Operation[T], *, wakes: bool = False) -> T:
        """From any thread but the writer's own; waits at most ``PATIENCE``."""
        waiting = Waiting(operation, None, wakes)
        self._submit([waiting])
        assert waiting.done is not None
        if not waiting.done.wait(PATIENCE):
            raise EngineUnavailable(_NO_ANSWER)
        if isinstance(waiting.result, Exception):
            raise waiting.result
        return waiting.result  # type: ignore[no-any-return]

    def watch(self, watching: bool) -> None:
        """One more, or one less, that wants to hear of other processes' commits.

        While there is any, a look at the file every ``POLL`` costs some microseconds.
        """
        with self._lock:  # engines on several loops may share one writer
            self._watchers += 1 if watching else -1
            if watching and self._watchers == 1:
                self._queue.put([])

    async def close(self) -> None:
        """After all that was asked for on this loop; what other threads ask for is refused."""
        loop = asyncio.get_running_loop()
        if loop in self._turns:
            self._hand_over(loop)
        with self._lock:
            first, self._closed = not self._closed, True
            if first:
                self._queue.put(None)
        if first:
            await asyncio.to_thread(self._thread.join)

    def _collect(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        """Hand all that one turn of the loop asks for to the thread as one, when the turn is over.

        One by one, the thread would be off with the first few and leave the rest to another commit.
        """
        if self._closed:
            raise EngineUnavailable(_CLOSED)
        turn = self._turns.get(loop)
        if turn is None:
            turn = self._turns[loop] = []
            loop.call_soon(self._hand_over, loop)
        turn.append(waiting)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._turns.pop(loop, [])
        try:
            for first in range(0, len(turn), GROUP):
                self._submit(turn[first : first + GROUP])
        except EngineUnavailable as exc:
            for waiting in turn:
                waiting.result = exc
            answer(turn)

    def _submit(self, turn: list[Waiting]) -> None:
        with self._lock:  # nothing may come to stand behind the end
            if self._closed or not self._thread.is_alive():
                raise EngineUnavailable(_CLOSED)
            self._queue.put(turn)

    def _check_patience(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer per loop, not one per operation; it ends when nothing is pending."""
        pending = self._pending.get(loop)
        if not pending:
            self._pending.pop(loop, None)
            return
        for waiting in list(pending):
            if loop.time() - waiting.since < PATIENCE:
                break
            if waiting.future is not None and not waiting.future.done():
                waiting.future.set_exception(EngineUnavailable(_NO_ANSWER))
        loop.call_later(PATIENCE / 4, self._check_patience, loop)

    def _loop(self) -> None:
        try:
            while (group := self._next_group()) is not None:
                if group:
                    self._commit(group)
                elif self.group.others_committed():
                    self._stir()
        finally:
            self.group.close()

    def _next_group(self) -> list[Waiting] | None:
        """What waits now; empty when it is time to look for others; None at the end."""
        try:
            first = self._queue.get(timeout=POLL if self._watchers else None)
        except queue.Empty:
            return []
        group: list[Waiting] = []
        while first is not None:
            group += first
            if len(group) >= GROUP or self._queue.empty():
                return group
            first = self._queue.get()
        if group:  # finish what was asked before the end
            self._queue.put(None)
            return group
        return None

    def _commit(self, group: list[Waiting]) -> None:
        """The listeners hear of it before the callers: who then begins has not missed it."""
        results = self.group.execute([waiting.operation for waiting in group])
        if self.group.others_committed() or any(waiting.wakes for waiting in group):
            self._stir()
        by_loop: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}
        for waiting, result in zip(group, results, strict=True):
            waiting.result = result
            if waiting.loop is not None:
                by_loop.setdefault(waiting.loop, []).append(waiting)
            elif waiting.done is not None:
                waiting.done.set()
        for loop, theirs in by_loop.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(answer, theirs)

    def _stir(self) -> None:
        for listener in tuple(self.listeners):
            listener()


_CLOSED = "the engine is closed, or was opened before this process was forked: open it here"
_NO_ANSWER = f"the database did not answer within {PATIENCE:.0f} s: another process may be stopped"
