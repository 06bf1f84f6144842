"""``attn op``: what was started and takes many steps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from attention_queue.cli import lists
from attention_queue.cli.acting import Actor, acting
from attention_queue.cli.found import group_of, looking
from attention_queue.cli.operating import drawn
from attention_queue.cli.output import GroupName, Limit, Number, Output, Url, print_many, print_one
from attention_queue.clock import SystemClock
from attention_queue.contract.operation import OperationFigures
from attention_queue.core.entries import operation_table
from attention_queue.errors import UnknownOperation

Before = Annotated[int | None, Parameter(help="Go on below this number.")]


def ls(
    *,
    limit: Limit = 20,
    before: Before = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """List operations, newest first."""
    found = asyncio.run(_list(url, group, before, limit))
    data = [operation_table(each) for each in found]
    print_many(output, data, lists.operations(found, SystemClock().now()))


def show(number: Number, *, output: Output = "table", url: Url = None) -> None:
    """Show how far one has come."""
    found = asyncio.run(_one(url, number))
    print_one(output, operation_table(found), lists.operation(found, SystemClock().now()))


def cancel(
    number: Number, *, actor: Actor = None, output: Output = "table", url: Url = None
) -> None:
    """End one; what is done stays done."""
    figures = asyncio.run(_cancel(url, actor, number))
    print_one(output, operation_table(figures), drawn(figures))


async def _list(
    url: str | None, group: str | None, before: int | None, limit: int
) -> Sequence[OperationFigures]:
    async with looking(url) as insight:
        name = await group_of(insight, group)
        return await insight.operations(name, before=before, limit=limit)


async def _one(url: str | None, number: int) -> OperationFigures:
    async with looking(url) as insight:
        found = await insight.operation(number)
    if found is None:
        raise UnknownOperation(number)
    return found


async def _cancel(url: str | None, actor: str | None, number: int) -> OperationFigures:
    async with acting(url, actor) as here:
        return await here.engine.cancel(number, actor=here.actor)
