"""A measured figure, what it is compared with and what is aimed at; the table and the JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``ratio`` is ``value / against``; ``aim`` is the least, or the most, that it may be."""

    name: str
    engine: str
    value: float
    unit: str
    against: float  # the ceiling measured in the same run, or the bound that is aimed at
    aim: float
    at_least: bool = True  # False: the ratio is to stay below the aim

    @property
    def ratio(self) -> float:
        return self.value / self.against

    @property
    def met(self) -> bool:
        return self.ratio >= self.aim if self.at_least else self.ratio < self.aim


def bounded(name: str, engine: str, value: float, unit: str, below: float) -> Figure:
    """A figure without a ceiling, that is to stay below a bound."""
    return Figure(
        name=name, engine=engine, value=value, unit=unit, against=below, aim=1, at_least=False
    )


def interleaved(rounds: int, *measurements: Callable[[], T]) -> list[list[T]]:
    """The results of each, taken in turn, so that a noisy minute hits all of them alike."""
    results: list[list[T]] = [[] for _ in measurements]
    for _ in range(rounds):
        for measure, into in zip(measurements, results, strict=True):
            into.append(measure())
    return results


def medians(rounds: int, *measurements: Callable[[], float]) -> list[float]:
    return [statistics.median(each) for each in interleaved(rounds, *measurements)]


def show(figures: Sequence[Figure], console: Console) -> None:
    """A table for each engine; it fits into eighty columns."""
    for engine, theirs in groupby(figures, key=lambda figure: figure.engine):
        table = Table(title=engine, box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("figure", no_wrap=True)
        for heading in ("value", "against"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("unit", no_wrap=True)
        for heading in ("ratio", "aim"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("met")
        for figure in theirs:
            table.add_row(*_cells(figure))
        console.print(table)


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        _short(figure.value),
        _short(figure.against),
        figure.unit,
        f"{figure.ratio:.2f}",
        f"{'≥' if figure.at_least else '<'} {figure.aim:g}",
        "[green]yes[/]" if figure.met else "[red]no[/]",
    )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.1f}"


def write(figures: Iterable[Figure], path: Path) -> None:
    rows = [
        {
            "name": figure.name,
            "engine": figure.engine,
            "value": round(figure.value, 3),
            "unit": figure.unit,
            "against": round(figure.against, 3),
            "ratio": round(figure.ratio, 3),
        }
        for figure in figures
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
