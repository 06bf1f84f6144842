"""The lists in the pages are the lists in the code."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from attention_queue import sql
from attention_queue.contract import CycleEnd, Hold, State
from docs import pages

DOCS = pages.ROOT / "docs"
NOT_EMBEDDED = {"busy", "no_queue"}  # ends of a cycle that an embedded engine never has


def first_cells(page: str, heading: str) -> set[str]:
    """The names in the first column of the first table below a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.split(rf"^## {heading}$", text, flags=re.MULTILINE)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    rows = table[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_every_end_of_a_cycle_is_explained() -> None:
    ends = {end.value for end in CycleEnd}

    assert first_cells("concepts/cycle.md", "When a slice ends") == ends - NOT_EMBEDDED


def test_every_hold_is_explained() -> None:
    assert first_cells("concepts/protocol.md", "Holds") == {hold.value for hold in Hold}


def test_every_table_that_is_explained_is_there() -> None:
    migrations = sql.migrations("attention_queue.engines.migrations", "sqlite")
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in migrations.values():
            db.executescript(migration)
        named = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()

    tables = {name for (name,) in named if not name.startswith("sqlite_")}

    assert first_cells("concepts/protocol.md", "Rows") <= tables
    assert tables - first_cells("concepts/protocol.md", "Rows") == {"counter", "leader"}


def test_every_state_is_named() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| state |"))

    assert set(re.findall(r"`(\w+)`", row)) == {state.value for state in State}
