"""How long a person waits for each command, on a database with 50,000 resources.

The commands run one after the other in one process that has loaded all of them, each once without
being counted. What the interpreter and its imports take is a figure of its own.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw

from attention_queue import sql
from attention_queue.cli.exits import Exit
from attention_queue.cli.program import main
from benchmarks import product
from benchmarks.bare import BODY
from benchmarks.figures import Figure, bounded, interleaved
from benchmarks.processes import alone

RESOURCES = 50_000
BUSY = 5_000
MESSAGES = 100_000
ROWS = {"parked": 0, "token": 16, "dead": 2_000, "operation": 200, "audit": 5_000, "stats": 0}
COUNTED = 5  # calls of each, after a first one
BOUND = 200  # ms, whether the process is warm or not
_ANSWERED = (Exit.OK, Exit.FAILED)  # 1 is an answer too: late, or something was found

# By the name of the figure. A filter that nothing matches looks at everything, and so does an id
# without its tenant; {n} is another number at each call, so that there is something to change.
COMMANDS = {
    "status": "status",
    "ls": "ls",
    "ls_busy": "ls --busy",
    "ls_plan": "ls plan:bench",
    "ls_no_plan": "ls plan:none",
    "ls_state": "ls state:paused",
    "ls_backlog": "ls 'backlog:>1000'",
    "ls_oldest": "ls 'oldest:>1d'",
    "ls_error": "ls error:Error9",
    "show": "show r40001",
    "explain": "explain r40001",
    "peek": "peek r40001",
    "watch": "watch r40001 --once",
    "top": "top --once",
    "attention": "attention",
    "dlq_ls": "dlq ls",
    "dlq_ls_error": "dlq ls error:Error9",
    "dlq_by_error": "dlq ls --by error",
    "dlq_by_resource": "dlq ls --by resource",
    "dlq_show": "dlq show 1000",
    "dlq_redrive_dry": "dlq redrive --all --dry-run --reason bench",
    "dlq_export": "dlq export error:Error1",
    "op_ls": "op ls",
    "op_show": "op show 100",
    "audit": "audit",
    "audit_of": "audit r4001",
    "token_ls": "token ls",
    "plan_ls": "plan ls",
    "plan_show": "plan show bench",
    "override_ls": "override ls r40001",
    "reconcile_dry": "reconcile --dry-run",
    "doctor": "doctor",
    "pause": "pause r40001 --reason bench",
    "maintenance": "maintenance r40001 --reason bench",
    "disable": "disable r40001 --reason bench",
    "resume": "resume r40001",
    "boost": "boost r41 --for 1h",
    "nudge": "nudge r40001",
    "plan_set": "plan set bench max_messages={n}",
    "plan_use": "plan use r40001 bench",
    "override_add": "override add r51 max_messages={n} --for 1h --reason bench",
    "dlq_redrive": "dlq redrive id:{n} --yes --reason bench",
    "dlq_discard": "dlq discard id:1{n} --yes --reason bench",
    "discard_dry": "discard r40001 --dry-run --reason bench",
    "discard": "discard r4{n}1 --yes --reason bench",
    "retire": "retire r3{n}1 --yes --reason bench",
    "publish": "publish tenant/r40001 work {n}",
}


def figures(folder: Path, engine: str) -> Iterator[Figure]:
    path = folder / "cli.db"
    make(path)
    for name, took in alone(partial(warm, path=path)).items():
        yield bounded(f"cli.{name}", engine, took, "ms", BOUND)
    cold = statistics.median(_cold_ms(path) for _ in range(COUNTED))
    yield bounded("cli.cold", engine, cold, "ms", BOUND)


def make(path: Path) -> None:
    """A new database with work, dead letters, tokens, operations, an audit trail and books."""
    product.make(path, RESOURCES)
    product.fill(path, product.spread(RESOURCES, BUSY), MESSAGES)
    db, now_ms = apsw.Connection(str(path)), time.time_ns() // 1_000_000
    with db:
        for name, statement in sql.load("benchmarks", "cli.sql").items():
            db.execute(statement, {"now": now_ms, "count": ROWS[name], "payload": BODY})
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def warm(start: Barrier, *, path: Path) -> dict[str, float]:
    """The median of each command, in ms."""
    start.wait()
    numbers = range(COUNTED + 1)
    calls = [partial(_ms, path, command, iter(numbers)) for command in COMMANDS.values()]
    taken = interleaved(len(numbers), *calls)
    return {name: statistics.median(each[1:]) for name, each in zip(COMMANDS, taken, strict=True)}


def _ms(path: Path, command: str, numbers: Iterator[int]) -> float:
    """One call, its output thrown away.

    Raises:
        RuntimeError: It has not done what it was asked for.
    """
    arguments = _arguments(command.format(n=next(numbers) + 50), path)
    said = StringIO()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(said):
        began = time.perf_counter()
        code = main(arguments)
        took = time.perf_counter() - began
    if code not in _ANSWERED:
        raise RuntimeError(f"attn {command}: {said.getvalue()}")
    return took * 1000


def _arguments(command: str, path: Path) -> Sequence[str]:
    return [*shlex.split(command), "--url", f"sqlite:///{path}"]


def _cold_ms(path: Path) -> float:
    """``attn status`` as a person calls it, from the start of its process to the end."""
    command = [sys.executable, "-m", "attention_queue", *_arguments("status", path)]
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    took = time.perf_counter() - began
    if done.returncode not in _ANSWERED:
        raise RuntimeError(f"attn status: code {done.returncode}")
    return took * 1000
