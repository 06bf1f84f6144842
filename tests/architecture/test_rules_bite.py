"""Each house rule objects to code that breaks it, and is silent about code that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

import pytest

from architecture import rules

LONG = "def f():\n" + "    x = 1\n" * 30
KEPT = "def f():\n" + "    x = 1\n" * 29


def drivers_in_core(text: str) -> Iterable[str]:
    return rules.foreign_drivers(text, PurePosixPath("core/cycle.py"))


BROKEN: list[tuple[Callable[[str], Iterable[object]], str]] = [
    (rules.module_faults, "x = 1\n"),
    (rules.module_faults, '"""no sentence"""\n'),
    (rules.module_faults, '"""A sentence."""\n' + "x = 1\n" * 300),
    (rules.long_functions, LONG),
    (rules.long_functions, "class A:\n" + LONG.replace("def", " def").replace("    x", "  x")),
    (rules.long_functions, "def g():\n    " + LONG.replace("\n", "\n    ")),
    (rules.wall_clocks, "from datetime import UTC, datetime\nt = datetime.now(UTC)\n"),
    (rules.wall_clocks, "import datetime\nt = datetime.datetime.now()\n"),
    (rules.wall_clocks, "import datetime as dt\nt = dt.datetime.utcnow()\n"),
    (rules.wall_clocks, "from datetime import datetime as d\nt = d.now()\n"),
    (rules.wall_clocks, "import time\nt = time.time()\n"),
    (rules.wall_clocks, "from time import time as now\nt = now()\n"),
    (rules.wall_clocks, "import time\nclock = time.time_ns\n"),
    (rules.environment_reads, "import os\nx = os.environ['X']\n"),
    (rules.environment_reads, "from os import environ\nx = environ.get('X')\n"),
    (rules.environment_reads, "import os as o\nx = o.getenv('X')\n"),
    (rules.unsafe_code, "import pickle\n"),
    (rules.unsafe_code, "from pickle import loads\n"),
    (rules.unsafe_code, "def f():\n    import marshal\n"),
    (rules.unsafe_code, "eval('1')\n"),
    (rules.unsafe_code, "exec('1')\n"),
    (rules.unsafe_code, "import yaml\nyaml.load('1')\n"),
    (rules.bare_tasks, "import asyncio\nasyncio.create_task(f())\n"),
    (rules.bare_tasks, "from asyncio import create_task\nt = create_task(f())\n"),
    (rules.swallowed_errors, "try:\n    f()\nexcept Exception:\n    pass\n"),
    (rules.swallowed_errors, "try:\n    f()\nexcept:\n    ...\n"),
    (rules.swallowed_errors, "try:\n    f()\nexcept (KeyError, BaseException):\n    pass\n"),
    (drivers_in_core, "import apsw\n"),
    (drivers_in_core, "def f():\n    from apsw import Connection\n"),
    (drivers_in_core, "import rich.table\n"),
    (rules.built_sql, "run(f'SELECT * FROM {table}')\n"),
    (rules.built_sql, "run('DELETE FROM %s' % table)\n"),
    (rules.built_sql, "run('UPDATE ' + table)\n"),
    (rules.built_sql, "run('INSERT INTO {}'.format(table))\n"),
    (rules.sql_faults, "-- name: take\nSELECT 1;\n"),
    (rules.sql_faults, "-- name: take\n-- name: give\n-- Gives.\nSELECT 1;\n"),
    (rules.sql_faults, "-- name: take\n-- Takes.\nSELECT {column};\n"),
    (rules.sql_faults, "-- name: take\n-- Takes.\nSELECT %s;\n"),
    (rules.empty_names, "class QueueManager: ...\n"),
    (rules.empty_names, "class BaseEngine: ...\n"),
    (rules.empty_names, "class EngineImpl: ...\n"),
    (rules.orphaned_todos, "x = 1  # TODO: later\n"),
    (rules.local_imports, "def f():\n    import os\n"),
    (rules.local_imports, "class A:\n    def f(self):\n        from os import path\n"),
    (rules.engine_choices, "from attention_queue.engines.sqlite import SqliteEngine\n"),
    (rules.sleeps, "import asyncio\nawait asyncio.sleep(0.1)\n"),
    (rules.sleeps, "from time import sleep\nsleep(1)\n"),
    (rules.mocks, "from unittest.mock import Mock\n"),
]

KEEPING: list[tuple[Callable[[str], Iterable[object]], str]] = [
    (rules.module_faults, '"""A sentence.\n\nAnd a list\n"""\n'),
    (rules.long_functions, KEPT),
    (rules.long_functions, 'def f():\n    """A.\n' + "\n" * 20 + '    """\n' + "    x = 1\n" * 29),
    (rules.wall_clocks, "import time\nt = time.monotonic()\nclock.now()\nself.clock.now()\n"),
    (rules.environment_reads, "import os\nos.getpid()\n"),
    (rules.unsafe_code, "self.eval(x)\nconnection.exec(x)\n"),
    (rules.bare_tasks, "async with TaskGroup() as tasks:\n    tasks.create_task(f())\n"),
    (rules.swallowed_errors, "try:\n    f()\nexcept KeyError:\n    pass\n"),
    (rules.swallowed_errors, "try:\n    f()\nexcept Exception as e:\n    log(e)\n"),
    (drivers_in_core, "import asyncio\nfrom attention_queue.contract import Resource\n"),
    (rules.built_sql, "raise E(f'no {x}')\nrun(f'PRAGMA user_version = {n}')\nx = 'SELECT 1'\n"),
    (rules.sql_faults, "-- name: take\n-- Takes {one}.\nSELECT 1;\n"),
    (rules.empty_names, "class Database: ...\n"),
    (rules.orphaned_todos, "x = 1  # TODO #12: later\n"),
    (rules.local_imports, "import os\ndef f(): ...\n"),
    (rules.engine_choices, "from attention_queue.ports import Engine\n"),
    (rules.sleeps, "import asyncio\nawait asyncio.sleep(0)\nawait clock.sleep(3)\n"),
    (rules.mocks, "import unittest\n"),
]


@pytest.mark.parametrize(("rule", "text"), BROKEN)
def test_a_rule_objects_to_code_that_breaks_it(
    rule: Callable[[str], Iterable[object]], text: str
) -> None:
    assert list(rule(text))


@pytest.mark.parametrize(("rule", "text"), KEEPING)
def test_a_rule_is_silent_about_code_that_keeps_it(
    rule: Callable[[str], Iterable[object]], text: str
) -> None:
    assert list(rule(text)) == []


def test_a_driver_is_welcome_in_its_own_folder() -> None:
    path = PurePosixPath("engines/sqlite/database.py")

    assert list(rules.foreign_drivers("import apsw\n", path)) == []
