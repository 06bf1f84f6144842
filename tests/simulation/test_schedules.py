"""The production code under thousands of seeded schedules: see ``audit`` for what must hold."""

from __future__ import annotations

import os
import subprocess
import sys

from simulation.schedules import failure, run_many, story
from simulation.world import play

SCHEDULES = 20_000
SOAK = 20  # times as many with ATTN_TEST_SOAK=1


def test_no_schedule_breaks_a_rule() -> None:
    first, count = 0, SCHEDULES
    if os.environ.get("ATTN_TEST_SOAK") == "1":
        count *= SOAK
    if seed := os.environ.get("ATTN_TEST_SEED"):
        first, count = int(seed), 1

    broken, totals = run_many(first, count)

    assert not broken, failure(broken)
    assert totals["schedules"] == count


def test_a_schedule_disturbs_what_it_runs() -> None:
    verdicts = [play(seed) for seed in range(200)]

    assert sum(verdict.faults for verdict in verdicts) > 100
    assert sum(verdict.commits for verdict in verdicts) > 4_000


def test_a_seed_runs_the_same_in_every_process() -> None:
    seeds = range(40, 60)
    code = "import sys; from simulation.schedules import story; "
    code += f"print([story(seed) for seed in range({seeds.start}, {seeds.stop})])"
    path = os.pathsep.join(part for part in sys.path if part)

    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        output = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

        assert output.strip() == str([story(seed) for seed in seeds])
