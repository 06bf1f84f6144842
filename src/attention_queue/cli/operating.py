"""Starting a redrive, discard or retirement, and staying with it until it has ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from attention_queue.cli.acting import acting, confirm
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.found import looking
from attention_queue.cli.output import Output, console, print_one, talk
from attention_queue.contract.operation import Kind, Operation, OperationFigures
from attention_queue.contract.operation import Progress as Phase
from attention_queue.core.entries import operation_table
from attention_queue.core.operations import run_to_end
from attention_queue.core.wording import plural

_DID = {
    Kind.REDRIVE: "sent back to work",
    Kind.DISCARD_DEAD: "deleted",
    Kind.DISCARD: "deleted",
    Kind.RETIRE: "moved to the dead letters",
}


@dataclass(frozen=True, slots=True)
class Order:
    """An operation as a person asks for it; ``asks`` says what is about to happen."""

    operation: Operation
    count: int  # what it takes if it begins now
    asks: str
    name: str  # what is typed to confirm a large one
    url: str | None
    actor: str | None
    yes: bool = False
    detach: bool = False

    def run(self, output: Output) -> int:
        """Ask, start it, and see it through; Ctrl-C leaves it to the workers."""
        confirm(self.asks, self.count, self.name, yes=self.yes)
        number = 0

        def started(given: int) -> None:
            nonlocal number
            number = given

        try:
            figures = asyncio.run(self._go(started))
        except KeyboardInterrupt:
            if not number:
                raise
            raise Leave(Exit.INTERRUPTED, _goes_on(number)) from None
        print_one(output, operation_table(figures), drawn(figures))
        if figures.progress is Phase.RUNNING:
            talk(_goes_on(figures.number))
        return Exit.PARTIAL if figures.skipped else Exit.OK

    async def _go(self, started: Callable[[int], None]) -> OperationFigures:
        async with acting(self.url, self.actor) as here:
            number = await here.engine.start(self.operation, actor=here.actor)
            started(number)
            if self.detach:
                figures = await here.insight.operation(number)
                assert figures is not None
                return figures
            error = console(sys.stderr)
            bar = (TextColumn("operation {task.description}"), BarColumn(), MofNCompleteColumn())
            with Progress(
                *bar, console=error, transient=True, disable=not error.is_terminal
            ) as shown:
                task = shown.add_task(str(number), total=self.count)
                return await run_to_end(
                    here.engine,
                    here.clock,
                    number,
                    lambda seen: shown.update(task, completed=seen.done + seen.skipped),
                )


def told(order: Order, output: Output) -> int:
    """What it would do; nothing is changed."""
    data: dict[str, object] = {
        "dry_run": True,
        "kind": order.operation.kind.value,
        "count": order.count,
    }
    print_one(output, data, Text(f"{order.asks}: not done, because of --dry-run"))
    return Exit.OK


def drawn(seen: OperationFigures) -> RenderableType:
    """One sentence."""
    kind, unit = seen.operation.kind, "message"
    if kind in (Kind.REDRIVE, Kind.DISCARD_DEAD):
        unit = "dead letter"
    did = f"{seen.done:,} {plural(seen.done, unit)} {_DID[kind]}"
    if seen.skipped:
        did += f", {seen.skipped:,} left where they were: the same id is at work, or it is retired"
    word = kind.value.replace("_", " ")
    style = {"done": "green", "running": "yellow"}.get(seen.progress.value, "red")
    return Text.assemble(
        f"operation {seen.number} ({word}) is ", (seen.progress.value, style), f": {did}"
    )


async def extent(url: str | None, operation: Operation) -> int:
    async with looking(url) as insight:
        return await insight.extent(operation.group, operation.kind, operation.selection)


def _goes_on(number: int) -> str:
    return (
        f"operation {number} goes on in the workers: attn op show {number} tells how far it is, "
        f"attn op cancel {number} ends it"
    )
