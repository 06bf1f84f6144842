"""The commands that the pages show can be typed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import pages

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(program: str) -> set[str]:
    """The first words after ``program`` in the pages' consoles and code spans."""
    found: set[str] = set()
    for page in pages.PAGES:
        text = page.read_text(encoding="utf-8")
        shown = [line[2:] for block in CONSOLE.findall(text) for line in block.splitlines()]
        shown += re.findall(r"`([^`\n]+)`", text)
        found |= {m[1] for line in shown if (m := re.match(rf"{program} ([a-z]+)", line))}
    return found


def test_every_make_target_that_is_shown_is_there() -> None:
    makefile = (pages.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))

    assert {"demo", "test"} <= commands("make") <= targets


@pytest.mark.parametrize("command", sorted(commands("attn")))
def test_every_attn_command_that_is_shown_is_there(command: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "attention_queue", command, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert f"attn {command}" in ran.stdout
