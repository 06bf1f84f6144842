"""``attn token``: who holds what, and a dead holder's token freed before its lease ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from attention_queue.cli import lists
from attention_queue.cli.acting import Actor, Reason, Yes, acting, confirm, reason_of
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import Name, group_of, looking, resource_of
from attention_queue.cli.output import GroupName, Output, Url, print_many, print_one
from attention_queue.clock import SystemClock
from attention_queue.contract.figures import ResourceFigures, TokenFigures
from attention_queue.contract.views import HeldToken
from attention_queue.core.entries import held_table
from attention_queue.core.wording import messages
from attention_queue.ports import ReleaseToken

Slot = Annotated[int | None, Parameter(help="Which, if it has several: see attn show.")]


def ls(*, group: GroupName = None, output: Output = "table", url: Url = None) -> None:
    """List the tokens that are out: who serves what at this moment."""
    found, now = asyncio.run(_list(url, group)), SystemClock().now()
    print_many(output, [held_table(each, now) for each in found], lists.tokens(found, now))


def release(
    resource: Name,
    *,
    slot: Slot = None,
    reason: Reason = None,
    yes: Yes = False,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """End a dead holder's lease now: what it had in hand is done again by others.

    A holder that lives is fenced out, or renews it before anybody comes; it loses nothing but time.
    """
    why = reason_of(reason)
    seen = asyncio.run(_see(url, resource, group))
    token = _which(seen, slot)
    asks = (
        f"{token.owner} holds slot {token.slot} of {seen.resource} with "
        f"{messages(token.loaned)} in hand; they are done again by others"
    )
    confirm(asks, 1, str(seen.resource), yes=yes)
    change = ReleaseToken(
        group=seen.group, resource=seen.resource, slot=token.slot, fence=token.fence, reason=why
    )
    asyncio.run(_release(url, actor, change))
    data = held_table(HeldToken(resource=seen.resource, token=token), seen.at)
    print_one(output, data, Text(f"slot {token.slot} of {seen.resource} is free to be taken over"))


def _which(seen: ResourceFigures, slot: int | None) -> TokenFigures:
    there = [token for token in seen.tokens if slot in (None, token.slot)]
    if not there:
        what = "no token" if slot is None else f"no token in slot {slot}"
        raise Leave(Exit.NOT_FOUND, f"{seen.resource} has {what} out")
    if len(there) > 1:
        slots = " or ".join(f"--slot {token.slot}" for token in there)
        raise Leave(Exit.USAGE, f"which? {seen.resource} has several tokens out: add {slots}")
    return there[0]


async def _list(url: str | None, group: str | None) -> Sequence[HeldToken]:
    async with looking(url) as insight:
        return await insight.tokens(await group_of(insight, group))


async def _see(url: str | None, text: str, group: str | None) -> ResourceFigures:
    async with looking(url) as insight:
        seen = await insight.resource(*await resource_of(insight, text, group))
    assert seen is not None  # a resource is never deleted
    return seen


async def _release(url: str | None, actor: str | None, change: ReleaseToken) -> None:
    async with acting(url, actor) as here:
        await here.engine.change(change, actor=here.actor)
