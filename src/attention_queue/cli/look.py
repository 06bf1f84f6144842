"""``attn status``, ``ls``, ``show`` and ``explain``: looking changes nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter

from attention_queue.cli import cards
from attention_queue.cli.exits import Exit
from attention_queue.cli.found import Name, group_of, looking, resource_of
from attention_queue.cli.output import GroupName, Limit, Output, Url, print_many, print_one, talk
from attention_queue.clock import SystemClock
from attention_queue.contract import Resource
from attention_queue.contract.figures import Overview, ResourceFigures, ResourceFilter, ResourceRow
from attention_queue.core import health, tables
from attention_queue.core import insight as model
from attention_queue.core.filters import read_filter
from attention_queue.ports import Insight

_PAGE = 500  # rows read at once

Filter = Annotated[
    str, Parameter(help="plan:pro state:paused tenant:eu-* backlog:>1000 oldest:>5m error:E.")
]
Busy = Annotated[bool, Parameter(help="Only those with work.", show_default=False)]
After = Annotated[str | None, Parameter(help="Go on behind this resource.")]


def status(*, output: Output = "table", url: Url = None) -> int:
    """Is the work being done? Exits with 1 if it is not."""
    seen = asyncio.run(_overview(url))
    said = health.status(seen)
    print_one(output, tables.overview_table(seen, said), cards.overview(seen, said))
    return Exit.OK if said.health is health.Health.HEALTHY else Exit.FAILED


def ls(
    *filter: Filter,
    busy: Busy = False,
    limit: Limit = 100,
    after: After = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """List resources, a page at a time."""
    wanted = read_filter(filter, busy=busy)
    start = Resource.parse(after) if after else None
    rows = asyncio.run(_list(url, group, wanted, start, limit + 1))
    shown, now = rows[:limit], SystemClock().now()
    data = [tables.row_table(row, now) for row in shown]
    print_many(output, data, cards.resources(shown, now))
    if len(rows) > limit:
        talk(f"there are more: --after {shown[-1].resource}, or a larger --limit")
    elif not rows and output == "table" and sys.stdout.isatty():
        talk("nothing matches")


def show(
    resource: Name, *, group: GroupName = None, output: Output = "table", url: Url = None
) -> None:
    """Show one resource: state, plan, policy, request, tokens, backlog."""
    seen = asyncio.run(_resource(url, resource, group))
    print_one(output, tables.resource_table(seen), cards.resource(seen))


def explain(
    resource: Name, *, group: GroupName = None, output: Output = "table", url: Url = None
) -> None:
    """Why is this resource (not) being served? The verdict, its numbers, what to try."""
    seen = asyncio.run(_resource(url, resource, group))
    verdict = model.explain(seen)
    data = tables.verdict_table(seen, verdict)
    print_one(output, data, cards.verdict(seen, verdict))


async def _overview(url: str | None) -> Overview:
    async with looking(url) as insight:
        return await insight.overview()


async def _resource(url: str | None, text: str, group: str | None) -> ResourceFigures:
    async with looking(url) as insight:
        found = await resource_of(insight, text, group)
        seen = await insight.resource(*found)
    assert seen is not None  # a resource is never deleted
    return seen


async def _list(
    url: str | None, group: str | None, wanted: ResourceFilter, after: Resource | None, limit: int
) -> list[ResourceRow]:
    async with looking(url) as insight:
        name = await group_of(insight, group)
        return await _pages(insight, name, wanted, after, limit)


async def _pages(
    insight: Insight, group: str, wanted: ResourceFilter, after: Resource | None, limit: int
) -> list[ResourceRow]:
    """Page by page, so that a long list keeps no snapshot of the file open for long."""
    rows: list[ResourceRow] = []
    while len(rows) < limit:
        size = min(limit - len(rows), _PAGE)
        page = await insight.resources(group, wanted, after=after, limit=size)
        rows += page
        if len(page) < size:
            break
        after = page[-1].resource
    return rows
