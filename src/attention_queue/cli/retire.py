"""``attn retire`` and ``attn discard``: no more work for a resource, or its backlog deleted."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from attention_queue.cli.acting import Actor, DryRun, Reason, Yes, duration_of, reason_of
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import Name, looking, resource_of
from attention_queue.cli.operating import Order, extent, told
from attention_queue.cli.output import GroupName, Output, Url
from attention_queue.contract import Resource
from attention_queue.contract.operation import Kind, Operation, Selection
from attention_queue.core.wording import messages

Older = Annotated[str | None, Parameter(help="Only messages that were published so long ago: 1h.")]
Type = Annotated[str | None, Parameter(name="--type", help="Only messages of this type.")]
Detach = Annotated[bool, Parameter(help="Start it and leave it to the workers.")]


def retire(
    resource: Name,
    *,
    reason: Reason = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    detach: Detach = False,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> int:
    """Let it take no more work, ever; what it has goes to the dead letters."""
    why = reason_of(reason)
    name, of = asyncio.run(_found(url, resource, group))
    operation = Operation(
        kind=Kind.RETIRE, group=name, selection=Selection(resource=of), reason=why
    )
    count = asyncio.run(extent(url, operation))
    asks = f"{of} takes no more work, ever, and {messages(count)} of it become dead letters"
    order = Order(operation, count, asks, str(of), url, actor, yes=yes, detach=detach)
    return told(order, output) if dry_run else order.run(output)


def discard(
    resource: Name,
    *,
    reason: Reason = None,
    older_than: Older = None,
    type: Type = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    detach: Detach = False,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> int:
    """Delete its backlog for good, or the part of it that is old or of one type.

    What a handler has in hand is left to it.
    """
    why = reason_of(reason)
    age = None if older_than is None else duration_of("--older-than", older_than)
    name, of = asyncio.run(_found(url, resource, group))
    selection = Selection(resource=of, type=type, older_than=age)
    operation = Operation(kind=Kind.DISCARD, group=name, selection=selection, reason=why)
    count = asyncio.run(extent(url, operation))
    if not count:
        raise Leave(Exit.NOT_FOUND, f"no message of {of} is meant by that; attn peek shows them")
    asks = f"{messages(count)} of {of} are deleted for good"
    order = Order(operation, count, asks, str(of), url, actor, yes=yes, detach=detach)
    return told(order, output) if dry_run else order.run(output)


async def _found(url: str | None, text: str, group: str | None) -> tuple[str, Resource]:
    async with looking(url) as insight:
        return await resource_of(insight, text, group)
