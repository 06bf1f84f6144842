"""The commands as a list, their errors and their exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faces.cli.conftest import Cli

COMMANDS = (
    ("worker",), ("publish",), ("status",), ("ls",), ("show",), ("explain",), ("doctor",),
    ("top",), ("watch",), ("peek",), ("attention",), ("audit",), ("reconcile",),
    ("pause",), ("resume",), ("maintenance",), ("disable",), ("nudge",), ("boost",),
    ("discard",), ("retire",),
    ("dlq",), ("dlq", "ls"), ("dlq", "show"), ("dlq", "redrive"), ("dlq", "discard"),
    ("dlq", "export"), ("plan",), ("plan", "ls"), ("plan", "show"), ("plan", "set"),
    ("plan", "apply"), ("plan", "use"), ("override",), ("override", "ls"), ("override", "add"),
    ("override", "rm"), ("op",), ("op", "ls"), ("op", "show"), ("op", "cancel"),
    ("token",), ("token", "ls"), ("token", "release"),
    ("config",), ("config", "show"), ("db",), ("db", "migrate"), ("db", "status"), ("db", "sql"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(cli: Cli, command: tuple[str, ...]) -> None:
    ran = cli(*command, "--help")

    assert ran.code == 0
    assert f"Usage: attn {' '.join(command)}" in ran.out


def test_the_list_shows_every_command(cli: Cli) -> None:
    out = cli("--help").out

    assert all(f"{command[0]} " in out for command in COMMANDS)
    assert "demo " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("statsu",), "attn: no command 'statsu'; did you mean status?\n"),
        (("db", "migrat"), "attn: no command 'migrat'; did you mean migrate?\n"),
        (("xyzzy",), "attn: no command 'xyzzy'; there are demo, worker, publish, "),
        (("status", "--colour"), "see attn status --help"),
        (("status", "-o", "yaml"), "see attn status --help"),
        (("ls", "--limit", "many"), "see attn ls --help"),
        (("ls", "--limit", "0"), "for --limit. Must be >= 1"),
        (("show",), "see attn show --help"),
        (("worker",), "attn: which application? attn worker package.module:queue\n"),
        (("worker", "a:b", "--slots", "0"), "slots: want a whole number of at least 1"),
    ],
)
def test_a_slip_is_a_usage_error_that_says_what_would_be_right(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    ran = cli(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_file_may_be_closed(folder: Path, closed: str) -> None:
    command = f'exec "{sys.executable}" -m attention_queue config show {closed}'
    code = subprocess.run(["sh", "-c", command], cwd=folder, check=False, timeout=60).returncode

    assert code == 0
