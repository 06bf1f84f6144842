"""What is printed: data on stdout as a table, JSON, NDJSON or CSV; talk on stderr."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter, validators
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from attention_queue.core.wording import plain

Format = Literal["table", "json", "ndjson", "csv"]
Output = Annotated[Format, Parameter(name=["--output", "-o"], help="How data is printed.")]
Url = Annotated[str | None, Parameter(name="--url", help="The engine, sqlite:///attention.db.")]
Limit = Annotated[
    int, Parameter(help="Rows, at most.", validator=validators.Number(gte=1, lte=100_000))
]
Number = Annotated[
    int, Parameter(help="Its number in the list.", validator=validators.Number(gte=1, lt=2**63))
]
GroupName = Annotated[str | None, Parameter(name="--group", help="If there are several.")]

Data = dict[str, object]


def talk(text: str) -> None:
    console(sys.stderr).print(text, markup=False, soft_wrap=True)


def console(file: object = None) -> Console:
    """Made when it is used, because a test and a pipe put other files in place of stdout."""
    return Console(file=file or sys.stdout, highlight=False, emoji=False)  # type: ignore[arg-type]


def print_one(output: Format, data: Data, drawn: RenderableType) -> None:
    match output:
        case "table":  # a sentence is left to the terminal to wrap, and to grep to find
            console().print(drawn, soft_wrap=isinstance(drawn, Text))
        case "csv":
            _print_csv([data])
        case _:
            _print_json(data, indent=2 if output == "json" else 0)


def print_many(output: Format, rows: Sequence[Data], drawn: RenderableType) -> None:
    match output:
        case "table":
            console().print(drawn)
        case "json":
            _print_json(list(rows), indent=2)
        case "ndjson":
            for row in rows:
                _print_json(row, indent=0)
        case "csv":
            _print_csv(rows)


def grid(pairs: Iterable[tuple[str, RenderableType]]) -> Table:
    """Names at the left, values at the right, no lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    return table


def columns(*names: str, right: Iterable[str] = (), whole: Iterable[str] = ()) -> Table:
    """A table; a column named in ``right`` holds numbers, one in ``whole`` never wraps."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    numbers, unbroken = set(right), {*right, *whole}
    for name in names:
        justify: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in unbroken)
    return table


def brief(text: str) -> Text:
    """One line of a cell, cut where the terminal ends: the whole is in ``-o json``."""
    return Text(plain(text).replace("\n", " "), no_wrap=True, overflow="ellipsis")


def _print_csv(rows: Sequence[Data]) -> None:
    """With a head if there is a row; what is not a single value is JSON in its cell."""
    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    if isinstance(value, bool | dict | list | tuple):
        return msgspec.json.encode(value).decode()
    return value


def _print_json(value: object, *, indent: int) -> None:
    text = msgspec.json.encode(value)
    print((msgspec.json.format(text, indent=indent) if indent else text).decode())
