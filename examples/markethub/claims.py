"""What the demo claims, each held against the numbers of this very run."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from markethub.hub import PLANS
from markethub.integrator import Integrator, Shop

TIMES_LESS, ROUNDS = 10, 2
CONSUMERS = {plan.name: plan.policy.max_consumers for plan in PLANS}
Slice = tuple[float, float, str]  # it began at, after a wait of, for this shop


class Tally:
    """What the book says of an integrator's tasks, as far as it was read."""

    def __init__(self, path: Path, integrator: Integrator) -> None:
        path.touch()
        self._file, self._rest, self.integrator = path.open("rb"), b"", integrator
        self.waits: dict[str, dict[str, float]] = defaultdict(dict)  # by shop and task, in order
        self.slices: list[Slice] = []
        self.counts = Counter({"slices": 0, "requests wasted": 0})

    def read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
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

    def close(self) -> None:
        self._file.close()

    def undone(self) -> set[str]:
        return self.integrator.accepted.difference(*self.waits.values())

    def waits_of(self, kind: str) -> list[float]:
        shops = self.integrator.shops
        return [w for id in self.waits if shops[id].kind == kind for w in self.waits[id].values()]


class Claim(msgspec.Struct):
    text: str
    numbers: str
    held: bool


def judge(ours: Tally, theirs: Tally) -> list[Claim]:
    shops, sent = ours.integrator.shops, len(ours.integrator.sent)
    accepted, lost = len(ours.integrator.accepted), len(ours.undone())
    quiet, shared = (percentile(tally.waits_of("quiet"), 99) for tally in (ours, theirs))
    single = [ours.waits[id] for id, shop in shops.items() if CONSUMERS[shop.plan] == 1]
    mixed, rounds = sum(list(w) != sorted(w) for w in single), most_rounds(ours.slices, shops)
    ms = f"{quiet * 1000:,.0f} ms against {shared * 1000:,.0f} ms"
    return [
        Claim(
            f"the p99 wait of quiet shops is at least {TIMES_LESS} times less",
            f"{ms} in the shared queue: {shared / quiet:.0f} times",
            shared >= TIMES_LESS * quiet and not theirs.undone(),
        ),
        Claim(
            "nothing is lost, and a worker was killed",
            f"{sent:,} sent, {accepted:,} accepted, {lost} lost",
            sent == accepted and not lost,
        ),
        Claim("order is kept by one consumer", f"{mixed} of {len(single)} shops mixed", not mixed),
        Claim(
            f"every quiet shop is served within {ROUNDS} rounds",
            f"at most {rounds:g} slices by a consumer of another while one was in line",
            rounds <= ROUNDS,
        ),
    ]


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank; of no values it is not a number, with which no comparison holds."""
    return sorted(values)[-(-len(values) * percent // 100) - 1] if values else float("nan")


def most_rounds(slices: Sequence[Slice], shops: dict[str, Shop]) -> float:
    """The most slices that a consumer of another shop began while a quiet shop stood in line."""
    ordered, most = sorted(slices), 0.0
    begins = [began for began, _, _ in ordered]
    for began, waited, shop in ordered:
        if shops[shop].kind == "quiet":
            window = ordered[bisect_right(begins, began - waited) : bisect_left(begins, began)]
            for other, number in Counter(id for _, _, id in window if id != shop).items():
                most = max(most, number / CONSUMERS[shops[other].plan])
    return most
