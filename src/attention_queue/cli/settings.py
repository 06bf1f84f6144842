"""``attn config show``: the settings in force, and where each comes from."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from attention_queue import config
from attention_queue.cli.output import Output, Url, columns, print_many
from attention_queue.contract.codec import plan_to_table
from attention_queue.contract.units import write_duration

_PASSWORD = re.compile(r"(://[^/@:]*:)[^@/]*@")

Origin = Annotated[bool, Parameter(help="Say where each value comes from.", show_default=False)]


def show(*, origin: Origin = False, output: Output = "table", url: Url = None) -> None:
    """Show the settings that are in force; passwords are left out."""
    settings = config.load({"url": url})
    values: dict[str, object] = {
        "url": _PASSWORD.sub(r"\1***@", settings.url),
        "slots": settings.slots,
        "processes": settings.processes,
        "grace": write_duration(settings.grace),
        "actor": settings.actor,
    }
    for group, plans in settings.groups.items():
        for plan in plans:
            values[f"groups.{group}.plans.{plan.name}"] = plan_to_table(plan)
    rows: list[dict[str, object]] = [
        {"setting": name, "value": value, "origin": settings.origins[name]}
        for name, value in values.items()
    ]
    if not origin:
        for row in rows:
            del row["origin"]
    table = columns("Setting", "Value", *(["Origin"] if origin else []))
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row.values()))
    print_many(output, rows, table)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {each}" for name, each in value.items() if each != {})
    return str(value)
