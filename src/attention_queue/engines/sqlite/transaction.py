"""One write transaction as the operations see it: named statements, one now, one ticket counter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from attention_queue import sql
from attention_queue.engines.sqlite.books import Books

STATEMENTS = {
    **sql.load("attention_queue.engines.sqlite", "statements.sql"),
    **sql.load("attention_queue.engines.sqlite", "operations.sql"),
}
Row = tuple[Any, ...]


class Transaction:
    """Passed to each operation of a group commit; all of them see one ``now_ms``.

    ``next`` deals numbers that only grow, for the order of messages, places in line and fences: one
    counter in the database, read at most once and written at most once per commit.
    """

    __slots__ = ("_db", "_dealt", "_next", "books", "directory_changed", "now_ms", "scopes_stopped")

    def __init__(self, db: apsw.Connection, now_ms: int) -> None:
        self._db = db
        self.now_ms = now_ms
        self._next: int | None = None
        self._dealt = False
        self.books = Books(self._execute)
        self.directory_changed = False
        self.scopes_stopped: bool | None = None

    def _execute(self, name: str, *values: object) -> apsw.Cursor:
        return self._db.execute(STATEMENTS[name], values)

    def run(self, name: str, *values: object) -> int:
        """Execute a statement that changes rows; returns how many."""
        self._db.execute(STATEMENTS[name], values)
        return self._db.changes()

    def run_many(self, name: str, rows: Iterable[tuple[object, ...]]) -> None:
        self._db.executemany(STATEMENTS[name], rows)

    def first(self, name: str, *values: object) -> Row | None:
        return self._db.execute(STATEMENTS[name], values).fetchone()

    def all(self, name: str, *values: object) -> list[Row]:
        return self._db.execute(STATEMENTS[name], values).fetchall()

    def total_changes(self) -> int:
        return self._db.total_changes()

    def next(self, count: int = 1) -> int:
        """The first of ``count`` numbers that nobody had before."""
        if self._next is None:
            row = self._db.execute(STATEMENTS["last_ticket"]).fetchone()
            assert row is not None
            self._next = int(row[0]) + 1
        first = self._next
        self._next += count
        self._dealt = True
        return first

    def close(self) -> None:
        """Write back what was dealt; the last act before COMMIT."""
        self.books.close(self.now_ms)
        if self._dealt and self._next is not None:
            self._db.execute(STATEMENTS["save_ticket"], (self._next - 1,))
        if self.directory_changed:
            self._db.execute(STATEMENTS["directory_changed"])
