"""From what a person types to the group or resource that is meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from cyclopts import Parameter

from attention_queue import app, config
from attention_queue.cli.exits import Exit, Leave
from attention_queue.contract import Resource
from attention_queue.ports import Insight

Name = Annotated[str, Parameter(help="tenant/id, or the id alone.")]


@asynccontextmanager
async def looking(url: str | None) -> AsyncIterator[Insight]:
    """An open view of the configured database."""
    insight = app.open_insight(config.load({"url": url}).url)
    try:
        yield insight
    finally:
        await insight.close()


async def group_of(insight: Insight, named: str | None) -> str:
    """The named group, or the only one there is."""
    groups = await insight.groups()
    if named is not None:
        if named in groups:
            return named
        there = f"there {'is' if len(groups) == 1 else 'are'} {', '.join(groups) or 'none'}"
        raise Leave(Exit.NOT_FOUND, f"no group {named!r}; {there}")
    if len(groups) > 1:
        raise Leave(Exit.USAGE, f"which group? add --group {' or --group '.join(groups)}")
    if not groups:
        raise Leave(Exit.NOT_FOUND, "there is no group yet: a worker or attn publish makes it")
    return groups[0]


async def resource_of(insight: Insight, text: str, group: str | None) -> tuple[str, Resource]:
    """The one resource that ``tenant/id``, or a bare id, means."""
    found = [each for each in await insight.find(text) if group in (None, each[0])]
    if not found:
        where = f" in group {group!r}" if group else ""
        hint = "attn ls shows those that there are"
        raise Leave(Exit.NOT_FOUND, f"no resource {text!r}{where}; {hint}")
    if len(found) > 1:
        several = len({name for name, _ in found}) > 1
        lines = [f"{each}{f' --group {name}' if several else ''}" for name, each in found]
        raise Leave(Exit.USAGE, "\n  ".join([f"{text!r} may be one of these:", *lines]))
    return found[0]
