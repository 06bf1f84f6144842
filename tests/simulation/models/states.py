"""What the model of the protocol knows: one resource, its request, publishers and workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

READY, TIMER, NEVER = range(3)  # when a request falls due: now, with time, not by itself


class Request(NamedTuple):
    due: int
    hold: str = ""  # busy or state


class Publisher(NamedTuple):
    """One publisher with one message."""

    at: str = "new"  # new, written, asked, done, dead
    message: str = "none"  # none, written, later, ready, lent, orphan, done
    delayed: bool = False
    lock: str = ""  # of the request's row, until it commits: insert, update


class Worker(NamedTuple):
    """One slot of a worker: it claims, takes one message, settles it, finishes."""

    at: str = "idle"  # idle, take, run, finish, lock, look, soft, softlook
    token: str = ""  # valid, ended (nobody has noticed), gone (a claim took it away)
    lent: bool = False
    lock: str = ""  # row, or resource and row
    seen: tuple[str, bool] | None = None  # a look that came before the lock


class World(NamedTuple):
    request: Request | None
    publishers: tuple[Publisher, ...]
    workers: tuple[Worker, ...]
    person: str  # none, before, paused, resuming, asked, after
    limit: int
    faults: int  # that may still happen
    state: str = "active"
    orphans: int = 0  # valid tokens of dead holders
    ended: int = 0  # their tokens that have ended, and that nobody has noticed
    disturbed: bool = False

    def locked(self) -> bool:
        """Whether somebody holds the lock of the request's row."""
        return (
            any(each.lock for each in self.publishers)
            or any(each.lock for each in self.workers)
            or self.person == "asked"
        )

    def resource_locked(self) -> bool:
        return any(each.lock == "resource" for each in self.workers)

    def publishing(self) -> bool:
        """Whether a publisher's transaction is open; it shares the lock of the resource."""
        return any(each.at in ("written", "asked") for each in self.publishers)

    def valid(self) -> int:
        return self.orphans + sum(each.token == "valid" for each in self.workers)

    def has(self, *states: str) -> bool:
        return any(each.message in states for each in self.publishers)

    def first(self, message: str) -> int:
        return next(n for n, each in enumerate(self.publishers) if each.message == message)

    def publisher(self, n: int, **changes: object) -> World:
        each = self.publishers[n]._replace(**changes)
        return self._replace(publishers=(*self.publishers[:n], each, *self.publishers[n + 1 :]))

    def worker(self, n: int, **changes: object) -> World:
        each = self.workers[n]._replace(**changes)
        return self._replace(workers=(*self.workers[:n], each, *self.workers[n + 1 :]))

    def move(self, was: str, now: str) -> World:
        """One message, the first in that state, becomes another."""
        return self.publisher(self.first(was), message=now)

    def sorted(self) -> World:
        """Publishers and workers have no names: worlds that differ by them are one."""
        return self._replace(
            publishers=tuple(sorted(self.publishers)),
            workers=tuple(sorted(self.workers, key=repr)),
        )


Steps = Iterator[tuple[str, World]]
