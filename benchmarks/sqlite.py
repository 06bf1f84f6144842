"""Every figure of the SQLite engine: what is measured, in which rounds, against what."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import bare, cli, product
from benchmarks.figures import Figure, bounded, interleaved, medians
from benchmarks.processes import alone, together
from benchmarks.quiet import Load, p99_ms

ENGINE = "sqlite"
TASKS = 64
CALLERS = 4  # at once: a group commit takes what waits, and more than 100 may go in one
SECONDS = 2.0  # of the measurements that run for a time
PUBLISHED = 100_000  # in batches
PUBLISHED_SINGLE = 40_000
CYCLES = ((1, 10_000, 0.8), (10, 60_000, 0.6), (100, 200_000, 0.35))  # quantum, messages, aim
BACKLOG = 500_000  # more than two processes can handle in SECONDS
MILLION = 1_000_000
ACTIVE = 1_000
LOADS = (
    ("quiet_p99.noop", Load(noisy=1, plan="basic", work=0), 20),
    ("quiet_p99.5ms", Load(noisy=1, plan="basic", work=0.005), 30),
    ("quiet_p99.plans", Load(noisy=2, plan="enterprise", work=0.005), 60),
)


def figures(folder: Path, rounds: int) -> Iterator[Figure]:
    """Each as soon as it is there."""
    yield from _publishing(folder, rounds)
    yield from _cycles(folder, rounds)
    yield from _two_processes(folder, rounds)
    yield from _million(folder, rounds)
    yield from _quiet(folder, rounds)
    yield from cli.figures(folder, ENGINE)


def _publishing(folder: Path, rounds: int) -> Iterator[Figure]:
    path = folder / "publish.db"
    batched = {"path": path, "messages": PUBLISHED}
    single = {"path": path, "messages": PUBLISHED_SINGLE, "tasks": TASKS}
    for name, aim, ours, ceiling in (
        (
            "publish.batched",
            0.5,
            partial(product.publish_batches, **batched, callers=1),
            partial(bare.publish_batches, **batched),
        ),
        (
            f"publish.batched_{CALLERS}callers",
            0.5,
            partial(product.publish_batches, **batched, callers=CALLERS),
            partial(bare.publish_batches, **batched),
        ),
        (
            "publish.single64",
            0.6,
            partial(product.publish_singles, **single),
            partial(bare.publish_singles, **single),
        ),
    ):
        value, against = medians(rounds, partial(alone, ours), partial(alone, ceiling))
        yield _ratio(name, value, "rows/s", against, aim)


def _cycles(folder: Path, rounds: int) -> Iterator[Figure]:
    for quantum, messages, aim in CYCLES:
        value, against = medians(
            rounds,
            partial(_handled, folder / "cycles.db", quantum, messages),
            partial(
                alone,
                partial(bare.cycles, path=folder / "bare.db", size=quantum, messages=messages),
            ),
        )
        yield _ratio(f"cycle.q{quantum}", value, "messages/s", against, aim)


def _handled(path: Path, quantum: int, messages: int) -> float:
    product.made(path, messages=messages)
    rate, _memory = alone(
        partial(product.handle_all, path=path, quantum=quantum, messages=messages)
    )
    return float(rate)


def _two_processes(folder: Path, rounds: int) -> Iterator[Figure]:
    both, ceilings = interleaved(
        rounds,
        partial(_publish_and_handle, folder / "two.db"),
        partial(
            alone,
            partial(
                bare.publish_and_cycle,
                path=folder / "bare.db",
                seconds=SECONDS,
                backlog=BACKLOG,
            ),
        ),
    )
    published = statistics.median(rows for rows, _ in both)
    handled = statistics.median(messages for _, messages in both)
    either = published + handled
    yield _ratio("two_process.publish", published, "rows/s", either, 0.25)
    yield _ratio("two_process.handle", handled, "messages/s", either, 0.25)
    yield _ratio("two_process.sum", either, "rows/s", statistics.median(ceilings), 0.4)


def _publish_and_handle(path: Path) -> tuple[float, float]:
    product.made(path, messages=BACKLOG)
    published, handled = together(
        partial(product.publish_for, path=path, seconds=SECONDS),
        partial(product.handle_for, path=path, quantum=bare.BATCH, seconds=SECONDS),
    )
    return published, handled


def _million(folder: Path, rounds: int) -> Iterator[Figure]:
    """A quantum of one, so that each message is a cycle."""
    large, small = folder / "million.db", folder / "thousand.db"
    product.make(large, MILLION)
    product.make(small, ACTIVE)
    among_many, among_few = interleaved(
        rounds, partial(_served, large, MILLION), partial(_served, small, ACTIVE)
    )
    value, against = (
        statistics.median(rate for rate, _ in results) for results in (among_many, among_few)
    )
    yield _ratio("million.cycle", value, "cycles/s", against, 0.9)
    grown = statistics.median(memory for _, memory in among_many) - statistics.median(
        memory for _, memory in among_few
    )
    yield bounded("million.rss", ENGINE, grown, "MB", 50)


def _served(path: Path, resources: int) -> tuple[float, float]:
    messages = CYCLES[0][1]
    product.fill(path, product.spread(resources, ACTIVE), messages)
    rate, memory = alone(partial(product.handle_all, path=path, quantum=1, messages=messages))
    return rate, memory


def _quiet(folder: Path, rounds: int) -> Iterator[Figure]:
    for name, load, below in LOADS:
        (waited,) = medians(rounds, partial(p99_ms, load, folder / "quiet.db"))
        yield bounded(name, ENGINE, waited, "ms", below)


def _ratio(name: str, value: float, unit: str, against: float, aim: float) -> Figure:
    return Figure(name=name, engine=ENGINE, value=value, unit=unit, against=against, aim=aim)
