"""What moves between work, dead letters and nothing; against what operations and books say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attention_queue.engines.sqlite.publish import Publishing
from simulation.database import OperationRow, Snapshot
from simulation.ledger import Ledger

Fault = tuple[str, str]
Keys = Counter[tuple[int, str]]


class Moves:
    """Counts each move once, in the commit in which it happens."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.count: Counter[str] = Counter()  # by the names of the books

    def enter(self, before: Snapshot, after: Snapshot, operation: object) -> Iterator[Fault]:
        """Nothing moves by an operation but in the step that notes it, and all of it does."""
        came = Counter(after.messages.keys() - before.messages.keys())
        went = Counter(before.messages.keys() - after.messages.keys())
        died, undead = after.dead - before.dead, before.dead - after.dead
        yield from self._still_at_work(after, died)
        stepped = _stepped(before, after)
        if stepped is not None:
            yield from self._step(stepped, before, after, died=died, undead=undead, went=went)
        elif undead:
            yield "dead_letter_vanished", f"{dict(undead)}"
        if isinstance(operation, Publishing):
            self.count["messages_published"] += came.total()
        elif stepped is None and went and not died and _is_plain(operation):
            yield "moved_unnoted", f"{dict(went)}"
        elif stepped is None and died and _is_plain(operation):
            yield "moved_unnoted", f"{dict(died)}"
        elif stepped is None:
            self.count["messages_done"] += (went - died).total()
        self.count["messages_dead"] += died.total()

    def _still_at_work(self, after: Snapshot, died: Keys) -> Iterator[Fault]:
        for key in died:
            if key in after.messages:
                yield "dead_and_at_work", f"{after.messages[key]}"

    def _step(
        self,
        step: OperationRow,
        before: Snapshot,
        after: Snapshot,
        *,
        died: Keys,
        undead: Keys,
        went: Keys,
    ) -> Iterator[Fault]:
        moved = {"retire": died, "discard": went}.get(step.kind, undead)
        if moved.total() != step.done:
            yield "progress_miscounted", f"{step}, moved {dict(moved)}"
        match step.kind:
            case "redrive":
                self.count["messages_redriven"] += undead.total()
                for key in undead:
                    if key not in after.messages or key in before.messages:
                        yield "redriven_to_nowhere", f"{key}"
                    self._ledger.revive(key[1])
            case "discard":
                self.count["messages_discarded"] += went.total()
                for _, id in went:
                    self._ledger.discard(id)

    def judge(self, ledger: dict[str, int], done: int, dead: int) -> Iterator[Fault]:
        """At the end: the books say what was seen, and what came in has gone out."""
        for name, seen in self.count.items():
            if ledger.get(name, 0) != seen:
                yield "books_wrong", f"{name}: {ledger.get(name, 0)}, seen {seen}"
        if (done, dead) != (self.count["messages_done"], self.count["messages_dead"]):
            yield "books_wrong", f"figures: {done} done, {dead} dead; seen {self.count}"


def _stepped(before: Snapshot, after: Snapshot) -> OperationRow | None:
    """The operation that this commit has advanced, with what it has done in it."""
    for number, row in after.operations.items():
        old = before.operations.get(number)
        if old is not None and (old.done, old.skipped) != (row.done, row.skipped):
            return row._replace(done=row.done - old.done, skipped=row.skipped - old.skipped)
    return None


def _is_plain(operation: object) -> bool:
    """A function: no publish, claim, settle or finish."""
    return type(operation).__name__ == "function"
