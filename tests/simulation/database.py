"""One SQLite database in memory, emptied between schedules and looked at after every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import apsw

from attention_queue.clock import Clock
from attention_queue.contract import Policy
from attention_queue.contract.codec import policy_from_json
from attention_queue.engines.sqlite.database import MEMORY, connect
from attention_queue.engines.sqlite.loans import Range, read_ranges
from attention_queue.engines.sqlite.writer import Group, InlineWriter, Operation
from simulation.loop import LANE

T = TypeVar("T")


class Message(NamedTuple):
    rid: int
    due: int
    seq: int
    id: str
    failed: int
    suspect: int


class TokenRow(NamedTuple):
    rid: int
    slot: int
    fence: int
    until: int
    loan: list[Range]

    def lends(self, message: Message) -> bool:
        return any(
            due == message.due and first <= message.seq <= last for due, first, last in self.loan
        )


class Request(NamedTuple):
    rid: int
    due: int
    hold: int
    why: str | None
    backlog: int


class Shop(NamedTuple):
    rid: int
    name: str
    state: str
    until: int
    policy: Policy


class OperationRow(NamedTuple):
    number: int
    kind: str
    rid: int | None
    state: str
    done: int
    skipped: int


class Snapshot(NamedTuple):
    """All that matters of the database, by key; ``now`` is the time of the commit."""

    now: int
    messages: dict[tuple[int, str], Message]
    tokens: dict[tuple[int, int], TokenRow]  # by resource and fence
    requests: dict[int, Request]
    shops: dict[int, Shop]
    dead: Counter[tuple[int, str]]  # one id may have died several times
    causes: dict[tuple[int, str], str]  # of the last death
    operations: dict[int, OperationRow]

    def free(self, rid: int) -> list[Message]:
        """Messages of a resource that are on nobody's loan."""
        tokens = [token for token in self.tokens.values() if token.rid == rid]
        return [
            message
            for message in self.messages.values()
            if message.rid == rid and not any(token.lends(message) for token in tokens)
        ]

    def held(self, rid: int) -> list[TokenRow]:
        return [token for token in self.tokens.values() if token.rid == rid]

    def active(self, rid: int) -> bool:
        shop = self.shops[rid]
        return shop.state == "active" or 0 < shop.until <= self.now


class Memory:
    """The database. Emptying it keeps its prepared statements, which are most of its cost."""

    def __init__(self) -> None:
        self.db: apsw.Connection = connect(MEMORY)
        names = self.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        self._tables = [name for (name,) in names]
        self._initial = {name: self.db.execute(_all_of(name)).fetchall() for name in self._tables}
        self._policies: dict[str, Policy] = {}

    def empty(self) -> None:
        self.db.execute("BEGIN")
        for name in self._tables:
            self.db.execute(f'DELETE FROM "{name}"')
            for row in self._initial[name]:
                holes = ", ".join("?" * len(row))
                self.db.execute(f'INSERT INTO "{name}" VALUES ({holes})', row)
        self.db.execute("COMMIT")

    def snapshot(self, now: int) -> Snapshot:
        run = self.db.execute
        messages = [Message(*row) for row in run(_MESSAGES)]
        tokens = [TokenRow(*row[:4], read_ranges(row[4])) for row in run(_TOKENS)]
        requests = [Request(*row) for row in run(_REQUESTS)]
        dead = run(_DEAD).fetchall()
        shops = [Shop(*row[:4], self._policy(row[4])) for row in run(_SHOPS)]
        return Snapshot(
            now,
            {(m.rid, m.id): m for m in messages},
            {(t.rid, t.fence): t for t in tokens},
            {r.rid: r for r in requests},
            {s.rid: s for s in shops},
            Counter((rid, id) for rid, id, _ in dead),
            {(rid, id): reason for rid, id, reason in dead},
            {row[0]: OperationRow(*row) for row in run(_OPERATIONS)},
        )

    def books(self) -> tuple[dict[str, int], int, int]:
        """The ledger, and what the resources' figures say is done and dead."""
        run = self.db.execute
        ((done, dead),) = run("SELECT total(done), total(dead) FROM stats").fetchall()
        ledger = dict(run("SELECT name, sum(value) FROM ledger GROUP BY name").fetchall())
        return ledger, int(done), int(dead)

    def _policy(self, text: str) -> Policy:
        if text not in self._policies:
            self._policies[text] = policy_from_json(text)
        return self._policies[text]


class WatchedWriter(InlineWriter):
    """Tells ``watch`` of every commit, before anybody else learns of it.

    Who did not commit hears of it, as other processes do that look at the file.
    """

    def __init__(
        self, memory: Memory, clock: Clock, watch: Callable[[Operation[Any]], None]
    ) -> None:
        super().__init__(Group(memory.db, MEMORY, clock, None))
        self._memory, self._watch = memory, watch
        self.others: list[tuple[object, Callable[[], None]]] = []  # by process

    def run_blocking(self, operation: Operation[T], *, wakes: bool = False) -> T:
        before = self._memory.db.total_changes()
        try:
            return super().run_blocking(operation, wakes=wakes)
        finally:
            if self._memory.db.total_changes() != before:
                self._watch(operation)
                me = LANE.get()
                for process, hear in () if wakes else tuple(self.others):
                    if process is not me:
                        hear()


def _all_of(table: str) -> str:
    return f'SELECT * FROM "{table}"'


_MESSAGES = "SELECT rid, due_ms, seq, id, failed, suspect FROM message"
_TOKENS = "SELECT rid, slot, fence, until_ms, loan FROM token"
_REQUESTS = "SELECT rid, due_ms, coalesce(hold_ms, 0), hold_why, backlog FROM attention"
_SHOPS = """SELECT r.rid, r.tenant || '/' || r.id, r.state, coalesce(r.state_until_ms, 0), p.policy
FROM resource r JOIN plan p ON p.gid = r.gid AND p.name = r.plan"""
_DEAD = "SELECT rid, id, reason FROM dead ORDER BY dead_id"
_OPERATIONS = "SELECT oid, kind, rid, state, done, skipped FROM operation"
