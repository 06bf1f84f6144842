"""``python -m tests.simulation.replay SEED [MUTANT]``: tell what happened in one schedule."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest finds these modules too
    schedules = importlib.import_module("simulation.schedules")
    broken = importlib.import_module("simulation.mutants").MUTANTS
    mutant = broken[sys.argv[2]] if len(sys.argv) > 2 else None
    print(schedules.story(int(sys.argv[1]), lines=10_000, mutant=mutant))
