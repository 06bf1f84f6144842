"""Running measurements in fresh processes, set up as ``attn worker`` sets up its own."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

READY_WITHIN = 60.0  # seconds for all processes of a measurement to be ready

Job = Callable[[Barrier], Any]  # measures once it has passed the barrier; must be picklable

_spawn = multiprocessing.get_context("spawn")


def together(*jobs: Job) -> list[Any]:
    """Run each job in a process of its own; their results, in order.

    Raises:
        EOFError: A job has failed; its traceback is on the standard error.
    """
    barrier = _spawn.Barrier(len(jobs), timeout=READY_WITHIN)
    running = []
    for job in jobs:
        ours, theirs = _spawn.Pipe(duplex=False)
        process = _spawn.Process(target=_run, args=(job, barrier, theirs))
        process.start()
        theirs.close()
        running.append((process, ours))
    try:
        return [ours.recv() for _, ours in running]
    finally:
        for process, ours in running:
            ours.close()
            process.join()


def alone(job: Job) -> Any:
    return together(job)[0]


def _run(job: Job, barrier: Barrier, answer: Connection) -> None:
    sys.setswitchinterval(0.0005)  # because the writer's thread must not wait for the loop's
    answer.send(job(barrier))


def peak_memory() -> float:
    """The most that this process has had in memory, in MB. Linux only."""
    with open("/proc/self/status", encoding="ascii") as status:
        (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
