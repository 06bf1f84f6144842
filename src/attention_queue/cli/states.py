"""``attn pause``, ``resume``, ``maintenance``, ``disable`` and ``nudge``: one resource's state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from attention_queue.cli.acting import (
    Actor,
    Expect,
    For,
    Reason,
    Until,
    acting,
    end_of,
    reason_of,
)
from attention_queue.cli.cards import state_text
from attention_queue.cli.found import Name, resource_of
from attention_queue.cli.output import GroupName, Output, Url, print_one
from attention_queue.contract import Resource, ResourceState, State
from attention_queue.contract.figures import ResourceFigures
from attention_queue.core.tables import state_table
from attention_queue.core.wording import messages
from attention_queue.ports import Change, Nudge, SetState

Making = Callable[[str, Resource], Change]

Now = Annotated[bool, Parameter(help="Cancel the handlers that run; else they finish.")]


def pause(
    resource: Name,
    *,
    reason: Reason = None,
    for_: For = None,
    until: Until = None,
    now: Now = False,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Stop serving it; its work is accepted and kept. With --for it resumes by itself."""
    state = _held(State.PAUSED, reason, end_of(for_, until))
    _run(url, actor, resource, group, output, _setting(state, now, expect))


def maintenance(
    resource: Name,
    *,
    reason: Reason = None,
    for_: For = None,
    until: Until = None,
    now: Now = False,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """As pause; a group with maintenance="refuse" takes no work for it meanwhile."""
    state = _held(State.MAINTENANCE, reason, end_of(for_, until))
    _run(url, actor, resource, group, output, _setting(state, now, expect))


def disable(
    resource: Name,
    *,
    reason: Reason = None,
    now: Now = False,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Stop serving it until somebody resumes it; its work is accepted and kept."""
    state = _held(State.DISABLED, reason, None)
    _run(url, actor, resource, group, output, _setting(state, now, expect))


def resume(
    resource: Name,
    *,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Serve it again, whatever held it; its work is asked for in the same step."""
    state = ResourceState(State.ACTIVE, reason or "")
    _run(url, actor, resource, group, output, _setting(state, False, expect))


def nudge(
    resource: Name,
    *,
    reason: Reason = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Ask for its attention now, whatever its request waits for. Changes no state."""
    why = reason or ""

    def make(group: str, of: Resource) -> Change:
        return Nudge(group=group, resource=of, reason=why)

    _run(url, actor, resource, group, output, make)


def _held(state: State, reason: str | None, until: datetime | None) -> ResourceState:
    return ResourceState(state, reason_of(reason), until=until)


def _setting(state: ResourceState, now: bool, expect: int | None) -> Making:
    def make(group: str, of: Resource) -> Change:
        return SetState(group=group, resource=of, state=state, stop_now=now, expect=expect)

    return make


def _run(
    url: str | None,
    actor: str | None,
    text: str,
    group: str | None,
    output: Output,
    make: Making,
) -> None:
    seen = asyncio.run(_change(url, actor, text, group, make))
    said = Text.assemble((str(seen.resource), "bold"), " is ", state_text(seen))
    data: dict[str, object] = {
        "group": seen.group,
        "resource": str(seen.resource),
        "version": seen.version,
        **state_table(seen),
        "backlog": seen.backlog,
    }
    print_one(output, data, Text.assemble(said, f"; {messages(seen.backlog)} waiting"))


async def _change(
    url: str | None, actor: str | None, text: str, group: str | None, make: Making
) -> ResourceFigures:
    async with acting(url, actor) as here:
        name, resource = await resource_of(here.insight, text, group)
        await here.engine.change(make(name, resource), actor=here.actor)
        seen = await here.insight.resource(name, resource)
    assert seen is not None  # a resource is never deleted
    return seen
