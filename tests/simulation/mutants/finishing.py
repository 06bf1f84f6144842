"""The end of a cycle with two of its lines swapped, or taken apart into two transactions.

The product does all of it in one transaction, in this order: outcomes, release, look, request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attention_queue.contract import Hold
from attention_queue.engines.sqlite import finish
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.finish import Finishing
from attention_queue.engines.sqlite.loans import free_message, loan_of
from attention_queue.engines.sqlite.settle import Settling, handle_of
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import TokenLost
from attention_queue.ports import Begun, Ending, Left, Settled
from simulation.scenario import Profile
from simulation.world import Mutant

_look, _rearm, _free = Finishing.look, Finishing._rearm, finish.free_message
LOST = frozenset({"work_without_request", "token_without_request"})


def _rid(finishing: Finishing) -> int:
    return handle_of(finishing.settling.begun).record.rid


def _record(tx: Transaction, finishing: Finishing) -> None:
    """The outcomes, under the fence."""
    rid, token = _rid(finishing), finishing.settling.begun.token
    if not tx.first("holds_token", rid, token.slot, token.fence):
        raise TokenLost(token.resource, token.slot)
    finishing.settling.events = []
    if gone := finishing.settling.record(tx):
        tx.run("count_out", gone, rid)


def _release(tx: Transaction, finishing: Finishing) -> None:
    token = finishing.settling.begun.token
    if not tx.run("take_token", _rid(finishing), token.slot, token.fence):
        raise TokenLost(token.resource, token.slot)
    handle_of(finishing.settling.begun).released = True


def _others_end(tx: Transaction, finishing: Finishing) -> tuple[int | None, int | None]:
    """What a look would see: when the earliest free message falls due, when a token ends."""
    fence = finishing.settling.begun.token.fence
    tokens = [row for row in tx.all("tokens", _rid(finishing)) if row[1] != fence]
    due = free_message(tx, _rid(finishing), loan_of(tokens))
    return due, min((row[2] for row in tokens), default=None)


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two transactions of a finish."""

    finishing: Finishing
    run: Callable[[Transaction, Finishing], object]

    def __call__(self, tx: Transaction) -> object:
        return self.run(tx, self.finishing)


class _InTwo(SqliteEngine):
    """``finish`` in two transactions; others may run between them."""

    async def finish(
        self, begun: Begun, outcomes: Sequence[Settled], ending: Ending, handled: int = 0
    ) -> Left:
        finishing = Finishing(Settling(begun, outcomes), ending, 0.0, handled)
        seen = await self.writer.run(Half(finishing, self.first), wakes=True)
        await self.between()
        second = Half(finishing, lambda tx, finishing: self.second(tx, finishing, seen))
        await self.writer.run(second, wakes=True)
        return finishing.left

    def first(self, tx: Transaction, finishing: Finishing) -> object:
        raise NotImplementedError

    def second(self, tx: Transaction, finishing: Finishing, seen: object) -> None:
        raise NotImplementedError


class LooksBefore(_InTwo):
    """Outcomes and look; then release, and act on what was seen (H2, H4, H30)."""

    def first(self, tx: Transaction, finishing: Finishing) -> object:
        _record(tx, finishing)
        return _others_end(tx, finishing)

    def second(self, tx: Transaction, finishing: Finishing, seen: object) -> None:
        _release(tx, finishing)
        due, ends = seen
        if due is None and ends is None:
            tx.run("drop_request", _rid(finishing))
        else:
            _look(finishing, tx)


class LooksOnlyOnce(_InTwo):
    """Outcomes, release and look; then drop the request if it is still of the same time (H2, H3).

    A version that is compared, and no lock from the look to the delete: two requests of one
    millisecond look alike, and a publish that relies on the request does not change it.
    """

    def first(self, tx: Transaction, finishing: Finishing) -> object:
        _record(tx, finishing)
        _release(tx, finishing)
        if any(moment is not None for moment in _others_end(tx, finishing)):
            _look(finishing, tx)
            return None
        request = tx.first("request", _rid(finishing))
        tx.run("wait_until", tx.now_ms + 50, _rid(finishing))
        return request and tx.now_ms + 50

    def second(self, tx: Transaction, finishing: Finishing, seen: object) -> None:
        request = tx.first("request", _rid(finishing))
        if seen is not None and request is not None and request[0] in (0, seen):
            tx.run("drop_request", _rid(finishing))


class SettlesFirst(_InTwo):
    """The request is settled with the release; then look, and ask again (H9)."""

    def first(self, tx: Transaction, finishing: Finishing) -> object:
        _record(tx, finishing)
        _release(tx, finishing)
        tx.run("drop_request", _rid(finishing))
        return None

    def second(self, tx: Transaction, finishing: Finishing, seen: object) -> None:
        _look(finishing, tx)


class ReleasesLast(_InTwo):
    """Outcomes, look and ask while the token is still ours; the release comes last."""

    def first(self, tx: Transaction, finishing: Finishing) -> object:
        _record(tx, finishing)
        finishing.left = _look(finishing, tx)
        return None

    def second(self, tx: Transaction, finishing: Finishing, seen: object) -> None:
        _release(tx, finishing)


def _looks_past_other_tokens(self: Finishing, tx: Transaction) -> Left:
    """No free message: the request goes, though another slot is held (H31)."""
    rid = _rid(self)
    if free_message(tx, rid, loan_of(tx.all("tokens", rid))) is None:
        tx.run("drop_request", rid)
        return Left(0, False)
    return _look(self, tx)


def _keeps_busy_holds(self: Finishing, tx: Transaction, *values: object, **moments: object) -> None:
    """The release leaves the request parked for the end of a token that is no more (H11)."""
    request: Row | None = tx.first("request", _rid(self))
    if request and request[2] == Hold.BUSY.value and request[1] > tx.now_ms:
        return
    _rearm(self, tx, *values, **moments)


def _sees_only_what_is_ready(tx: Transaction, rid: int, others: Sequence[object]) -> int | None:
    due = _free(tx, rid, others)
    return due if due is None or due <= tx.now_ms else None


FINISHING = (
    Mutant(name="look before release (H2, H4, H30)", kinds=LOST, engine=LooksBefore),
    Mutant(name="request dropped by its version (H2, H3)", kinds=LOST, engine=LooksOnlyOnce),
    Mutant(name="request settled before the look (H9)", kinds=LOST, engine=SettlesFirst),
    Mutant(
        name="release after the ask",
        kinds=frozenset({"request_too_late", "sweep_found"}),
        engine=ReleasesLast,
    ),
    Mutant(
        name="request dropped beside another slot (H31)",
        kinds=LOST,
        swaps=((Finishing, "look", _looks_past_other_tokens),),
        profile=Profile(plans=("two",)),
    ),
    Mutant(
        name="release leaves the busy hold (H11)",
        kinds=frozenset({"request_too_late"}),
        swaps=((Finishing, "_rearm", _keeps_busy_holds),),
    ),
    Mutant(
        name="finish forgets delayed work",
        kinds=LOST,
        swaps=((finish, "free_message", _sees_only_what_is_ready),),
    ),
)
