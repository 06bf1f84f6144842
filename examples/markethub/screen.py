"""What is seen: live on a terminal, plain lines elsewhere, and the summary."""

import time

import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table

from markethub.claims import Tally, judge, percentile


class Screen:
    """One run on the console: its news as they come, its figures below on a terminal."""

    def __init__(self, console: Console, title: str) -> None:
        console.print(f"\n[bold]{title}[/]")
        self._console, self._begin = console, time.monotonic()
        self._live = Live(console=console, auto_refresh=False, transient=True)
        if console.is_terminal:
            self._live.start()

    def show(self, tally: Tally) -> None:
        if self._live.is_started:
            self._live.update(table(tally), refresh=True)

    def news(self, text: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._begin:5.1f} s[/]  {text}")

    def end(self) -> None:
        self._live.stop()


def table(*tallies: Tally) -> Table:
    """A row for each kind of shop; waits from the call to the handler, a pair for each tally."""
    result, shops = Table("shops"), tallies[0].integrator.shops.values()
    waited = ("p50", "p99", "p50 shared", "p99 shared")[: 2 * len(tallies)]
    for heading in ("tasks", "done", *waited):
        result.add_column(heading, justify="right")
    for kind in ("noisy", "quiet", "failing", "held"):
        tasks = [shop.tasks for shop in shops if shop.kind == kind]
        waits = [tally.waits_of(kind) for tally in tallies]
        cells = [f"{percentile(w, p) * 1000:,.0f} ms" if w else "" for w in waits for p in (50, 99)]
        result.add_row(f"{len(tasks):,} {kind}", f"{sum(tasks):,}", f"{len(waits[0]):,}", *cells)
    return result


def report(ours: Tally, theirs: Tally, console: Console, *, json: bool) -> int:
    """Print the figures and the claims; 0 if all of them held."""
    claims, grid = judge(ours, theirs), Table.grid(padding=(0, 2))
    for what, number in sorted(ours.counts.items()):
        grid.add_row(f"{number:,}", what)
    for claim in claims:
        word = "[green]ok[/]" if claim.held else "[bold red]FAILED[/]"
        grid.add_row(word, f"{claim.text}\n[dim]{claim.numbers}[/]")
    console.print(table(ours, theirs), grid)
    if json:
        print(msgspec.json.encode({"claims": claims, "counts": ours.counts}).decode())
    return 0 if all(claim.held for claim in claims) else 1
