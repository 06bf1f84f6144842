"""The books: what happened, by group and by resource, in the transaction in which it happened.

Operations of one group commit note into the same books; they are written once, before COMMIT. So
the figures are right after any crash, and cost a write or two per resource and commit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

DECAY_MS = 60_000  # rates are means over about the last minute
CYCLES = 8  # remembered per resource, the newest
Execute = Callable[..., Any]

_cycles = msgspec.json.Decoder(list[tuple[int, str, int, int]])


@dataclass(slots=True)
class _Page:
    """One resource's entries in one transaction."""

    arrived: int = 0
    done: int = 0
    failed: int = 0
    dead: int = 0
    cycles: list[tuple[int, str, int, int]] = field(default_factory=list)


class Books:
    """Notes of one transaction. ``close`` writes them, once."""

    __slots__ = ("_ledger", "_loads", "_pages", "_run")

    def __init__(self, run: Execute) -> None:
        self._run = run
        self._ledger: Counter[tuple[int, str]] = Counter()
        self._pages: dict[int, _Page] = {}
        self._loads: Counter[tuple[int, str]] = Counter()

    def count(self, gid: int, name: str, times: int = 1) -> None:
        """Add to a group's ledger; the names are those of ``LEDGER``."""
        if times:
            self._ledger[gid, name] += times

    def settled(self, gid: int, rid: int, *, done: int, failed: int, dead: int) -> None:
        page = self._page(rid)
        page.done, page.failed, page.dead = page.done + done, page.failed + failed, page.dead + dead
        self.count(gid, "messages_done", done)
        self.count(gid, "messages_retried", failed)
        self.count(gid, "messages_dead", dead)

    def arrived(self, rid: int, messages: int) -> None:
        """What the request had counted in since the last time."""
        if messages:
            self._page(rid).arrived += messages

    def cycle(self, gid: int, rid: int, at_ms: int, end: str, handled: int, took_ms: int) -> None:
        self._page(rid).cycles.append((at_ms, end, handled, took_ms))
        self.count(gid, f"cycles_{end}")

    def load(self, gid: int, tenant: str, messages: int) -> None:
        """More (or fewer) unfinished messages of a tenant, if its group limits them."""
        self._loads[gid, tenant] += messages

    def noted_load(self, gid: int, tenant: str) -> int:
        """What ``load`` has noted and ``close`` has still to write."""
        return self._loads[gid, tenant]

    def recounted(self, gid: int, tenant: str) -> None:
        """The tenant's load was counted afresh: what was noted before is in it."""
        self._loads.pop((gid, tenant), None)

    def close(self, now_ms: int) -> None:
        for (gid, tenant), change in self._loads.items():
            if change:
                self._run("load_tenant", change, gid, tenant)
        for (gid, name), value in self._ledger.items():
            self._run("add_to_ledger", gid, name, value)
        for rid, page in self._pages.items():
            self._write(rid, page, now_ms)

    def _page(self, rid: int) -> _Page:
        page = self._pages.get(rid)
        if page is None:
            page = self._pages[rid] = _Page()
        return page

    def _write(self, rid: int, page: _Page, now_ms: int) -> None:
        row = self._run("stats", rid).fetchone()
        at_ms, arrived, done, failed, dead, arrival, service, cycles = row or _NEW
        kept = math.exp(-max(now_ms - at_ms, 0) / DECAY_MS)
        served = page.done + page.dead
        recent = [*_cycles.decode(cycles), *page.cycles][-CYCLES:]
        self._run(
            "write_stats",
            rid,
            now_ms,
            arrived + page.arrived,
            done + page.done,
            failed + page.failed,
            dead + page.dead,
            arrival * kept + page.arrived * 1000 / DECAY_MS,
            service * kept + served * 1000 / DECAY_MS,
            msgspec.json.encode(recent).decode(),
        )


_NEW = (0, 0, 0, 0, 0, 0.0, 0.0, "[]")
