"""Sees from outside what handlers do, whatever happens to their processes.

A handler holds a connection while it runs; the kernel closes it on SIGKILL. So the witness knows
the true concurrency and the true order of effects without asking any store of ours.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect that the outside world saw."""

    message: str
    resource: str
    fence: int


@dataclass(slots=True)
class Witness:
    """Listens on a Unix socket; ``effects`` are in the order in which they were made."""

    path: Path
    many: set[str] = field(default_factory=set)  # resources with more than one consumer
    effects: list[Effect] = field(default_factory=list)
    refused: list[Effect] = field(default_factory=list)  # by a fence lower than one seen before
    entered: list[str] = field(default_factory=list)
    most_at_once: Counter[str] = field(default_factory=Counter)
    _now: Counter[str] = field(default_factory=Counter)
    _fences: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._hear, self.path)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def until_effects(self, messages: Collection[str], seconds: float = 40) -> None:
        """Wait until each of the messages has had its effect."""
        wanted = set(messages)
        await self._until(lambda: wanted <= {e.message for e in self.effects}, seconds, wanted)

    async def until_entered(self, count: int, seconds: float = 20) -> None:
        await self._until(lambda: len(self.entered) >= count, seconds, {f"{count} entries"})

    async def _until(self, done: Callable[[], bool], seconds: float, wanted: set[str]) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not done():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            missing = sorted(wanted - {e.message for e in self.effects})
            raise AssertionError(f"not seen within {seconds} s: {missing[:20]}") from None

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().split()
        if not line:
            writer.close()
            return
        effect = Effect(line[1], line[0], int(line[2]))
        self._now[effect.resource] += 1
        self.most_at_once[effect.resource] = max(
            self.most_at_once[effect.resource], self._now[effect.resource]
        )
        self.entered.append(effect.message)
        self._changed.set()
        with suppress(ConnectionError):
            writer.write(b"ok\n")
            if await reader.readline():
                self._record(effect)
                writer.write(b"ok\n")
                await reader.read()
        self._now[effect.resource] -= 1
        writer.close()
        self._changed.set()

    def _record(self, effect: Effect) -> None:
        """What a store with a fence does: of two holders in turn the one before is refused."""
        if effect.resource not in self.many and effect.fence < self._fences[effect.resource]:
            self.refused.append(effect)
            return
        self._fences[effect.resource] = effect.fence
        self.effects.append(effect)

    def order_of(self, resource: str) -> list[str]:
        """The resource's messages by their first effect."""
        return list(dict.fromkeys(e.message for e in self.effects if e.resource == resource))
