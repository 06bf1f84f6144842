"""The slots of one worker: which cycles run in them, and how many more may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from attention_queue.contract import CycleEnd
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import HandlerStuck, LoopFailed
from attention_queue.core.cycle import Cycle
from attention_queue.ports import Keeper


class Slots:
    """Runs cycles, at most ``count`` at once. ``reserve`` of them are for first consumers only."""

    def __init__(self, count: int, bus: Bus) -> None:
        self.count = count
        self.reserve = min(max(count // 8, 1), count - 1)
        self.busy = asyncio.Event()  # something runs, so there is something to watch
        self.stirred = asyncio.Event()  # a slot is free again, or the worker drains
        self._bus = bus
        self._running: dict[Cycle, asyncio.Task[CycleEnd]] = {}
        self._let_go: set[asyncio.Task[CycleEnd]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Cycle]:
        return iter(list(self._running))

    @property
    def free(self) -> int:
        return self.count - len(self._running)

    @property
    def extra(self) -> int:
        """Of the free ones, those for a second or later consumer of a resource."""
        return max(self.free - self.reserve, 0)

    @property
    def stuck(self) -> int:
        """Handlers that were let go and still run."""
        return len(self._let_go)

    def run(self, cycle: Cycle, keeper: Keeper) -> None:
        keeper.keep(cycle.begun)
        # A task of no group, because a handler that cannot be stopped would hold up its end.
        task = asyncio.get_running_loop().create_task(cycle.run())
        self._running[cycle] = task
        task.add_done_callback(lambda task: self._ended(cycle, task, keeper))
        self.busy.set()

    def let_go(self, cycle: Cycle, keeper: Keeper) -> None:
        """Its handler ignores being cancelled: its lease ends by itself and its slot is free."""
        keeper.drop(cycle.begun)
        self._let_go.add(self._running.pop(cycle))
        begun, call = cycle.begun, cycle.call
        if call is not None:
            self._bus.emit(HandlerStuck(begun.group, begun.resource, call.type))
        self.stirred.set()

    async def until_stirred(self) -> None:
        self.stirred.clear()
        await self.stirred.wait()

    async def cancel(self) -> int:
        """Cancel what runs and give it a second to let go; how many it were."""
        tasks = list(self._running.values())
        for cycle in self._running:
            cycle.turn.leave = True
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        return len(tasks)

    def _ended(self, cycle: Cycle, task: asyncio.Task[CycleEnd], keeper: Keeper) -> None:
        keeper.drop(cycle.begun)
        self._running.pop(cycle, None)
        self._let_go.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bus.emit(LoopFailed("cycle", f"{type(error).__name__}: {error}"))
        self.stirred.set()
