"""The commands ``attn`` and ``attention-queue``, and ``python -m attention_queue``."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.metadata import version


def main() -> None:
    """Run what the command line says, and leave with its exit code."""
    gc.set_threshold(50_000)  # loading makes no garbage; looking for it took a tenth of the time
    if sys.argv[1:] == ["--version"]:  # needs nothing else, so it loads nothing else
        print(version("attention-queue"))
        return
    sys.exit(import_module("attention_queue.cli.program").main(sys.argv[1:]))


if __name__ == "__main__":
    main()
