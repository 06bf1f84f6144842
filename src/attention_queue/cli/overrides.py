"""``attn boost`` and ``attn override``: other limits for one resource, for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

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
    moment_of,
    reason_of,
)
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import Name, looking, resource_of
from attention_queue.cli.output import GroupName, Output, Url, columns, print_many, talk
from attention_queue.cli.values import changes_of, written
from attention_queue.clock import SystemClock
from attention_queue.contract import Override
from attention_queue.contract.codec import override_to_table
from attention_queue.contract.figures import ResourceFigures
from attention_queue.contract.policy import Order, Priority
from attention_queue.core.wording import moment
from attention_queue.ports import Register

Choosing = Callable[[ResourceFigures], tuple[Override, ...]]

Values = Annotated[str, Parameter(help="Fields of a plan: max_consumers=6 rates.resource=5/s.")]
Consumers = Annotated[int | None, Parameter(help="Consumers at once; twice as many if not given.")]
Lane = Annotated[Literal["high", "normal", "low"] | None, Parameter(help="The lane of requests.")]
Since = Annotated[str | None, Parameter(help="From then on: 2026-11-27T00:00Z. Now, if not given.")]
Number = Annotated[int, Parameter(help="Its number in attn override ls.")]


@dataclass(frozen=True, slots=True)
class Of:
    """Which resource, who acts on it, and against which version."""

    resource: str
    group: str | None
    url: str | None
    actor: str | None = None
    expect: int | None = None


def boost(
    resource: Name,
    *,
    for_: For = None,
    until: Until = None,
    consumers: Consumers = None,
    priority: Lane = None,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Serve it sooner for a while: more consumers, a higher lane, or both if none is given."""
    end = end_of(for_, until)
    if end is None:
        raise Leave(Exit.USAGE, "how long? attn boost R --for 30m; for good: attn plan use R PLAN")
    why = reason or "boost"

    def add(seen: ResourceFigures) -> tuple[Override, ...]:
        boosted = _boosted(seen, consumers, priority)
        return (*_left(seen), Override(changes=boosted, until=end, reason=why))

    _change(Of(resource, group, url, actor, expect), why, output, add)


def add(
    resource: Name,
    *values: Values,
    since: Since = None,
    for_: For = None,
    until: Until = None,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Put other values in force for one resource, in a window or until they are taken away."""
    changes, why = changes_of(values), reason_of(reason)
    start = moment_of("--since", since) if since else None
    end = end_of(for_, until)
    override = Override(changes=changes, since=start, until=end, reason=why)
    of = Of(resource, group, url, actor, expect)
    _change(of, why, output, lambda seen: (*_left(seen), override))


def rm(
    resource: Name,
    number: Number,
    *,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Take one away: its plan's values, or those of the others, are in force again."""

    def without(seen: ResourceFigures) -> tuple[Override, ...]:
        there = seen.overrides
        if not 1 <= number <= len(there):
            raise Leave(Exit.NOT_FOUND, f"{seen.resource} has no override {number}")
        return tuple(each for place, each in enumerate(there, 1) if place != number)

    _change(Of(resource, group, url, actor, expect), reason or "", output, without)


def ls(
    resource: Name, *, group: GroupName = None, output: Output = "table", url: Url = None
) -> None:
    """Show a resource's overrides; of two that change the same, the last one wins."""
    _print(output, asyncio.run(_see(Of(resource, group, url))))


def _boosted(
    seen: ResourceFigures, consumers: int | None, priority: str | None
) -> dict[str, object]:
    changes: dict[str, object] = {}
    if consumers is not None:
        changes["max_consumers"] = consumers
    if priority is not None:
        changes["priority"] = Priority[priority.upper()]
    if changes:
        return changes
    if seen.policy.order is not Order.STRICT:  # it allows one consumer and no more
        changes["max_consumers"] = seen.policy.max_consumers * 2
    return changes | {"priority": Priority.HIGH}


def _left(seen: ResourceFigures) -> tuple[Override, ...]:
    """Those that are not over: what is past is dropped with the next change."""
    return tuple(each for each in seen.overrides if each.until is None or each.until > seen.at)


def _change(of: Of, reason: str, output: Output, choose: Choosing) -> None:
    seen = asyncio.run(_store(of, reason, choose))
    talk(f"{seen.resource}: {_in_force(seen)}")
    _print(output, seen)


async def _store(of: Of, reason: str, choose: Choosing) -> ResourceFigures:
    """Against the version that was read, so that nobody else's change is lost."""
    async with acting(of.url, of.actor) as here:
        name, resource = await resource_of(here.insight, of.resource, of.group)
        seen = await here.insight.resource(name, resource)
        assert seen is not None
        expect = seen.version if of.expect is None else of.expect
        change = Register(
            group=name, resource=resource, overrides=choose(seen), expect=expect, reason=reason
        )
        await here.engine.change(change, actor=here.actor)
        after = await here.insight.resource(name, resource)
    assert after is not None
    return after


async def _see(of: Of) -> ResourceFigures:
    async with looking(of.url) as insight:
        seen = await insight.resource(*await resource_of(insight, of.resource, of.group))
    assert seen is not None
    return seen


def _in_force(seen: ResourceFigures) -> str:
    policy = seen.policy
    return (
        f"{policy.max_consumers} x {policy.max_messages} in the lane "
        f"{policy.priority.name.lower()} now, on plan {seen.plan}"
    )


def _print(output: Output, seen: ResourceFigures) -> None:
    now = SystemClock().now()
    table = columns("No", "Changes", "From", "Until", "Now", "Reason", right={"No"})
    rows: list[dict[str, object]] = []
    for number, each in enumerate(seen.overrides, 1):
        held = override_to_table(each)
        rows.append(
            {
                "resource": str(seen.resource),
                "number": number,
                "changes": held["changes"],
                "since": held.get("since"),
                "until": held.get("until"),
                "holds": each.holds(now),
                "reason": each.reason,
            }
        )
        table.add_row(
            str(number), Text(written(held["changes"])), _start(each.since), moment(each.until),
            "yes" if each.holds(now) else "no", Text(each.reason),
        )  # fmt: skip
    print_many(output, rows, table if rows else Text("no overrides"))


def _start(since: datetime | None) -> str:
    return moment(since) if since else "always"
