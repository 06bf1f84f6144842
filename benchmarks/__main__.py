"""``python -m benchmarks [engine]``: measure, print the table, write ``build/bench.json``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import sqlite
from benchmarks.figures import Figure, show, write

ENGINES: Mapping[str, Callable[[Path, int], Iterator[Figure]]] = {sqlite.ENGINE: sqlite.figures}
BUILD = Path("build")  # on a disk, unlike /tmp on many machines: a commit has to cost something


def main(arguments: Sequence[str]) -> None:
    """The exit code says nothing of the figures: they are measured, not asserted."""
    wanted = _parse(arguments)
    console, began = Console(), time.monotonic()
    figures = []
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        for engine in (wanted.engine,) if wanted.engine else ENGINES:
            for figure in ENGINES[engine](Path(folder), wanted.rounds):
                console.print(f"{figure.name}: {figure.value:,.1f} {figure.unit}", style="dim")
                figures.append(figure)
    show(figures, console)
    write(figures, wanted.json)
    missed = sum(not figure.met for figure in figures)
    console.print(
        f"{len(figures) - missed} of {len(figures)} aims met, medians of {wanted.rounds} rounds, "
        f"{time.monotonic() - began:.0f} s; {wanted.json}"
    )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    engine = {"choices": ENGINES, "default": os.environ.get("ONLY") or None}
    parser.add_argument("engine", nargs="?", help="all, unless one is named", **engine)
    parser.add_argument("--only", dest="engine", help="the same; or ONLY=…", **engine)
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is printed")
    parser.add_argument("--json", type=Path, default=BUILD / "bench.json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
