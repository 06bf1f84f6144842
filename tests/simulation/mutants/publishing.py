"""Publishing that is not one unit, or relies on a request that it may not rely on.

H6 (a mark that outlives its request), H5 and H8 (asking before the work is stored) and H1
(coalescing onto a request seen in an earlier transaction) are a broker's faults in SQL's clothes.
"""

from __future__ import annotations

from collections.abc import Sequence

from attention_queue.contract import WorkMessage
from attention_queue.engines.sqlite import publish
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.publish import Publishing
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.ports import Put
from simulation.loop import LANE
from simulation.scenario import Profile
from simulation.world import Mutant

_ask = publish._ask
_relied: set[int] = set()  # resources whose request was seen in an earlier transaction
_remembered: dict[tuple[object, int], int] = {}


def _rids(tx: Transaction, messages: Sequence[WorkMessage], group: str) -> set[int]:
    gid = tx.first("group", group)[0]
    return {
        tx.first("find", gid, message.resource.tenant, message.resource.id)[0]
        for message in messages
    }


class _InTwo(SqliteEngine):
    """``put`` in two transactions; subclasses say what the first one does."""

    async def put(self, group: str, messages: Sequence[WorkMessage]) -> Put:
        rids = await self.writer.run(lambda tx: self.first(tx, _rids(tx, messages, group)))
        await self.between()
        return await self.writer.run(lambda tx: self.second(tx, group, messages, rids), wakes=True)

    def first(self, tx: Transaction, rids: set[int]) -> set[int]:
        raise NotImplementedError

    def second(
        self, tx: Transaction, group: str, messages: Sequence[WorkMessage], rids: set[int]
    ) -> Put:
        _relied.clear()
        _relied.update(rids)
        return Publishing(self.directory, group, messages)(tx)


class LooksEarlier(_InTwo):
    """First a look at what stands; then the work, relying on what was seen."""

    def first(self, tx: Transaction, rids: set[int]) -> set[int]:
        return {rid for rid in rids if tx.first("request", rid)}


class AsksBefore(_InTwo):
    """First the request, then the work."""

    def first(self, tx: Transaction, rids: set[int]) -> set[int]:
        for rid in rids:
            if not tx.first("request", rid):
                tx.run("ask", rid, 1, 1, 0, tx.next(), tx.now_ms, 0)
        return rids


class AsksAfter(SqliteEngine):
    """First the work, then the request."""

    async def put(self, group: str, messages: Sequence[WorkMessage]) -> Put:
        rids = await self.writer.run(lambda tx: _rids(tx, messages, group))
        _relied.clear()
        _relied.update(rids)
        done = await self.writer.run(Publishing(self.directory, group, messages), wakes=True)
        await self.between()
        await self.writer.run(lambda tx: self.ask(tx, rids), wakes=True)
        return done

    def ask(self, tx: Transaction, rids: set[int]) -> None:
        for rid in rids:
            if not tx.run("release_hold", tx.next(), tx.now_ms, rid):
                tx.run("ask", rid, 1, 1, 0, tx.next(), tx.now_ms, tx.first("count_work", rid)[0])


def _relies(tx: Transaction, place: publish._Place) -> bool:
    return False if place.request[0] in _relied else _ask(tx, place)


def _never_pulls(tx: Transaction, place: publish._Place) -> bool:
    row = place.request
    if row[5] is not None:
        place.request = (*row[:5], 0, *row[6:])  # as if it could not fire any earlier
    return _ask(tx, place)


def _ignores_holds(tx: Transaction, place: publish._Place) -> bool:
    place.request = (*place.request[:6], None, *place.request[7:])
    return _ask(tx, place)


def _remembers(tx: Transaction, place: publish._Place) -> bool:
    """A publisher that has asked within the last half second does not ask again."""
    key = LANE.get(), place.request[0]
    asked, _remembered[key] = _remembered.get(key), tx.now_ms
    return False if asked is not None and tx.now_ms - asked < 500 else _ask(tx, place)


LOST = frozenset({"work_without_request", "request_too_late"})
PUBLISHING = (
    Mutant(
        name="publish relies on a request seen in an earlier transaction (H1)",
        kinds=LOST,
        swaps=((publish, "_ask", _relies),),
        engine=LooksEarlier,
    ),
    Mutant(
        name="publish asks before the work is stored (H5, H8)",
        kinds=LOST | {"backlog_miscounted"},
        swaps=((publish, "_ask", _relies),),
        engine=AsksBefore,
    ),
    Mutant(
        name="publish asks in a transaction of its own",
        kinds=LOST,
        swaps=((publish, "_ask", _relies),),
        engine=AsksAfter,
    ),
    Mutant(
        name="publisher remembers that it has asked (H6)",
        kinds=LOST,
        swaps=((publish, "_ask", _remembers),),
    ),
    Mutant(
        name="publish never pulls a later request forward (H26)",
        kinds=frozenset({"request_too_late"}),
        swaps=((publish, "_ask", _never_pulls),),
        profile=Profile(delayed=0.5),
    ),
    Mutant(
        name="publish pulls a request through its hold (H34)",
        kinds=frozenset({"hold_ignored"}),
        swaps=((publish, "_ask", _ignores_holds),),
    ),
)
