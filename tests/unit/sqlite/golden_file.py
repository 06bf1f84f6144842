"""The golden databases: one file of every released schema, as SQL that restores it.

``python tests/unit/sqlite/golden_file.py`` (with ``src`` and ``tests`` importable) writes the file
of the newest schema anew. Only before its release: afterwards a file of that schema is out there.
"""

from __future__ import annotations

import asyncio
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import apsw.shell

from attention_queue.clock import ManualClock
from attention_queue.contract import (
    Override,
    Plan,
    Policy,
    Reject,
    Resource,
    ResourceState,
    Retry,
    State,
    WorkMessage,
)
from attention_queue.contract.bus import Bus
from attention_queue.contract.outcome import CycleEnd, Failure
from attention_queue.engines.sqlite import SqliteEngine
from attention_queue.engines.sqlite.database import LATEST
from attention_queue.ports import Begun, Ending, Group, Register, SetState, Want

FOLDER = Path(__file__).parent / "golden"
GROUP = Group(name="shops", plans=(Plan("plain", Policy(max_messages=3)),), default_plan="plain")
START = datetime(2026, 1, 1, tzinfo=UTC)


def restore(golden: Path, path: Path) -> None:
    """Make the database at ``path`` as a process of that time has left it."""
    db = apsw.Connection(str(path))
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(golden.read_text(encoding="utf-8"))
    finally:
        db.close()


def dump(path: Path) -> str:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        out = io.StringIO()
        shell = apsw.shell.Shell(db=db, stdout=out)
        shell.process_command(".dump")
    finally:
        db.close()
    kept = [
        line
        for line in out.getvalue().splitlines()
        if line and not line.startswith(("--", "PRAGMA"))
    ]
    return "\n".join([*kept, ""])


async def fill(path: Path) -> None:
    """A little of everything: work, a loan, a retry, a dead letter, a pause, an override."""
    engine = SqliteEngine(str(path), ManualClock(START), Bus())
    try:
        await engine.open_group(GROUP)
        for name in ("a", "b", "paused"):
            await engine.put("shops", [_message(name, n) for n in range(1, 4)])
        await engine.put("shops", [_message("late", 1, START + timedelta(days=1))])
        override = Override(changes={"max_messages": 2}, reason="season")
        b = Resource("acme", "b")
        change = Register(group="shops", resource=b, routing={"m": "x"}, overrides=(override,))
        await engine.change(change, actor="ann")
        paused = ResourceState(State.PAUSED, "by phone", "ann")
        await engine.change(
            SetState(group="shops", resource=Resource("acme", "paused"), state=paused), actor="ann"
        )
        want = Want(owner="w1", groups=("shops",), limit=2, extra=0)
        first, _held = [each for each in await engine.begin(want) if isinstance(each, Begun)]
        failure = Failure("ValueError", "no such order", "Traceback")
        outcomes = [
            (first.loan[0], Retry(timedelta(minutes=1), failure)),
            (first.loan[1], Reject("bad_order", failure)),
        ]
        await engine.finish(first, outcomes, Ending(end=CycleEnd.MESSAGES))
    finally:
        await engine.close()


def _message(name: str, n: int, not_before: datetime | None = None) -> WorkMessage:
    return WorkMessage(
        id=f"{name}-{n}",
        resource=Resource("acme", name),
        type="order",
        payload=b"\x00{}",
        headers={"trace": "x"},
        not_before=not_before,
    )


def write(scratch: Path) -> Path:
    asyncio.run(fill(scratch))
    golden = FOLDER / f"{LATEST:04}.sql"
    golden.write_text(dump(scratch), encoding="utf-8")
    return golden


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(write(Path(folder) / "golden.db"))
