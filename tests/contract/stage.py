"""What a test of an engine arranges with and looks at: one store, one clock, any connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from attention_queue.clock import ManualClock
from attention_queue.contract import (
    DONE,
    CycleEnd,
    Delivery,
    Plan,
    Policy,
    Priority,
    Resource,
    ResourceState,
    State,
    WorkMessage,
)
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import Event
from attention_queue.engines.sqlite import SqliteEngine
from attention_queue.ports import (
    Begun,
    Declined,
    Ending,
    Engine,
    Group,
    Left,
    Put,
    Register,
    SetPlan,
    SetState,
    Settled,
    Want,
)

SHOPS = "shops"
LEASE = timedelta(seconds=30)
MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)


def shop(id: str) -> Resource:
    return Resource("acme", id)


def message(
    resource: Resource,
    id: str,
    *,
    not_before: datetime | None = None,
    priority: Priority | None = None,
    payload: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
) -> WorkMessage:
    return WorkMessage(
        id=id,
        resource=resource,
        type="order",
        payload=payload,
        headers=headers or {},
        not_before=not_before,
        priority=priority,
    )


def messages(resource: Resource, count: int, start: int = 1) -> list[WorkMessage]:
    return [message(resource, f"{resource.id}-{n}") for n in range(start, start + count)]


def ids(loan: Iterable[Delivery]) -> list[str]:
    return [delivery.message.id for delivery in loan]


def done(loan: Iterable[Delivery]) -> list[Settled]:
    return [(delivery, DONE) for delivery in loan]


class Stage:
    """One store as an engine keeps it. ``engine`` is the first connection to it."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.bus = clock, Bus()
        self.events: list[Event] = []
        self.engines: list[Engine] = []
        for kind in Event.__args__:
            self.bus.on(kind, self.events.append)

    def connect(self) -> Engine:
        """One more connection to the same store; closed with the stage."""
        raise NotImplementedError

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What stands in the store, or a change to it behind the engine's back."""
        raise NotImplementedError

    @property
    def engine(self) -> Engine:
        return self.engines[0]

    async def open(self, name: str = SHOPS, **settings: Any) -> Group:
        """A group whose plan is named ``plain``; what is no field of a group is of its policy."""
        of_group = {n: settings.pop(n) for n in list(settings) if n in Group.__slots__}
        policy = Policy(**{"lease": LEASE, **settings})
        plans = of_group.pop("plans", (Plan("plain", policy),))
        group = Group(name=name, plans=plans, default_plan=plans[0].name, **of_group)
        await self.engine.open_group(group)
        return group

    async def put(self, *work: WorkMessage, group: str = SHOPS) -> Put:
        return await self.engine.put(group, work)

    async def look(
        self,
        *,
        limit: int = 8,
        extra: int | None = None,
        take: int = 100,
        owner: str = "w1",
        groups: tuple[str, ...] = (SHOPS,),
        engine: Engine | None = None,
    ) -> Sequence[Begun | Declined]:
        """One ``begin``, with all that it answered."""
        spare = limit if extra is None else extra
        want = Want(owner=owner, groups=groups, limit=limit, extra=spare, take=take)
        return await (engine or self.engine).begin(want)

    async def begin(self, **want: Any) -> list[Begun]:
        """What one ``begin`` granted."""
        return [each for each in await self.look(**want) if isinstance(each, Begun)]

    async def begin_one(self, **want: Any) -> Begun:
        (begun,) = await self.begin(**{"limit": 1, **want})
        return begun

    async def finish(
        self,
        begun: Begun,
        outcomes: Sequence[Settled] = (),
        end: CycleEnd = CycleEnd.MESSAGES,
        *,
        engine: Engine | None = None,
        **ending: Any,
    ) -> Left:
        last = Ending(end=end, **ending)
        return await (engine or self.engine).finish(begun, outcomes, last, len(outcomes))

    async def serve(self, **want: Any) -> list[str]:
        """Begin what is due and handle all of it, until nothing is due; ids in order."""
        handled: list[str] = []
        while found := await self.look(**want):
            for begun in found:
                if isinstance(begun, Begun):
                    handled += ids(begun.loan)
                    await self.finish(begun, done(begun.loan))
        return handled

    async def set_state(
        self, resource: Resource, state: State, until: datetime | None = None, reason: str = ""
    ) -> None:
        change = SetState(
            group=SHOPS, resource=resource, state=ResourceState(state, reason, "", until)
        )
        await self.engine.change(change, actor="ann")

    async def set_policy(self, plan: str = "plain", **policy: Any) -> None:
        changed = Plan(plan, Policy(**{"lease": LEASE, **policy}))
        await self.engine.change(SetPlan(group=SHOPS, plan=changed), actor="ann")

    async def register(self, resource: Resource, **fields: Any) -> None:
        await self.engine.change(Register(group=SHOPS, resource=resource, **fields), actor="ann")

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def dead(self) -> list[dict[str, Any]]:
        columns = "id, attempts, reason, error, error_text, trace, history"
        names = columns.split(", ")
        return [
            dict(zip(names, row, strict=True))
            for row in self.rows(f"SELECT {columns} FROM dead ORDER BY dead_id")
        ]

    def requests(self) -> int:
        (row,) = self.rows("SELECT count(*) FROM attention")
        return int(row[0])

    def faults(self) -> list[str]:
        """Where the store contradicts itself; nothing may ever."""
        checks = {
            "the backlog counter is wrong": "SELECT a.rid FROM attention a WHERE a.backlog <> "
            "(SELECT count(*) FROM message m WHERE m.rid = a.rid)",
            "work without a request": "SELECT rid FROM message "
            "WHERE rid NOT IN (SELECT rid FROM attention)",
            "a token without a request": "SELECT rid FROM token "
            "WHERE rid NOT IN (SELECT rid FROM attention)",
            "a request for nothing": "SELECT rid FROM attention WHERE due_ms > 0 AND "
            "rid NOT IN (SELECT rid FROM message) AND rid NOT IN (SELECT rid FROM token)",
        }
        return [f"{fault}: {rows}" for fault, sql in checks.items() if (rows := self.rows(sql))]


class SqliteStage(Stage):
    """A file, or memory: then all connections share one writer."""

    def __init__(self, clock: ManualClock, path: str) -> None:
        super().__init__(clock)
        self.path = path
        self.engines.append(SqliteEngine(path, clock, self.bus))

    def connect(self) -> SqliteEngine:
        writer = self._first.writer if self.path == ":memory:" else None
        engine = SqliteEngine(self.path, self.clock, self.bus, writer)
        self.engines.append(engine)
        return engine

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._first.writer.run_blocking(
            lambda tx: tx._db.execute(statement, values).fetchall()
        )

    @property
    def _first(self) -> SqliteEngine:
        first = self.engine
        assert isinstance(first, SqliteEngine)
        return first
