"""``ports.Insight`` on a read-only connection of its own: one read transaction for each look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from attention_queue.clock import Clock
from attention_queue.contract import Resource
from attention_queue.contract.figures import (
    Census,
    Overview,
    ResourceFigures,
    ResourceFilter,
    ResourceRow,
)
from attention_queue.contract.operation import (
    AuditEntry,
    DeadGroup,
    DeadLetter,
    Kind,
    OperationFigures,
    Selection,
)
from attention_queue.contract.views import (
    BusyRow,
    GroupBy,
    HeldToken,
    Line,
    PlanUse,
    Scanned,
    Waiting,
)
from attention_queue.engines.sqlite import figures, letters, lines
from attention_queue.engines.sqlite.census import census
from attention_queue.engines.sqlite.database import LATEST, mapped, reader, schema_version
from attention_queue.engines.sqlite.figures import Look
from attention_queue.errors import NewerDatabase, SetupError

T = TypeVar("T")


class SqliteInsight:
    """See ``ports.Insight``. Reads run in a thread, one after the other."""

    def __init__(self, path: str, clock: Clock) -> None:
        """Open a file that an engine has made; it is never made or migrated here.

        Raises:
            SetupError: The file is not there, or its schema is of another version.
            ForeignDatabase: It is somebody else's.
        """
        self._path, self._clock = path, clock
        _check_schema(path)
        self._db = reader(path)
        self._turn = asyncio.Lock()

    async def groups(self) -> Sequence[str]:
        return await self._look(lambda look: [name for (name,) in look.all("group_names")])

    async def overview(self) -> Overview:
        return await self._look(figures.overview)

    async def find(self, text: str) -> Sequence[tuple[str, Resource]]:
        return await self._look(lambda look: figures.find(look, text))

    async def resource(self, group: str, resource: Resource) -> ResourceFigures | None:
        return await self._look(lambda look: figures.resource(look, group, resource))

    async def resources(
        self, group: str, wanted: ResourceFilter, *, after: Resource | None, limit: int
    ) -> Sequence[ResourceRow]:
        return await self._look(lambda look: figures.page(look, group, wanted, after, limit))

    async def unattended(self) -> int:
        return await self._look(figures.unattended)

    async def census(self) -> Census:
        return await self._look(lambda look: census(look.counted, look.now_ms))

    async def busiest(self, group: str, limit: int) -> Sequence[BusyRow]:
        return await self._look(lambda look: lines.busiest(look, group, limit))

    async def peek(self, group: str, resource: Resource, limit: int) -> Sequence[Waiting]:
        return await self._look(lambda look: lines.peek(look, group, resource, limit))

    async def line(self, group: str, first: int) -> Line:
        return await self._look(lambda look: lines.line(look, group, first))

    async def tokens(self, group: str) -> Sequence[HeldToken]:
        return await self._look(lambda look: lines.tokens(look, group))

    async def plans(self, group: str) -> Sequence[PlanUse]:
        return await self._look(lambda look: lines.plans(look, group))

    async def dead_letters(
        self, group: str, of: Selection, *, before: int | None, limit: int
    ) -> Sequence[DeadLetter]:
        return await self._look(lambda look: letters.dead_letters(look, group, of, before, limit))

    async def dead_letter(self, number: int) -> tuple[str, DeadLetter] | None:
        return await self._look(lambda look: letters.dead_letter(look, number))

    async def dead_groups(self, group: str, of: Selection, by: GroupBy) -> Sequence[DeadGroup]:
        return await self._look(lambda look: letters.dead_groups(look, group, of, by))

    async def extent(self, group: str, kind: Kind, of: Selection) -> int:
        return await self._look(lambda look: letters.extent(look, group, kind, of))

    async def operations(
        self, group: str, *, before: int | None, limit: int
    ) -> Sequence[OperationFigures]:
        return await self._look(lambda look: letters.started(look, group, before, limit))

    async def operation(self, number: int) -> OperationFigures | None:
        return await self._look(lambda look: letters.operation(look, number))

    async def audit(
        self, group: str, resource: Resource | None, *, before: int | None, limit: int
    ) -> Sequence[AuditEntry]:
        return await self._look(lambda look: letters.audit(look, group, resource, before, limit))

    async def scan(self, after: int, limit: int) -> Scanned:
        return await self._look(lambda look: letters.scan(look, after, limit))

    async def close(self) -> None:
        async with self._turn:
            self._db.close()

    async def _look(self, read: Callable[[Look], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(self._read, read)

    def _read(self, read: Callable[[Look], T]) -> T:
        with mapped(self._path):
            self._db.execute("BEGIN")
            try:
                return read(Look(self._db, self._clock.now_ms()))
            finally:
                self._db.execute("COMMIT")


def _check_schema(path: str) -> None:
    version = schema_version(path)
    if version == 0:
        raise SetupError(
            f"there is no database {path} yet: a worker or `attn publish` makes it; "
            "or name another one with --url sqlite:///path.db"
        )
    if version > LATEST:
        raise NewerDatabase(path, version, LATEST)
    if version < LATEST:
        raise SetupError(
            f"{path} has schema {version} and this version reads {LATEST}: run attn db migrate"
        )
