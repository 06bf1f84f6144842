"""``ports.Engine`` on one SQLite file: each verb is one operation of a group commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import timedelta

from attention_queue.clock import MS, Clock
from attention_queue.contract import Delivery, Resource, State, WorkMessage
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    Event,
    OperationStarted,
    Published,
    TokensRenewed,
    TokenWasLost,
)
from attention_queue.contract.operation import Operation, OperationFigures
from attention_queue.engines.sqlite import operations, steps, sweep
from attention_queue.engines.sqlite.changes import Changing
from attention_queue.engines.sqlite.claim import Claim, Lanes
from attention_queue.engines.sqlite.database import MEMORY, connect, mapped, reader
from attention_queue.engines.sqlite.directory import Directory
from attention_queue.engines.sqlite.finish import Finishing
from attention_queue.engines.sqlite.keeper import LoopKeeper, ThreadKeeper, renewal
from attention_queue.engines.sqlite.publish import Publishing
from attention_queue.engines.sqlite.settle import Settling, handle_of
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.engines.sqlite.turn import Turn
from attention_queue.engines.sqlite.writer import Group as Commits
from attention_queue.engines.sqlite.writer import InlineWriter, ThreadWriter, Writer
from attention_queue.ports import (
    Begun,
    Capabilities,
    Change,
    Declined,
    Ending,
    Group,
    Keeper,
    Left,
    Put,
    Settled,
    Swept,
    Want,
)


def open_writer(path: str, clock: Clock) -> Writer:
    """A writer of the file, made if need be; several engines of one process may share it."""
    db = connect(path)
    if path == MEMORY:
        return InlineWriter(Commits(db, path, clock, None))
    return ThreadWriter(Commits(db, path, clock, Turn(path)))


class SqliteEngine:
    """See ``ports.Engine``; this file adds only how SQLite does it."""

    name = "sqlite"
    capabilities = Capabilities(
        dedup_on_publish=True,
        joins_caller_transaction=False,
        message_delay_exact=True,
        peek=True,
        place_in_line=True,
        strict_priority=True,
    )

    def __init__(self, path: str, clock: Clock, bus: Bus, writer: Writer | None = None) -> None:
        """Open the file; see ``database.connect`` for what can be wrong with it."""
        self.path, self.clock, self.bus = path, clock, bus
        self.writer = writer or open_writer(path, clock)
        self._owns_writer = writer is None
        self.directory = Directory()
        self._lanes = Lanes()
        self._stirred = 0  # commits that may have made work ready
        self._seen: dict[tuple[str, ...], int] = {}  # of them, before the last begin of the groups
        self._next_due_ms: dict[tuple[str, ...], int | None] = {}
        self._rests: dict[tuple[str, ...], bool] = {}  # the last begin has found nothing
        self._waiters: set[Callable[[], None]] = set()
        self._reader = None if path == MEMORY else reader(path)
        self.writer.listeners.append(self._stir)

    async def open_group(self, group: Group) -> None:
        await self.writer.run(lambda tx: self.directory.open_group(tx, group))

    async def put(self, group: str, messages: Sequence[WorkMessage]) -> Put:
        done = await self.writer.run(Publishing(self.directory, group, messages), wakes=True)
        self._emit_put(group, done)
        return done

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        self._seen[want.groups] = self._stirred
        if self._rests.get(want.groups) and not self._is_due(want.groups):
            return []
        version = self.writer.group.directory
        started = self.clock.monotonic()
        claim = await self.writer.run(Claim(self.directory, self._lanes, want, version, started))
        self._next_due_ms[want.groups] = claim.next_due_ms
        self._rests[want.groups] = self._reader is not None and not claim.found
        self._emit(claim.events)
        return claim.found

    async def wait(self, groups: Collection[str], at_most: float) -> None:
        loop = asyncio.get_running_loop()
        stirred = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(stirred.set)

        self._waiters.add(wake)
        self.writer.watch(True)
        next_due_ms = self._next_due_ms.get(tuple(groups))
        if next_due_ms is not None:
            until_due = max(next_due_ms - self.clock.now_ms(), 0) / 1000
            at_most = min(at_most, until_due)
        alarm = loop.create_task(self.clock.sleep(at_most))
        alarm.add_done_callback(lambda _: stirred.set())
        try:
            # Else it came between the look and the wait.
            if self._stirred == self._seen.get(tuple(groups), 0):
                await stirred.wait()
        finally:
            alarm.cancel()
            self._waiters.discard(wake)
            self.writer.watch(False)

    async def waiting(self, groups: Collection[str]) -> Sequence[tuple[Resource, float]]:
        if self._reader is None:
            return await self.writer.run(lambda tx: self._longest(tx, groups))
        return self._longest(Transaction(self._reader, self.clock.now_ms()), groups)

    async def settle(
        self, begun: Begun, outcomes: Sequence[Settled], *, take: int = 0, invite: bool = False
    ) -> Sequence[Delivery]:
        settling = Settling(begun, outcomes, take=take, invite=invite)
        await self.writer.run(settling, wakes=invite)
        handle = handle_of(begun)
        handle.lent = settling.lent
        handle.succeeded = handle.succeeded or settling.any_done
        limited = settling.limited_ms - self.clock.now_ms() if settling.limited_ms else None
        begun.limited = None if limited is None else max(limited, 1) * MS
        self._emit(settling.events)
        return settling.taken

    async def renew(self, begun: Collection[Begun]) -> Collection[Begun]:
        lost = await self.writer.run(renewal(begun))
        self.tell_renewed(begun, lost)
        return lost

    def tell_renewed(self, begun: Collection[Begun], lost: Collection[Begun]) -> None:
        self.bus.emit(TokensRenewed(len(begun) - len(lost)))
        for each in lost:
            if not handle_of(each).released:
                self.bus.emit(TokenWasLost(each.group, each.resource, each.token.fence))

    async def finish(
        self, begun: Begun, outcomes: Sequence[Settled], ending: Ending, handled: int = 0
    ) -> Left:
        duration = self.clock.monotonic() - handle_of(begun).started
        finishing = Finishing(Settling(begun, outcomes), ending, duration, handled)
        await self.writer.run(finishing, wakes=True)
        self._emit(finishing.events)
        return finishing.left

    def changed(self, begun: Begun) -> bool:
        return handle_of(begun).directory != self.writer.group.directory

    async def reload(self, begun: Begun) -> State:
        handle = handle_of(begun)
        version = self.writer.group.directory
        old = handle.record
        record = await self.writer.run(
            lambda tx: self.directory.record(tx, old.rid, old.gid, old.group)
        )
        handle.record, handle.directory = record, version
        begun.policy, begun.plan, begun.routing = record.policy, record.plan, record.routing
        begun.active, begun.stop_now = record.state is State.ACTIVE, record.stop_now
        return record.state

    async def change(self, change: Change, *, actor: str) -> None:
        events = await self.writer.run(Changing(self.directory, change, actor), wakes=True)
        self._emit(events)

    async def lead(self, task: str, owner: str, lease: timedelta) -> bool:
        return await self.writer.run(lambda tx: sweep.lead(tx, task, owner, lease // MS))

    async def sweep(self, after: int, limit: int) -> Swept:
        return await self.writer.run(lambda tx: sweep.sweep(tx, after, limit), wakes=True)

    async def start(self, operation: Operation, *, actor: str) -> int:
        number = await self.writer.run(
            lambda tx: operations.start(tx, self.directory, operation, actor)
        )
        kind, reason = operation.kind.value, operation.reason
        self.bus.emit(OperationStarted(operation.group, number, kind, actor, reason))
        self._emit(operations.retirement(operation, State.RETIRING, actor, reason))
        return number

    async def step(self, number: int | None, limit: int) -> OperationFigures | None:
        if number is not None:
            return await self._step(number, limit)
        number = await self._operation_due()
        if number is None:
            return None
        try:
            return await self._step(number, limit)
        except Exception:
            due = number
            await self.writer.run(lambda tx: operations.put_off(tx, due))
            raise

    async def cancel(self, number: int, *, actor: str) -> OperationFigures:
        figures, events = await self.writer.run(lambda tx: operations.cancel(tx, number, actor))
        self._emit(events)
        return figures

    def keeper(self) -> Keeper:
        if self.path == MEMORY:
            return LoopKeeper(self)
        return ThreadKeeper(self)

    async def close(self) -> None:
        if self._stir in self.writer.listeners:
            self.writer.listeners.remove(self._stir)
        if self._reader is not None:
            self._reader.close()
        if self._owns_writer:
            await self.writer.close()

    def _is_due(self, groups: tuple[str, ...]) -> bool:
        """A look without a transaction, for a worker at rest that another process has woken."""
        assert self._reader is not None
        tx = Transaction(self._reader, self.clock.now_ms())
        with mapped(self.path):
            timer = tx.first("next_timer")
            next_due_ms = timer[0] if timer else None
            if next_due_ms is not None and next_due_ms <= tx.now_ms:
                return True
            for group in filter(None, [tx.first("group", name) for name in groups]):
                if any(tx.first("ready", group[0], lane, 1) for lane in (0, 1, 2)):
                    return True
        self._next_due_ms[groups] = next_due_ms
        return False

    async def _step(self, number: int, limit: int) -> OperationFigures:
        stepped = await self.writer.run(lambda tx: steps.step(tx, number, limit), wakes=True)
        self._emit(stepped.events)
        return stepped.figures

    async def _operation_due(self) -> int | None:
        """A look that wakes nobody: mostly it is no operation's turn."""
        if self._reader is None:
            return await self.writer.run(operations.due)
        with mapped(self.path):
            return operations.due(Transaction(self._reader, self.clock.now_ms()))

    def _longest(
        self, tx: Transaction, groups: Collection[str]
    ) -> Sequence[tuple[Resource, float]]:
        rows = []
        for group in filter(None, [tx.first("group", name) for name in groups]):
            for lane in (0, 1, 2):
                rows += tx.all("longest_ready", group[0], lane)
            rows += tx.all("overdue", tx.now_ms, group[0])
        longest = sorted(rows, key=lambda row: row[1])[:2]
        return [
            (Resource(*name), max(tx.now_ms - since_ms, 0) / 1000)
            for rid, since_ms in longest
            if (name := tx.first("name_of", rid))
        ]

    def _stir(self) -> None:
        """After a commit, on any thread. First the count, then the waiters: see ``wait``."""
        self._stirred += 1
        for wake in tuple(self._waiters):
            wake()

    def _emit_put(self, group: str, done: Put) -> None:
        if self.bus.wants(Published):
            self.bus.emit(
                Published(group, done.stored, done.duplicates, done.requests, done.coalesced)
            )

    def _emit(self, events: Sequence[Event]) -> None:
        for event in events:
            self.bus.emit(event)
