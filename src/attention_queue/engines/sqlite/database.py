"""Opening a database: pragmas, file mode, whose it is, migrations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import apsw

from attention_queue import sql
from attention_queue.engines.sqlite.turn import Turn
from attention_queue.errors import EngineUnavailable, ForeignDatabase, InvalidUrl, NewerDatabase

APPLICATION_ID = 0x4154544E  # "ATTN"
MIGRATIONS = sql.migrations("attention_queue.engines.migrations", "sqlite")
LATEST = max(MIGRATIONS)
MEMORY = ":memory:"

_PRAGMAS = (
    "busy_timeout = 30000",
    "synchronous = FULL",  # a commit is on the disk: NORMAL may lose the last ones with the power
    "cache_size = -32768",
    "temp_store = MEMORY",
    "wal_autocheckpoint = 4000",
)


@contextmanager
def mapped(path: str) -> Iterator[None]:
    """Turn apsw's exceptions into ours; the original stays as the cause."""
    try:
        yield
    except apsw.NotADBError as exc:
        raise ForeignDatabase(path, "it is not a SQLite file") from exc
    except apsw.Error as exc:
        raise EngineUnavailable(f"{path}: {exc}") from exc


def connect(path: str) -> apsw.Connection:
    """Open the file, making it (mode 0600) if need be, and migrate it to the latest schema.

    Raises:
        InvalidUrl: Its folder is not there, or it is not a file.
        ForeignDatabase, NewerDatabase: The file was left as it is.
        EngineUnavailable: It is locked, or the disk is full or broken.
    """
    if path != MEMORY:
        _check_file(path)
    with mapped(path):
        db = apsw.Connection(path)
        _keep_plans(db)
        try:
            _migrate(db, path)
        except BaseException:
            db.close()
            raise
    return db


def schema_version(path: str) -> int:
    """The schema of an existing file of ours; 0 if there is no file yet. Changes nothing.

    Raises:
        ForeignDatabase: The file is somebody else's.
    """
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return 0
    with mapped(path):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return _version(db, path)
        finally:
            db.close()


def reader(path: str) -> apsw.Connection:
    """A second, read-only view of a file that ``connect`` has made."""
    with mapped(path):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        _keep_plans(db)
        db.execute("PRAGMA busy_timeout = 30000")
        db.execute("PRAGMA cache_size = -8192")
    return db


def _keep_plans(db: apsw.Connection) -> None:
    """Plan each statement once, because the bundled SQLite (STAT4) plans joins anew at each value.

    A join by keys costs 2 us so, and 10 us otherwise.
    """
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _check_file(path: str) -> None:
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise InvalidUrl(f"sqlite:///{path}", f"there is no folder {folder}")
    if os.path.isdir(path):
        raise InvalidUrl(f"sqlite:///{path}", "it is a folder, not a file")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as exc:
        raise InvalidUrl(f"sqlite:///{path}", str(exc.strerror)) from exc


def _version(db: apsw.Connection, path: str) -> int:
    with db:  # one view: another process may be migrating it now
        application = db.pragma("application_id")
        version: int = db.pragma("user_version")
        tables = db.execute("SELECT 1 FROM sqlite_schema").fetchall()
    if application == APPLICATION_ID:
        return version
    if application or version or tables:
        raise ForeignDatabase(path, "it has tables or a mark of another application")
    return 0


def _migrate(db: apsw.Connection, path: str) -> None:
    db.execute("PRAGMA busy_timeout = 30000")
    version = _version(db, path)
    if version > LATEST:
        raise NewerDatabase(path, version, LATEST)
    # The change to WAL does not wait for a lock, whatever busy_timeout says (SQLite 3.54).
    with _alone(path) if version < LATEST else nullcontext():
        if path != MEMORY:
            db.execute("PRAGMA journal_mode = WAL")
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        if _version(db, path) < LATEST:  # again: another process may have been first
            _upgrade(db, path)


@contextmanager
def _alone(path: str) -> Iterator[None]:
    if path == MEMORY:
        yield
        return
    turn = Turn(path)
    try:
        with turn.taken():
            yield
    finally:
        turn.close()


def _upgrade(db: apsw.Connection, path: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(db, path) + 1, LATEST + 1):
            db.execute(MIGRATIONS[number])
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {LATEST}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
