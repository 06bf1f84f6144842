"""``attn plan``: the limits that resources are served by, shown and changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.text import Text

from attention_queue import config
from attention_queue.cli.acting import Actor, DryRun, Expect, Reason, acting
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import Name, group_of, looking, resource_of
from attention_queue.cli.output import (
    GroupName,
    Output,
    Url,
    columns,
    grid,
    print_many,
    print_one,
    talk,
)
from attention_queue.cli.values import policy_facts, table_of, written
from attention_queue.contract import Plan
from attention_queue.contract.codec import plan_from_table, policy_to_table
from attention_queue.contract.views import PlanUse
from attention_queue.core.entries import plan_table
from attention_queue.core.wording import plural
from attention_queue.errors import InvalidConfig, UnknownPlan
from attention_queue.ports import Register, SetPlan

PlanName = Annotated[str, Parameter(help="The plan.")]
File = Annotated[str, Parameter(help="TOML with groups.*.plans.*, as attn.toml has them.")]
Values = Annotated[str, Parameter(help="max_consumers=6 retry.attempts=3 rates.resource=5/s.")]
New = Annotated[bool, Parameter(help="Make the plan.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan as it is to be; ``use`` is what it is now, if there is one of that name."""

    group: str
    plan: Plan
    use: PlanUse | None

    def rows(self) -> list[dict[str, object]]:
        """What changes, one field a row; of a new plan, one row."""
        if self.use is None:
            return [self._row("(new)", None, written(policy_to_table(self.plan.policy)))]
        was, now = policy_to_table(self.use.plan.policy), policy_to_table(self.plan.policy)
        return [self._row(name, was[name], now[name]) for name in now if was[name] != now[name]]

    def _row(self, field: str, was: object, now: object) -> dict[str, object]:
        return {
            "group": self.group,
            "plan": self.plan.name,
            "field": field,
            "was": was,
            "is": now,
            "busy_resources": self.use.busy if self.use else 0,
        }


def ls(*, group: GroupName = None, output: Output = "table", url: Url = None) -> None:
    """List the plans, with the number of resources on them that have work now."""
    _, uses = asyncio.run(_plans(url, group))
    names = ("Consumers", "Messages", "Seconds", "Lane", "Busy", "Backlog")
    table = columns("Plan", *names, "Set by", right={*names} - {"Lane"})
    for use in uses:
        policy = use.plan.policy
        table.add_row(
            Text(use.plan.name + (" (default)" if use.plan.is_default else "")),
            str(policy.max_consumers), str(policy.max_messages),
            f"{policy.max_seconds.total_seconds():g}", policy.priority.name.lower(),
            f"{use.busy:,}", f"{use.backlog:,}",
            "application" if use.plan.is_declared else "a person",
        )  # fmt: skip
    print_many(output, [plan_table(use) for use in uses], table)


def show(
    plan: PlanName, *, group: GroupName = None, output: Output = "table", url: Url = None
) -> None:
    """Show one plan: all its fields, its version, and how many resources feel it now."""
    name, uses = asyncio.run(_plans(url, group))
    use = _of(name, plan, uses)
    print_one(output, plan_table(use), _card(name, use))


def apply(
    file: File = config.FILE,
    *,
    dry_run: DryRun = False,
    reason: Reason = None,
    actor: Actor = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Make the plans be as the file says; those that it does not name stay as they are."""
    if not Path(file).is_file():
        raise Leave(Exit.USAGE, f"{file}: there is no such file")
    groups = config.load(environ={"ATTN_CONFIG": str(Path(file).resolve())}).groups
    if not groups:
        raise Leave(Exit.USAGE, f"{file}: it has no plans: want [groups.NAME.plans.PLAN]")
    steps = asyncio.run(_apply(url, actor, groups, reason or f"applied {file}", dry_run))
    _print_steps(output, steps, dry_run)


def set(
    plan: PlanName,
    *values: Values,
    new: New = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Change fields of a plan; felt at once by all that are on it, backlog included."""
    changes = table_of(values)
    if not changes and not new:
        raise Leave(Exit.USAGE, "change what? add key=value, such as max_consumers=6")
    step = asyncio.run(_set(url, actor, group, plan, changes, new, expect, reason or "", dry_run))
    _print_steps(output, [step], dry_run)


def use(
    resource: Name,
    plan: PlanName,
    *,
    reason: Reason = None,
    expect: Expect = None,
    actor: Actor = None,
    group: GroupName = None,
    output: Output = "table",
    url: Url = None,
) -> None:
    """Put one resource on a plan; felt at once, backlog included."""
    said = asyncio.run(_use(url, actor, resource, group, plan, expect, reason or ""))
    words = f"{said['resource']} is on plan {said['plan']}, and was on {said['was']}"
    print_one(output, said, Text(words))


async def _plans(url: str | None, group: str | None) -> tuple[str, Sequence[PlanUse]]:
    async with looking(url) as insight:
        name = await group_of(insight, group)
        return name, await insight.plans(name)


async def _apply(
    url: str | None,
    actor: str | None,
    groups: Mapping[str, Sequence[Plan]],
    reason: str,
    dry_run: bool,
) -> list[Step]:
    """One plan after the other, each against the version that was compared."""
    async with acting(url, actor) as here:
        steps: list[Step] = []
        for named, plans in groups.items():
            name = await group_of(here.insight, named)
            there = {use.plan.name: use for use in await here.insight.plans(name)}
            steps += [Step(name, plan, there.get(plan.name)) for plan in plans]
        for step in steps:
            if step.rows() and not dry_run:
                expect = step.use.version if step.use else None
                change = SetPlan(group=step.group, plan=step.plan, expect=expect, reason=reason)
                await here.engine.change(change, actor=here.actor)
        return steps


async def _set(
    url: str | None,
    actor: str | None,
    group: str | None,
    plan: str,
    changes: Mapping[str, object],
    new: bool,
    expect: int | None,
    reason: str,
    dry_run: bool,
) -> Step:
    async with acting(url, actor) as here:
        name = await group_of(here.insight, group)
        uses = await here.insight.plans(name)
        there = next((each for each in uses if each.plan.name == plan), None)
        if there is None and not new:
            raise UnknownPlan(name, plan, tuple(each.plan.name for each in uses))
        step = Step(name, _changed(plan, there, changes), there)
        if not dry_run and step.rows():
            version = there.version if there and expect is None else expect
            change = SetPlan(group=name, plan=step.plan, expect=version, reason=reason)
            await here.engine.change(change, actor=here.actor)
        return step


async def _use(
    url: str | None,
    actor: str | None,
    text: str,
    group: str | None,
    plan: str,
    expect: int | None,
    reason: str,
) -> dict[str, object]:
    async with acting(url, actor) as here:
        name, resource = await resource_of(here.insight, text, group)
        seen = await here.insight.resource(name, resource)
        assert seen is not None
        change = Register(group=name, resource=resource, plan=plan, expect=expect, reason=reason)
        await here.engine.change(change, actor=here.actor)
        return {"group": name, "resource": str(resource), "plan": plan, "was": seen.plan}


def _changed(name: str, use: PlanUse | None, changes: Mapping[str, object]) -> Plan:
    """Fields of ``retry`` and ``rates`` that are not named stay as they are."""
    table = policy_to_table(use.plan.policy) if use else {}
    for field, value in changes.items():
        old = table.get(field)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            table[field] = {**old, **value}
        else:
            table[field] = value
    try:
        return plan_from_table(name, table)
    except InvalidConfig as error:
        raise Leave(Exit.USAGE, "\n  ".join(error.problems)) from None


def _of(group: str, name: str, uses: Sequence[PlanUse]) -> PlanUse:
    for use in uses:
        if use.plan.name == name:
            return use
    raise UnknownPlan(group, name, tuple(use.plan.name for use in uses))


def _card(group: str, use: PlanUse) -> RenderableType:
    facts: list[tuple[str, RenderableType]] = [
        ("group", group),
        ("version", str(use.version)),
        ("set by", "the application" if use.plan.is_declared else "a person"),
        ("busy now", f"{use.busy:,} {plural(use.busy, 'resource')}, {use.backlog:,} messages"),
    ]
    facts += [(name, Text(value)) for name, value in policy_facts(use.plan.policy)]
    default = " (default)" if use.plan.is_default else ""
    return Group(Text(f"{use.plan.name}{default}", "bold"), grid(facts))


def _print_steps(output: Output, steps: Sequence[Step], dry_run: bool) -> None:
    rows = [row for step in steps for row in step.rows()]
    table = columns("Plan", "Field", "Was", "Is", "Busy now", right={"Busy now"})
    for row in rows:
        was, now = (written(row[name], " ") for name in ("was", "is"))
        was = "-" if row["was"] is None else was
        cells = (Text(str(row["plan"])), Text(str(row["field"])), Text(was), Text(now))
        table.add_row(*cells, f"{row['busy_resources']:,}")
    print_many(output, rows, table if rows else Text("nothing differs"))
    if rows:
        talk("nothing was changed: --dry-run" if dry_run else "changed; in force at once")
