"""What the demo shows and claims, each claim held against the numbers of this very run."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from markethub.hub import PLANS
from markethub.integrator import Integrator, Shop

TIMES_LESS, ROUNDS = 10, 2
Claim = tuple[str, str, bool]
CONSUMERS = {plan.name: plan.policy.max_consumers for plan in PLANS}


class Tally:
    """What the book says of an integrator's tasks, as far as it was read."""

    def __init__(self, path: Path, integrator: Integrator) -> None:
        path.touch()
        self.file, self._rest, self.integrator = path.open("rb"), b"", integrator
        self.waits: dict[str, dict[str, float]] = defaultdict(dict)  # by shop and task, in order
        self.slices: list[tuple[float, float, str]] = []  # began at, after a wait of, for this shop
        self.counts = Counter({"slices": 0, "requests wasted": 0})

    def read(self) -> None:
        *lines, self._rest = (self._rest + self.file.read()).split(b"\n")
        for line in lines:
            match msgspec.json.decode(line):
                case ["call", shop, task, _] if task in self.waits[shop]:
                    self.counts["tasks done once more"] += 1  # their worker was killed
                case ["call", shop, task, started]:
                    self.waits[shop][task] = started - self.integrator.sent[task]
                case ["slice", shop, began, waited]:
                    self.slices.append((began, waited, shop))
                    self.counts["slices"] += 1
                case ["count", what, number]:
                    self.counts[what] += number

    def undone(self) -> set[str]:
        return self.integrator.accepted.difference(*self.waits.values())

    def waits_of(self, kind: str) -> list[float]:
        shops = self.integrator.shops
        return [w for id in self.waits if shops[id].kind == kind for w in self.waits[id].values()]


def judge(ours: Tally, theirs: Tally) -> list[Claim]:
    """Each claim with its numbers, and whether it held."""
    shops, sent = ours.integrator.shops, len(ours.integrator.sent)
    accepted, lost = len(ours.integrator.accepted), len(ours.undone())
    quiet, shared = (percentile(tally.waits_of("quiet"), 99) for tally in (ours, theirs))
    single = [ours.waits[id] for id, shop in shops.items() if CONSUMERS[shop.plan] == 1]
    mixed, rounds = sum(list(w) != sorted(w) for w in single), most_rounds(ours.slices, shops)
    ms = f"{quiet * 1000:,.0f} ms against {shared * 1000:,.0f} ms"
    return [
        (
            f"the p99 wait of quiet shops is at least {TIMES_LESS} times less",
            f"{ms} in the shared queue: {shared / quiet:.0f} times",
            shared >= TIMES_LESS * quiet and not theirs.undone(),
        ),
        (
            "nothing is lost, and a worker was killed",
            f"{sent:,} sent, {accepted:,} accepted, {lost} lost",
            sent == accepted and not lost,
        ),
        ("order is kept by one consumer", f"{mixed} of {len(single)} shops mixed", not mixed),
        (
            f"every quiet shop is served within {ROUNDS} rounds",
            f"at most {rounds:g} slices by a consumer of another while one was in line",
            rounds <= ROUNDS,
        ),
    ]


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank; of no values it is not a number, with which no comparison holds."""
    return sorted(values)[-(-len(values) * percent // 100) - 1] if values else float("nan")


def most_rounds(slices: Sequence[tuple[float, float, str]], shops: dict[str, Shop]) -> float:
    """The most slices that a consumer of another shop began while a quiet shop stood in line."""
    ordered, most = sorted(slices), 0.0
    begins = [began for began, _, _ in ordered]
    for began, waited, shop in ordered:
        if shops[shop].kind == "quiet":
            window = ordered[bisect_right(begins, began - waited) : bisect_left(begins, began)]
            for other, number in Counter(id for _, _, id in window if id != shop).items():
                most = max(most, number / CONSUMERS[shops[other].plan])
    return most


def table(*tallies: Tally) -> Table:
    """A row for each kind of shop; waits from the call to the handler, a pair for each tally."""
    result, shops = Table("shops", box=SIMPLE), tallies[0].integrator.shops.values()
    waited = ("p50 ms", "p99 ms", "shared p50", "shared p99")[: 2 * len(tallies)]
    for heading in ("tasks", "done", *waited):
        result.add_column(heading, justify="right")
    for kind in ("noisy", "quiet", "failing", "held"):
        tasks = [shop.tasks for shop in shops if shop.kind == kind]
        waits = [tally.waits_of(kind) for tally in tallies]
        cells = [f"{percentile(w, p) * 1000:,.0f}" if w else "" for w in waits for p in (50, 99)]
        result.add_row(f"{len(tasks):,} {kind}", f"{sum(tasks):,}", f"{len(waits[0]):,}", *cells)
    return result


def report(ours: Tally, theirs: Tally, console: Console, *, json: bool) -> int:
    """Print the figures and the claims; 0 if all of them held."""
    claims, grid = judge(ours, theirs), Table.grid(padding=(0, 2))
    for what, number in sorted(ours.counts.items()):
        grid.add_row(f"{number:,}", what)
    grid.add_row()
    for text, numbers, held in claims:
        word = "[green]ok[/]" if held else "[bold red]FAILED[/]"
        grid.add_row(word, f"{text}\n[dim]{numbers}[/]")
    console.print(table(ours, theirs), grid)
    if json:
        told = [dict(zip(("text", "numbers", "held"), claim, strict=True)) for claim in claims]
        print(msgspec.json.encode({"claims": told, "counts": ours.counts}).decode())
    return 0 if all(held for _, _, held in claims) else 1
