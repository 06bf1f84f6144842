"""The commands ``attn`` and ``attention-queue``, and ``python -m attention_queue``."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from importlib.metadata import version


def main() -> None:
    """Run what the command line says, and leave with its exit code."""
    _open_standard()
    gc.set_threshold(50_000)  # loading makes no garbage; looking for it took a tenth of the time
    if sys.argv[1:] == ["--version"]:  # needs nothing else, so it loads nothing else
        print(version("attention-queue"))
        return
    sys.exit(import_module("attention_queue.cli.program").main(sys.argv[1:]))


def _open_standard() -> None:
    """Stand-ins for standard files that are closed: the event loop ends at one of its own there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    main()
