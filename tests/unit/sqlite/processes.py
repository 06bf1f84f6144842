"""What other processes do in these tests; the parent starts them with ``multiprocessing``."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from attention_queue.clock import SystemClock
from attention_queue.contract import DONE, CycleEnd, Plan, Policy, Resource, WorkMessage
from attention_queue.contract.bus import Bus
from attention_queue.engines.sqlite import SqliteEngine
from attention_queue.engines.sqlite.database import connect
from attention_queue.engines.sqlite.turn import Turn
from attention_queue.ports import Begun, Ending, Group, Want

CONTEXT = multiprocessing.get_context("spawn")  # as real processes: nothing is inherited
PATIENCE = 60.0  # seconds that a parent waits for its children
GROUP = Group(name="shops", plans=(Plan("plain", Policy()),), default_plan="plain")
SHOPS = 20


def start(target: Callable[..., None], *arguments: object) -> BaseProcess:
    process = CONTEXT.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def ended(*processes: BaseProcess) -> list[int | None]:
    """Their exit codes; those that do not end in time are killed."""
    for process in processes:
        process.join(PATIENCE)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
        process.close()
    return codes


def migrate(path: Path, barrier: Barrier) -> None:
    barrier.wait(PATIENCE)
    connect(str(path)).close()


def hold_the_turn(path: Path, holding: Event, never: Event) -> None:
    turn = Turn(str(path))
    with turn.taken():
        holding.set()
        never.wait(PATIENCE)


def commit_until(path: Path, barrier: Barrier, enough: int, stop: Event, out: SimpleQueue) -> None:
    """Commit in a tight loop until one of the processes has committed often enough."""
    committed = asyncio.run(_commit_until(path, barrier, enough, stop))
    out.put(committed)


async def _commit_until(path: Path, barrier: Barrier, enough: int, stop: Event) -> int:
    engine = SqliteEngine(str(path), SystemClock(), Bus())
    try:
        barrier.wait(PATIENCE)
        committed = 0
        while committed < enough and not stop.is_set():
            await engine.lead(f"task-{committed % 7}", "anyone", GROUP.plans[0].policy.lease)
            committed += 1
        stop.set()
        return committed
    finally:
        await engine.close()


def publish_and_serve(
    path: Path, number: int, batches: int, batch: int, published: Barrier, out: SimpleQueue
) -> None:
    """Publish, and meanwhile serve whatever is there; then serve until nothing is left.

    Puts the ids that it has settled, or the error that it met.
    """
    try:
        out.put(asyncio.run(_publish_and_serve(path, number, batches, batch, published)))
    except Exception as exc:
        out.put([f"{type(exc).__name__}: {exc}"])
        raise


async def _publish_and_serve(
    path: Path, number: int, batches: int, batch: int, published: Barrier
) -> list[str]:
    engine = SqliteEngine(str(path), SystemClock(), Bus())
    try:
        await engine.open_group(GROUP)
        settled: list[str] = []
        for n in range(batches):
            await engine.put("shops", [_message(number, n * batch + i) for i in range(batch)])
            settled += await _serve(engine, number)
        await asyncio.to_thread(published.wait, PATIENCE)
        while served := await _serve(engine, number):
            settled += served
        return settled
    finally:
        await engine.close()


async def _serve(engine: SqliteEngine, number: int) -> list[str]:
    want = Want(owner=f"w{number}", groups=("shops",), limit=2, extra=0)
    settled: list[str] = []
    for begun in await engine.begin(want):
        if isinstance(begun, Begun):
            await engine.finish(begun, [(d, DONE) for d in begun.loan], _ENDING)
            settled += [d.message.id for d in begun.loan]
    return settled


_ENDING = Ending(end=CycleEnd.MESSAGES)


def _message(number: int, n: int) -> WorkMessage:
    shop = Resource("acme", f"shop-{n % SHOPS}")
    return WorkMessage(id=f"{number}-{n}", resource=shop, type="order", payload=b"{}")
