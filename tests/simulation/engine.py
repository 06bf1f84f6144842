"""The real engine with a choice point before and after every verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from typing import TypeVar

from attention_queue.contract import Delivery, Resource, State, WorkMessage
from attention_queue.contract.operation import Operation, OperationFigures
from attention_queue.engines.sqlite.database import MEMORY
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.ports import (
    Begun,
    Change,
    Declined,
    Ending,
    Group,
    Left,
    Put,
    Settled,
    Swept,
    Want,
)
from simulation.database import WatchedWriter
from simulation.process import Process

T = TypeVar("T")


class SimulatedEngine(SqliteEngine):
    """One process's engine on the database that all processes share.

    Before a verb the process may die, be stopped, or get no answer though nothing happened; after
    it, the same, though it did happen.
    """

    def __init__(self, process: Process, writer: WatchedWriter) -> None:
        super().__init__(MEMORY, process.clock, process.bus, writer=writer)
        self.process = process
        self.asleep = False  # in ``wait``, with nothing on its way to wake it
        writer.listeners.remove(self._stir)
        self._listener = lambda: process.wake(self._stir)
        writer.listeners.append(self._listener)
        writer.others.append((process, self._listener))

    async def _verb(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        await self.process.point(f"before {name}", "kill", "pause", "refuse", "clock")
        result = await call()
        await self.process.point(f"after {name}", "kill", "pause", "lose_reply", "clock")
        return result

    async def between(self) -> None:
        """Between two transactions of what should have been one."""
        await self.process.point("between", "kill", "pause")

    async def open_group(self, group: Group) -> None:
        self.process.check()
        await super().open_group(group)

    async def put(self, group: str, messages: Sequence[WorkMessage]) -> Put:
        return await self._verb("put", lambda: super(SimulatedEngine, self).put(group, messages))

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        return await self._verb("begin", lambda: super(SimulatedEngine, self).begin(want))

    async def wait(self, groups: Collection[str], at_most: float) -> None:
        await self.process.point("before wait", "kill", "pause")
        self.asleep = True
        try:
            await super().wait(groups, at_most)
        finally:
            self.asleep = False
        self.process.check()

    async def waiting(self, groups: Collection[str]) -> Sequence[tuple[Resource, float]]:
        self.process.check()
        return await super().waiting(groups)

    async def settle(
        self, begun: Begun, outcomes: Sequence[Settled], *, take: int = 0, invite: bool = False
    ) -> Sequence[Delivery]:
        return await self._verb(
            "settle",
            lambda: super(SimulatedEngine, self).settle(begun, outcomes, take=take, invite=invite),
        )

    async def renew(self, begun: Collection[Begun]) -> Collection[Begun]:
        return await self._verb("renew", lambda: super(SimulatedEngine, self).renew(begun))

    async def finish(
        self, begun: Begun, outcomes: Sequence[Settled], ending: Ending, handled: int = 0
    ) -> Left:
        return await self._verb(
            "finish",
            lambda: super(SimulatedEngine, self).finish(begun, outcomes, ending, handled),
        )

    async def reload(self, begun: Begun) -> State:
        return await self._verb("reload", lambda: super(SimulatedEngine, self).reload(begun))

    async def change(self, change: Change, *, actor: str) -> None:
        await self._verb("change", lambda: super(SimulatedEngine, self).change(change, actor=actor))

    async def lead(self, task: str, owner: str, lease: timedelta) -> bool:
        return await self._verb(
            "lead", lambda: super(SimulatedEngine, self).lead(task, owner, lease)
        )

    async def sweep(self, after: int, limit: int) -> Swept:
        return await self._verb("sweep", lambda: super(SimulatedEngine, self).sweep(after, limit))

    async def start(self, operation: Operation, *, actor: str) -> int:
        return await self._verb(
            "start", lambda: super(SimulatedEngine, self).start(operation, actor=actor)
        )

    async def step(self, number: int | None, limit: int) -> OperationFigures | None:
        """Two at a time, so that there are steps to die between."""
        if number is None and await self._operation_due() is None:
            return None
        return await self._verb("step", lambda: super(SimulatedEngine, self).step(number, 2))

    async def cancel(self, number: int, *, actor: str) -> OperationFigures:
        return await self._verb(
            "cancel", lambda: super(SimulatedEngine, self).cancel(number, actor=actor)
        )

    async def close(self) -> None:
        if self._listener in self.writer.listeners:
            self.writer.listeners.remove(self._listener)
            self.writer.others.remove((self.process, self._listener))
