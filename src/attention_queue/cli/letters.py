"""``attn dlq``: dead letters listed, shown, sent back to work, deleted, written out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Literal

from cyclopts import Parameter

from attention_queue.cli import lists
from attention_queue.cli.acting import Actor, DryRun, Reason, Yes, duration_of, reason_of
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import group_of, looking, resource_of
from attention_queue.cli.operating import Order, extent, told
from attention_queue.cli.output import (
    GroupName,
    Limit,
    Number,
    Output,
    Url,
    print_many,
    print_one,
    talk,
)
from attention_queue.cli.retire import Detach
from attention_queue.clock import SystemClock
from attention_queue.contract.operation import DeadGroup, DeadLetter, Kind, Operation, Selection
from attention_queue.contract.units import read_rate
from attention_queue.contract.views import GroupBy
from attention_queue.core import entries
from attention_queue.core.filters import read_selection
from attention_queue.core.wording import plural
from attention_queue.errors import ContractError
from attention_queue.ports import Insight

_PAGE = 200  # dead letters read at once

Which = Annotated[str, Parameter(help="A resource, error:Timeout type:T reason:R id:7 older:>1h.")]
By = Annotated[Literal["error", "resource"] | None, Parameter(help="Count them by this.")]
Before = Annotated[int | None, Parameter(help="Go on below this number.")]
All = Annotated[bool, Parameter(help="All there are in the group.", show_default=False)]
PerSecond = Annotated[str | None, Parameter(help="No faster than this: 50/s.")]
Jitter = Annotated[str | None, Parameter(help="Let them fall due spread over so long: 30s.")]


def ls(
    *which: Which,
    by: By = None,
    limit: Limit = 50,
    before: Before = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """List dead letters, newest first; or count them by error or resource."""
    now = SystemClock().now()
    if by is not None:
        counted = asyncio.run(_groups(url, group, which, GroupBy(by)))
        rows = [entries.dead_group_table(each) for each in counted]
        print_many(output, rows, lists.dead_groups(counted, now))
        return
    found = asyncio.run(_letters(url, group, which, before, limit + 1))
    shown = found[:limit]
    print_many(output, [entries.letter_row(each) for each in shown], lists.letters(shown, now))
    if len(found) > limit:
        talk(f"there are more: --before {shown[-1].number}, or a larger --limit")


def show(number: Number, *, output: Output = "table", url: Url = None) -> None:
    """Show one: what it was, how it failed each time, its payload and trace."""
    found = asyncio.run(_one(url, number))
    if found is None:
        raise Leave(Exit.NOT_FOUND, f"no dead letter {number}; attn dlq ls shows those there are")
    print_one(output, entries.letter_table(*found), lists.letter(*found, SystemClock().now()))


def export(*which: Which, group: GroupName = None, url: Url = None) -> None:
    """Write them out whole as NDJSON, newest first, to keep or to publish elsewhere."""
    asyncio.run(_export(url, group, which))


def redrive(
    *which: Which,
    all: All = False,
    reason: Reason = None,
    rate: PerSecond = None,
    jitter: Jitter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    detach: Detach = False,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> int:
    """Send dead letters back to work, with their history and marked as a reprocess."""
    spread = timedelta(0) if jitter is None else duration_of("--jitter", jitter)
    operation = _operation(Kind.REDRIVE, url, group, which, reason, all)
    operation = replace(operation, per_second=_rate(rate), jitter=spread)
    order = Order(operation, 0, "", "", url, actor, yes=yes, detach=detach)
    return _carry_out(order, "back to work", dry_run, output)


def discard(
    *which: Which,
    reason: Reason = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    detach: Detach = False,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> int:
    """Delete dead letters for good; some have to be named."""
    operation = _operation(Kind.DISCARD_DEAD, url, group, which, reason, False)
    order = Order(operation, 0, "", "", url, actor, yes=yes, detach=detach)
    return _carry_out(order, "deleted for good", dry_run, output)


def _operation(
    kind: Kind,
    url: str | None,
    group: str | None,
    words: Sequence[str],
    reason: str | None,
    everything: bool,
) -> Operation:
    why = reason_of(reason)
    name, of = asyncio.run(_selected(url, group, words))
    if of.is_everything and not everything:
        more = ", or --all" if kind is Kind.REDRIVE else ""
        raise Leave(Exit.USAGE, f"which? want a resource, error:, type:, reason: or id:{more}")
    return Operation(kind=kind, group=name, selection=of, reason=why)


def _carry_out(order: Order, what: str, dry_run: bool, output: Output) -> int:
    operation = order.operation
    count = asyncio.run(extent(order.url, operation))
    if not count:
        raise Leave(Exit.NOT_FOUND, "no dead letter is meant by that; attn dlq ls shows them")
    of = operation.selection.resource
    letters = f"{count:,} dead {plural(count, 'letter')}{f' of {of}' if of else ''}"
    asks = f"{letters}: {what}"
    order = replace(order, count=count, asks=asks, name=str(of) if of else str(count))
    return told(order, output) if dry_run else order.run(output)


def _rate(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return read_rate(text).per_ms * 1000
    except ContractError as error:
        raise Leave(Exit.USAGE, f"--rate: {error}") from None


async def _select(
    insight: Insight, group: str | None, words: Sequence[str]
) -> tuple[str, Selection]:
    of, text = read_selection(words)
    if text is None:
        return await group_of(insight, group), of
    name, resource = await resource_of(insight, text, group)
    return name, replace(of, resource=resource)


async def _selected(
    url: str | None, group: str | None, words: Sequence[str]
) -> tuple[str, Selection]:
    async with looking(url) as insight:
        return await _select(insight, group, words)


async def _groups(
    url: str | None, group: str | None, words: Sequence[str], by: GroupBy
) -> Sequence[DeadGroup]:
    async with looking(url) as insight:
        name, of = await _select(insight, group, words)
        return await insight.dead_groups(name, of, by)


async def _letters(
    url: str | None, group: str | None, words: Sequence[str], before: int | None, limit: int
) -> list[DeadLetter]:
    async with looking(url) as insight:
        name, of = await _select(insight, group, words)
        found: list[DeadLetter] = []
        while len(found) < limit:
            size = min(limit - len(found), _PAGE)
            page = await insight.dead_letters(name, of, before=before, limit=size)
            found += page
            if len(page) < size:
                break
            before = page[-1].number
        return found


async def _one(url: str | None, number: int) -> tuple[str, DeadLetter] | None:
    async with looking(url) as insight:
        return await insight.dead_letter(number)


async def _export(url: str | None, group: str | None, words: Sequence[str]) -> None:
    """Page by page: as many as there are, and never many in memory."""
    async with looking(url) as insight:
        name, of = await _select(insight, group, words)
        before: int | None = None
        while page := await insight.dead_letters(name, of, before=before, limit=_PAGE):
            rows = [entries.letter_export(name, each) for each in page]
            print_many("ndjson", rows, "")
            before = page[-1].number
