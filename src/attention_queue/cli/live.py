"""``attn top`` and ``attn watch``: the same figures as status and explain, live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.text import Text

from attention_queue import app, config
from attention_queue.cli import cards, screen
from attention_queue.cli.acting import duration_of
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import Name, resource_of
from attention_queue.cli.output import GroupName, Url, columns, console
from attention_queue.contract import Resource, State
from attention_queue.contract.views import BusyRow
from attention_queue.core import health
from attention_queue.core import insight as model
from attention_queue.ports import Insight

_ROWS = 20  # resources in one frame off a terminal
_HEAD = 8  # lines of a frame that are no resources, and one more for each group
Every = Annotated[str, Parameter(help="Seconds between two pictures.")]
Once = Annotated[bool, Parameter(help="One picture, and leave.")]
Frame = Callable[[Insight, int], Coroutine[Any, Any, RenderableType]]


def top(
    *, every: Every = "1s", once: Once = False, group: GroupName = None, url: Url = None
) -> None:
    """The busiest resources, live; q leaves."""

    async def frame(insight: Insight, height: int) -> RenderableType:
        return await _top(insight, group, height)

    _run(frame, every, once, url)


def watch(
    resource: Name,
    *,
    every: Every = "1s",
    once: Once = False,
    group: GroupName = None,
    url: Url = None,
) -> None:
    """One resource, live: its verdict, numbers and tokens; q leaves."""
    found: list[tuple[str, Resource]] = []

    async def frame(insight: Insight, height: int) -> RenderableType:
        if not found:
            found.append(await resource_of(insight, resource, group))
        seen = await insight.resource(*found[0])
        assert seen is not None  # a resource is never deleted
        return cards.verdict(seen, model.explain(seen), cards.tokens(seen))

    _run(frame, every, once, url)


def _run(frame: Frame, every: str, once: bool, url: str | None) -> None:
    """Without a terminal there is one picture."""
    seconds = duration_of("--every", every).total_seconds()
    if not 0.1 <= seconds <= 3600:
        raise Leave(Exit.USAGE, f"--every {every}: want from 100ms to 1h")
    with asyncio.Runner() as runner:
        insight = app.open_insight(config.load({"url": url}).url)
        try:
            if once or not screen.is_possible():
                console().print(runner.run(frame(insight, _ROWS + _HEAD + 1)))
                return
            screen.show(lambda height: _framed(runner.run(frame(insight, height))), seconds)
        finally:
            runner.run(insight.close())


def _framed(drawn: RenderableType) -> RenderableType:
    return Group(drawn, "", Text("q leaves", "dim"))


async def _top(insight: Insight, group: str | None, height: int) -> RenderableType:
    seen = await insight.overview()
    names = [each.name for each in seen.groups]
    if group is not None and group not in names:
        raise Leave(Exit.NOT_FOUND, f"no group {group!r}; there are {', '.join(names) or 'none'}")
    rows: list[tuple[str, BusyRow]] = []
    room = max(height - _HEAD - len(names), 1)
    for name in names if group is None else [group]:
        rows += [(name, row) for row in await insight.busiest(name, room)]
    rows.sort(key=lambda each: each[1].row.backlog, reverse=True)
    picture = cards.overview(seen, health.status(seen), whole=False)
    if not rows:
        return Group(picture, "", Text("no work is left"))
    return Group(picture, "", _busiest(rows[:room], seen.at, several=len(names) > 1))


def _busiest(rows: list[tuple[str, BusyRow]], now: datetime, *, several: bool) -> RenderableType:
    names = ["Plan", "Backlog", "In/s", "Out/s", "Tokens", "Oldest", "Now"]
    head = ["Group", "Resource"] if several else ["Resource"]
    table = columns(*head, *names, right={*names} - {"Plan", "Now"}, whole={"Now"})
    for name, busy in rows:
        row = busy.row
        paused = row.state is not State.ACTIVE
        doing = Text(row.state.value, "yellow") if paused else Text(cards.request_cell(row, now))
        table.add_row(
            *([Text(name)] if several else []), Text(str(row.resource)), Text(row.plan),
            f"{row.backlog:,}", _rate(busy.arrival), _rate(busy.service),
            str(row.tokens) if row.tokens else cards.NONE, cards.age(row.oldest, now), doing,
        )  # fmt: skip
    return table


def _rate(value: float | None) -> str:
    return cards.NONE if value is None else f"{value:,.1f}"
