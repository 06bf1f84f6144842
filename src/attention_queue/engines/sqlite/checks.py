"""What a doctor looks at: file, schema, disk, clock, leftovers."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from attention_queue.clock import Clock
from attention_queue.contract.figures import Check, Grade
from attention_queue.engines.sqlite import figures
from attention_queue.engines.sqlite.database import (
    LATEST,
    MEMORY,
    mapped,
    reader,
    schema_version,
)
from attention_queue.errors import AttentionQueueError

_MIN_SQLITE = (3, 51, 3)  # before it a reset of the write-ahead log could lose commits
_LOW, _EMPTY = 1 << 30, 64 << 20  # bytes left on the disk
_LARGE_LOG = 256 << 20  # bytes


def examine(path: str, clock: Clock) -> Sequence[Check]:
    """All checks that can be made, in the order in which one builds on the other."""
    found = [_sqlite()]
    if path == MEMORY:
        return [*found, Check("file", Grade.WARN, "in memory: gone with its process")]
    found += [_space(path)]
    if not os.path.exists(path):
        fix = "a worker or attn publish makes it"
        return [Check("file", Grade.WARN, f"{path} is not there yet", fix), *found]
    try:
        version = schema_version(path)
    except AttentionQueueError as error:
        return [Check("file", Grade.FAIL, str(error)), *found]
    found = [_mode(path), _schema(version), *found]
    return [*found, *_contents(path, clock)] if version == LATEST else found


def _sqlite() -> Check:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < _MIN_SQLITE:
        fix = "pip install --upgrade apsw"
        return Check("sqlite", Grade.WARN, f"{version} may lose commits at a log reset", fix)
    return Check("sqlite", Grade.OK, f"{version}, bundled with apsw {apsw.apsw_version()}")


def _space(path: str) -> Check:
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        return Check("disk", Grade.FAIL, f"there is no folder {folder}", f"mkdir -p {folder}")
    free = shutil.disk_usage(folder).free
    grade = Grade.FAIL if free < _EMPTY else Grade.WARN if free < _LOW else Grade.OK
    fix = "" if grade is Grade.OK else f"make room below {folder}: a full disk stops publishing"
    return Check("disk", grade, f"{free / (1 << 30):.1f} GiB free", fix)


def _mode(path: str) -> Check:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & 0o077:
        fix = f"chmod 600 {path}"
        return Check("file", Grade.WARN, f"{path}: others may read it (mode {mode:04o})", fix)
    if not os.access(path, os.W_OK):
        return Check("file", Grade.FAIL, f"{path}: this user may not write it", f"ls -l {path}")
    size = os.path.getsize(path) / (1 << 20)
    return Check("file", Grade.OK, f"{path}, {size:.1f} MiB, mode {mode:04o}")


def _schema(version: int) -> Check:
    if version > LATEST:
        fix = "pip install --upgrade attention-queue"
        return Check("schema", Grade.FAIL, f"{version}, this version knows up to {LATEST}", fix)
    if version < LATEST:
        return Check("schema", Grade.WARN, f"{version}, the latest is {LATEST}", "attn db migrate")
    return Check("schema", Grade.OK, f"{version}, the latest")


def _contents(path: str, clock: Clock) -> Iterator[Check]:
    with mapped(path):
        db = reader(path)
        try:
            yield _durability(db, path)
            yield _pages(db)
            look = figures.Look(db, clock.now_ms())
            yield _clock(look)
            yield _unattended(look)
            yield _leftovers(look)
        finally:
            db.close()


def _durability(db: apsw.Connection, path: str) -> Check:
    journal = str(db.pragma("journal_mode"))
    if journal != "wal":
        return Check(
            "durability", Grade.WARN, f"journal mode {journal}", "start a worker: it sets WAL"
        )
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > _LARGE_LOG:
        fix = "end long reads of the file (backups, shells); it shrinks by itself then"
        return Check("durability", Grade.WARN, f"the log has {size >> 20} MiB", fix)
    return Check("durability", Grade.OK, "write-ahead log; every commit is synced (FULL)")


def _pages(db: apsw.Connection) -> Check:
    row = db.execute("PRAGMA quick_check(1)").fetchone() if _small(db) else ("ok",)
    found = str(row[0]) if row else "no answer"
    if found != "ok":
        return Check("pages", Grade.FAIL, found, "restore a backup; the file is damaged")
    return Check("pages", Grade.OK, "sound" if _small(db) else "not read: the file is large")


def _small(db: apsw.Connection) -> bool:
    return int(db.pragma("page_count")) * int(db.pragma("page_size")) < _LARGE_LOG


def _clock(look: figures.Look) -> Check:
    row = look.first("newest")
    ahead_ms = (row[0] if row and row[0] else 0) - look.now_ms
    if ahead_ms > 1_000:
        fix = "set the clock (timedatectl): leases and delays are measured by it"
        return Check("clock", Grade.FAIL, f"{ahead_ms / 1000:.0f} s behind what was written", fix)
    return Check("clock", Grade.OK, "not behind what was written")


def _unattended(look: figures.Look) -> Check:
    if count := figures.unattended(look):
        fix = "start a worker: it repairs them within a minute"
        return Check("unattended", Grade.FAIL, f"{count} resources have work and no request", fix)
    return Check("unattended", Grade.OK, "all work has a request or a token")


def _leftovers(look: figures.Look) -> Check:
    ended = sum(group.ended_tokens for group in figures.overview(look).groups)
    if ended:
        fix = "start a worker: the work that they held is taken over"
        return Check("leftovers", Grade.WARN, f"{ended} tokens of holders that are gone", fix)
    return Check("leftovers", Grade.OK, "no token outlived its lease")
