"""``attn audit``, ``attention``, ``peek`` and ``reconcile``: what was done, waits, is wrong."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from attention_queue.cli import lists
from attention_queue.cli.acting import DryRun, acting
from attention_queue.cli.exits import Exit
from attention_queue.cli.found import Name, group_of, looking, resource_of
from attention_queue.cli.output import GroupName, Limit, Output, Url, columns, print_many, talk
from attention_queue.clock import SystemClock
from attention_queue.contract.operation import AuditEntry
from attention_queue.contract.views import Finding, Line, Waiting
from attention_queue.core import entries
from attention_queue.core.reconciler import PAGE
from attention_queue.core.wording import plural
from attention_queue.ports import Insight

_SHOWN = 100  # findings in a table

Whose = Annotated[str | None, Parameter(help="Only what was done to this resource.")]
Before = Annotated[int | None, Parameter(help="Go on below this number.")]
First = Annotated[int, Parameter(help="So many of each lane and of each reason.")]


def audit(
    resource: Whose = None,
    *,
    limit: Limit = 30,
    before: Before = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Who changed what, and why; newest first."""
    found = asyncio.run(_audit(url, group, resource, before, limit))
    print_many(output, [entries.audit_table(each) for each in found], lists.trail(found))


def attention(
    *, first: First = 10, group: GroupName = None, output: Output = "table", url: Url = None
) -> None:
    """The attention queue: who is next in each lane, and who waits for a moment, and why."""
    seen = asyncio.run(_line(url, group, first))
    print_many(output, entries.line_tables(seen), lists.line(seen))


def peek(
    resource: Name,
    *,
    limit: Limit = 20,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Look at its messages, next first. Nothing is taken."""
    found, now = asyncio.run(_peek(url, group, resource, limit)), SystemClock().now()
    rows = [entries.waiting_table(each, now) for each in found]
    print_many(output, rows, lists.waiting(found, now))


def reconcile(*, dry_run: DryRun = False, output: Output = "table", url: Url = None) -> int:
    """Find work that nobody will come for, and ask for it. With --dry-run only find it.

    Looks at the resources that have work, a page at a time; workers do the same every minute.
    Exits with 1 if --dry-run found anything.
    """
    found, repairs = asyncio.run(_reconcile(url, dry_run))
    table = columns("Resource", "Group", "Finding")
    for each in found[:_SHOWN]:
        table.add_row(Text(str(each.resource)), each.group, each.why.replace("_", " "))
    rows = entries.finding_tables(found)
    print_many(output, rows, table if found else Text("nothing is wrong"))
    if len(found) > _SHOWN and output == "table":
        talk(f"and {len(found) - _SHOWN:,} more: see them with -o ndjson")
    if dry_run and found:
        talk(f"{len(found):,} {plural(len(found), 'finding')}; not mended, because of --dry-run")
        return Exit.FAILED
    if repairs:
        talk("mended: " + ", ".join(f"{n:,} {why}" for why, n in sorted(repairs.items())))
    return Exit.OK


async def _audit(
    url: str | None, group: str | None, text: str | None, before: int | None, limit: int
) -> Sequence[AuditEntry]:
    async with looking(url) as insight:
        if text is None:
            name, resource = await group_of(insight, group), None
        else:
            name, resource = await resource_of(insight, text, group)
        return await insight.audit(name, resource, before=before, limit=limit)


async def _line(url: str | None, group: str | None, first: int) -> Line:
    async with looking(url) as insight:
        return await insight.line(await group_of(insight, group), first)


async def _peek(url: str | None, group: str | None, text: str, limit: int) -> Sequence[Waiting]:
    async with looking(url) as insight:
        return await insight.peek(*await resource_of(insight, text, group), limit)


async def _reconcile(url: str | None, dry_run: bool) -> tuple[list[Finding], Counter[str]]:
    """What is found first, and then what is mended: the same, or what has come up since."""
    if dry_run:
        async with looking(url) as insight:
            return await _scan(insight), Counter()
    async with acting(url, None) as here:
        found = await _scan(here.insight)
        repairs: Counter[str] = Counter()
        after: int | None = -1
        while after is not None:
            page = await here.engine.sweep(after, PAGE)
            repairs.update(page.repairs)
            after = page.after
        return found, repairs


async def _scan(insight: Insight) -> list[Finding]:
    found: list[Finding] = []
    after: int | None = -1
    while after is not None:
        page = await insight.scan(after, PAGE)
        found += page.findings
        after = page.after
    return found
