"""What the application saw: published, started, done; and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Fault = tuple[str, str]
MAX_CRASHES = 4  # the first makes a suspect of it, and three are charged


@dataclass(slots=True)
class Entry:
    """One message id, as its publisher and the handlers know it."""

    id: str
    shop: str
    publisher: str
    number: int  # the publisher's own count for this shop
    ordered: bool  # published without a delay, for a shop with one consumer throughout
    strict: bool
    acked: bool = False
    starts: int = 0
    crashes: int = 0
    done: int = 0
    buried: bool = False  # with the dead letters
    discarded: bool = False
    refused: bool = False  # the one time that it was published
    over: bool = False  # done, rejected, buried, or its attempts are used up


@dataclass(slots=True)
class Ledger:
    report: Callable[[Fault], None]
    entries: dict[str, Entry] = field(default_factory=dict)
    _latest: dict[tuple[str, str], int] = field(default_factory=dict)

    def publish(self, entry: Entry) -> None:
        self.entries.setdefault(entry.id, entry)

    def was_done(self, id: str) -> bool:
        return self.entries[id].done > 0

    def bury(self, id: str) -> None:
        self.entries[id].buried = self.entries[id].over = True

    def discard(self, id: str) -> None:
        self.entries[id].discarded = self.entries[id].over = True

    def revive(self, id: str) -> None:
        """It is work again, out of its order and with a clean record."""
        entry = self.entries[id]
        entry.buried = entry.ordered = entry.over = False
        entry.crashes = 0

    def start(self, id: str, beside: Sequence[str] = ()) -> None:
        """A handler begins, ``beside`` others of its list; in order per shop the first time."""
        entry = self.entries[id]
        entry.starts += 1
        if not entry.ordered:
            return
        line = entry.shop, entry.publisher
        if entry.starts == 1 and entry.number < self._latest.get(line, 0):
            self.report(("out_of_order", f"{id} starts after number {self._latest[line]}"))
        self._latest[line] = max(self._latest.get(line, 0), entry.number)
        if entry.strict:
            self._check_strict(entry, beside)

    def _check_strict(self, entry: Entry, beside: Sequence[str]) -> None:
        for other in self.entries.values():
            if (
                other.ordered
                and other.acked
                and not other.over
                and other.id not in beside
                and (other.shop, other.publisher) == (entry.shop, entry.publisher)
                and other.number < entry.number
            ):
                self.report(("strict_overtaken", f"{entry.id} starts before {other.id} is over"))

    def crash(self, id: str) -> None:
        """A process dies in the handler of this message, which is found out soon."""
        entry = self.entries[id]
        entry.crashes += 1
        if entry.crashes > MAX_CRASHES:
            self.report(("poison_not_found", f"{entry.crashes} processes died with {id} in hand"))

    def end(self, id: str, word: str, last_attempt: bool) -> None:
        entry = self.entries[id]
        entry.done += word == "done"
        entry.over = entry.over or word in ("done", "reject") or (word == "retry" and last_attempt)
