"""The schema: the sum of its migrations, on files of our own only."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from attention_queue import sql
from attention_queue.clock import ManualClock
from attention_queue.contract.bus import Bus
from attention_queue.engines.sqlite import SqliteEngine
from attention_queue.engines.sqlite.database import (
    APPLICATION_ID,
    LATEST,
    MIGRATIONS,
    connect,
    schema_version,
)
from attention_queue.errors import ForeignDatabase, InvalidUrl, NewerDatabase
from unit.sqlite import golden_file, processes

GOLDEN = sorted(golden_file.FOLDER.glob("*.sql"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attention.db"


def schema(db: apsw.Connection) -> list[tuple[str, ...]]:
    return sorted(db.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"))


@pytest.fixture
def newest() -> Iterator[list[tuple[str, ...]]]:
    with closing(connect(":memory:")) as db:
        yield schema(db)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_there_is_a_golden_database_of_every_schema() -> None:
    assert [int(golden.stem) for golden in GOLDEN] == list(range(1, LATEST + 1))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_every_older_file_becomes_the_newest_schema(
    golden: Path, path: Path, newest: list[tuple[str, ...]]
) -> None:
    golden_file.restore(golden, path)
    assert schema_version(str(path)) == int(golden.stem)

    with closing(connect(str(path))) as db:
        migrated = schema(db)

    assert migrated == newest
    assert schema_version(str(path)) == LATEST


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
async def test_an_older_file_loses_nothing(golden: Path, path: Path) -> None:
    golden_file.restore(golden, path)
    clock = ManualClock(golden_file.START)
    engine = SqliteEngine(str(path), clock, Bus())

    await engine.open_group(golden_file.GROUP)
    kept = engine.writer.run_blocking(
        lambda tx: tx._db.execute("SELECT id FROM message ORDER BY id").fetchall()
    )
    dead = engine.writer.run_blocking(
        lambda tx: tx._db.execute("SELECT id, attempts, error FROM dead").fetchall()
    )
    await engine.close()

    assert [id for (id,) in kept] == [
        "a-1", "a-3", "b-1", "b-2", "b-3", "late-1", "paused-1", "paused-2", "paused-3",
    ]  # fmt: skip
    assert dead == [("a-2", 1, "ValueError")]


def test_the_newest_golden_database_is_what_the_engine_writes_today(path: Path) -> None:
    golden = golden_file.FOLDER / f"{LATEST:04}.sql"
    written = golden.read_text(encoding="utf-8")

    golden_file.restore(golden, path)

    assert golden_file.dump(path) == written


def test_migrations_are_numbered_without_a_gap() -> None:
    assert list(MIGRATIONS) == list(range(1, LATEST + 1))
    assert sql.migrations("attention_queue.engines.migrations", "sqlite") == MIGRATIONS


def test_opening_again_changes_nothing(path: Path) -> None:
    connect(str(path)).close()
    before = digest(path)

    connect(str(path)).close()

    assert digest(path) == before


def test_a_newer_file_is_refused_and_left_as_it_is(path: Path) -> None:
    with closing(connect(str(path))) as db:
        db.execute(f"PRAGMA user_version = {LATEST + 1}")
    before = digest(path)

    with pytest.raises(NewerDatabase, match="upgrade"):
        connect(str(path))

    assert digest(path) == before


@pytest.mark.parametrize(
    "mark",
    [
        "CREATE TABLE customers (id INTEGER)",
        "PRAGMA application_id = 42",
        "PRAGMA user_version = 3",
    ],
)
def test_a_file_of_another_application_is_refused_and_left_as_it_is(path: Path, mark: str) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute(mark)
    before = digest(path), path.stat().st_mode

    for opening in (connect, schema_version):
        with pytest.raises(ForeignDatabase, match="it was left as it is"):
            opening(str(path))

    assert (digest(path), path.stat().st_mode) == before
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"\x00" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)

    for opening in (connect, schema_version):
        with pytest.raises(ForeignDatabase):
            opening(str(path))

    assert path.read_bytes() == content


def test_an_empty_file_is_taken(path: Path, newest: list[tuple[str, ...]]) -> None:
    path.touch()
    assert schema_version(str(path)) == 0

    with closing(connect(str(path))) as db:
        assert schema(db) == newest


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidUrl, match=r"there is no folder .*missing"):
        connect(str(tmp_path / "missing" / "attention.db"))

    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidUrl, match="it is a folder"):
        connect(str(tmp_path))


def test_looking_at_the_schema_makes_no_file(path: Path) -> None:
    assert schema_version(str(path)) == 0

    assert not path.exists()


async def test_nobody_else_may_read_the_files(path: Path) -> None:
    before = os.umask(0)
    try:
        engine = SqliteEngine(str(path), ManualClock(), Bus())
    finally:
        os.umask(before)
    await engine.open_group(golden_file.GROUP)

    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    await engine.close()

    assert set(modes) >= {"attention.db", "attention.db-wal"}
    assert set(modes.values()) == {0o600}


def test_what_was_accepted_is_on_the_disk(path: Path) -> None:
    with closing(connect(str(path))) as db:
        assert db.pragma("synchronous") == 2  # FULL
        assert db.pragma("journal_mode") == "wal"
        assert db.pragma("application_id") == APPLICATION_ID


def test_many_processes_may_migrate_at_once(path: Path, newest: list[tuple[str, ...]]) -> None:
    barrier = processes.CONTEXT.Barrier(4)
    children = [processes.start(processes.migrate, path, barrier) for _ in range(4)]

    codes = processes.ended(*children)

    assert codes == [0, 0, 0, 0]
    with closing(connect(str(path))) as db:
        assert schema(db) == newest
