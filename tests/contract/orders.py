"""What the tests of long operations arrange with: dead letters, orders, and their steps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from attention_queue.contract import Failure, Reject, Resource
from attention_queue.contract.operation import (
    Kind,
    Operation,
    OperationFigures,
    Progress,
    Selection,
)
from attention_queue.ports import Engine
from contract.stage import SHOPS, Stage, message


async def die(stage: Stage, resource: Resource, *ids: str, error: str = "KeyError") -> None:
    """Publish messages that are dead-lettered at once, in this order."""
    await stage.put(*(message(resource, id) for id in ids))
    while begun := await stage.begin():
        for each in begun:
            verdict = Reject("bad_order", Failure(error, "no such order", "Traceback"))
            await stage.finish(each, [(delivery, verdict) for delivery in each.loan])


def order(kind: Kind, *, resource: Resource | None = None, **fields: Any) -> Operation:
    """``per_second`` and ``jitter`` are the order's, all else is of its selection."""
    of_order = {name: fields.pop(name) for name in ("per_second", "jitter") if name in fields}
    selection = Selection(resource=resource, **fields)
    return Operation(kind=kind, group=SHOPS, selection=selection, reason="asked for", **of_order)


async def start(stage: Stage, kind: Kind, **fields: Any) -> int:
    return await stage.engine.start(order(kind, **fields), actor="ann")


async def step(
    stage: Stage, number: int | None = None, limit: int = 100, engine: Engine | None = None
) -> OperationFigures:
    figures = await (engine or stage.engine).step(number, limit)
    assert figures is not None, "it is no operation's turn"
    return figures


async def run(stage: Stage, number: int, limit: int = 100) -> OperationFigures:
    """Step the operation until it has ended; the clock goes on to each of its next moments."""
    for _ in range(1_000):
        figures = await step(stage, number, limit)
        if figures.progress is not Progress.RUNNING:
            return figures
        stage.clock.advance(max(figures.next - stage.clock.now(), timedelta(0)))
    raise AssertionError(f"operation {number} does not end")


async def complete(stage: Stage, kind: Kind, limit: int = 100, **fields: Any) -> OperationFigures:
    return await run(stage, await start(stage, kind, **fields), limit)


def numbers(stage: Stage) -> list[int]:
    """Of the dead letters, oldest first."""
    return [number for (number,) in stage.rows("SELECT dead_id FROM dead ORDER BY dead_id")]
