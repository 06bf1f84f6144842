"""What can be read of a running system, by every face: see ``Insight``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
from attention_queue.contract.resource import Resource
from attention_queue.contract.views import (
    BusyRow,
    GroupBy,
    HeldToken,
    Line,
    PlanUse,
    Scanned,
    Waiting,
)


class Insight(Protocol):
    """Shows what is going on. Changes nothing, and never stands in the way of a writer."""

    async def groups(self) -> Sequence[str]: ...

    async def overview(self) -> Overview:
        """Costs what the resources with work cost, whatever the number of idle ones."""

    async def find(self, text: str) -> Sequence[tuple[str, Resource]]:
        """The groups and resources that ``tenant/id``, or a bare id, may mean; twenty at most."""

    async def resource(self, group: str, resource: Resource) -> ResourceFigures | None: ...

    async def resources(
        self, group: str, wanted: ResourceFilter, *, after: Resource | None, limit: int
    ) -> Sequence[ResourceRow]:
        """A page of a list in a steady order, from behind ``after``."""

    async def unattended(self) -> int:
        """How many resources have work, and neither a request nor a token. Must be 0."""

    async def census(self) -> Census:
        """Count by group and plan: costs as much as ``overview`` and a probe per resource."""

    async def busiest(self, group: str, limit: int) -> Sequence[BusyRow]:
        """The resources with the most messages waiting, most first. Over those with work alone."""

    async def peek(self, group: str, resource: Resource, limit: int) -> Sequence[Waiting]:
        """Its unfinished messages, next first. Nothing is taken."""

    async def line(self, group: str, first: int) -> Line:
        """The requests as they stand: the first of each lane, and of those that are parked."""

    async def tokens(self, group: str) -> Sequence[HeldToken]:
        """All tokens that are out, those whose holder is taken to be dead included."""

    async def plans(self, group: str) -> Sequence[PlanUse]: ...

    async def dead_letters(
        self, group: str, of: Selection, *, before: int | None, limit: int
    ) -> Sequence[DeadLetter]:
        """Newest first, from below the number ``before``. Whole: payload, trace and history too."""

    async def dead_letter(self, number: int) -> tuple[str, DeadLetter] | None:
        """One, and its group."""

    async def dead_groups(self, group: str, of: Selection, by: GroupBy) -> Sequence[DeadGroup]:
        """Largest first, a hundred at most. Over the dead letters of the group."""

    async def extent(self, group: str, kind: Kind, of: Selection) -> int:
        """How many messages or dead letters such an operation would take if it began now."""

    async def operations(
        self, group: str, *, before: int | None, limit: int
    ) -> Sequence[OperationFigures]:
        """Newest first, from below the number ``before``."""

    async def operation(self, number: int) -> OperationFigures | None: ...

    async def audit(
        self, group: str, resource: Resource | None, *, before: int | None, limit: int
    ) -> Sequence[AuditEntry]:
        """Who changed what, newest first, from below the number ``before``."""

    async def scan(self, after: int, limit: int) -> Scanned:
        """One page of what ``Engine.sweep`` would repair. Changes nothing."""

    async def close(self) -> None: ...
