"""Many schedules on all cores, and one schedule told as a story."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from simulation.world import Mutant, Verdict, play

CHUNK = 250  # schedules that one process runs before it reports
PROCESSES = 2


def run_many(first: int, count: int) -> tuple[list[Verdict], Counter[str]]:
    """Play ``count`` seeds from ``first`` on: the schedules that broke a rule, and counts."""
    bounds = [(at, min(at + CHUNK, first + count)) for at in range(first, first + count, CHUNK)]
    context = multiprocessing.get_context("spawn")
    broken: list[Verdict] = []
    totals: Counter[str] = Counter()
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        for found, counts in pool.map(_chunk, *zip(*bounds, strict=True)):
            broken += found
            totals += counts
    return broken, totals


def _chunk(first: int, end: int) -> tuple[list[Verdict], Counter[str]]:
    broken: list[Verdict] = []
    totals: Counter[str] = Counter()
    for seed in range(first, end):
        verdict = play(seed)
        totals += Counter(
            schedules=1, commits=verdict.commits, steps=verdict.steps, faults=verdict.faults
        )
        if verdict.fault is not None:
            broken.append(verdict)
    return broken, totals


def story(seed: int, *, lines: int = 60, mutant: Mutant | None = None) -> str:
    """What happened in a schedule, the end of it, and the rule that was broken."""
    verdict = play(seed, mutant=mutant, traced=True)
    end = f"no rule was broken in {verdict.commits} commits"
    if verdict.fault is not None:
        end = f"{verdict.fault[0]}: {verdict.fault[1]}"
    return "\n".join([f"seed {seed}", *verdict.trace[-lines:], end])


def failure(broken: list[Verdict]) -> str:
    """For a failed test: which rules were broken how often, and one schedule told."""
    kinds = Counter(verdict.fault[0] for verdict in broken if verdict.fault)
    seed = min(verdict.seed for verdict in broken)
    return (
        f"{dict(kinds)}; replay one with: python -m tests.simulation.replay {seed}\n\n{story(seed)}"
    )
