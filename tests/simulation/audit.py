"""What must hold after every commit, whatever was killed, stopped or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attention_queue.contract import Done, Retry
from attention_queue.engines.sqlite.claim import Claim
from attention_queue.engines.sqlite.finish import Finishing
from attention_queue.engines.sqlite.publish import Publishing
from attention_queue.engines.sqlite.settle import Settling
from attention_queue.ports import Begun, Settled
from simulation.database import Memory, Message, Request, Snapshot, TokenRow
from simulation.ledger import Ledger
from simulation.moves import Moves

Fault = tuple[str, str]  # what kind of rule is broken, and by what
LASTING = ("rate", "stop", "head", "state")  # holds that a publish or a release does not end


class Audit:
    """Compares the database before and after each commit and tells ``report`` what is wrong."""

    def __init__(
        self,
        memory: Memory,
        now: Callable[[], int],
        ledger: Ledger,
        report: Callable[[Fault], None],
        set_back: Callable[[], int],
    ) -> None:
        self._memory, self._now, self._ledger, self._report = memory, now, ledger, report
        self._set_back = set_back  # milliseconds by which the clock was set back so far
        self.last = memory.snapshot(now())
        self._fences: dict[int, int] = {}
        self.commits = 0
        self.moves = Moves(ledger)

    def __call__(self, operation: object) -> None:
        before, after = self.last, self._memory.snapshot(self._now())
        self.last = after
        self.commits += 1
        for fault in (
            *self.moves.enter(before, after, operation),
            *self._moved(before, after, operation),
            *standing(after, 1 + self._set_back()),
        ):
            self._report(fault)

    def judge(self) -> Iterator[Fault]:
        return self.moves.judge(*self._memory.books())

    def _moved(self, before: Snapshot, after: Snapshot, operation: object) -> Iterator[Fault]:
        if before.tokens != after.tokens:
            yield from released(before, after, operation)
            yield from self._granted(before, after)
            yield from lent(before, after)
        if isinstance(operation, Publishing):
            yield from pulled(before, after)
        if before.messages != after.messages:
            yield from removed(before, after, operation, self._ledger)
            yield from charged(before, after, operation)

    def _granted(self, before: Snapshot, after: Snapshot) -> Iterator[Fault]:
        for key in after.tokens.keys() - before.tokens.keys():
            token = after.tokens[key]
            if token.fence <= self._fences.get(token.rid, 0):
                yield "fence_went_back", f"{token}"
            self._fences[token.rid] = token.fence
            yield from granted(before, after, token)


def granted(before: Snapshot, after: Snapshot, token: TokenRow) -> Iterator[Fault]:
    """A new token: within the limit of this moment, for an active resource, through no hold."""
    rid, now = token.rid, after.now
    valid = [each for each in after.held(rid) if each.until > now]
    limit = after.shops[rid].policy.max_consumers
    if len(valid) > limit:
        yield "too_many_tokens", f"{len(valid)} of {limit}: {valid}"
    if not after.active(rid):
        yield "served_while_inactive", f"{token} {after.shops[rid]}"
    request = before.requests.get(rid)
    if request and request.why in LASTING and request.hold > now:
        yield "hold_ignored", f"{request} {token}"


def lent(before: Snapshot, after: Snapshot) -> Iterator[Fault]:
    """A new loan: of messages that are due, that nobody else has, and a suspect by itself."""
    for key, token in after.tokens.items():
        old = before.tokens.get(key)
        if old is not None and old.loan == token.loan:
            continue
        hand = _in_hand(after, token)
        others = [each for each in after.held(token.rid) if each.fence != token.fence]
        for message in hand:
            if message.due > after.now:
                yield "taken_too_early", f"{message} by {token}"
            if any(other.lends(message) for other in others):
                yield "lent_twice", f"{message} to {token} and one of {others}"
        if len(hand) > 1 and any(message.suspect for message in hand):
            yield "suspect_in_company", f"{hand}"


def pulled(before: Snapshot, after: Snapshot) -> Iterator[Fault]:
    """A publish leaves a hold as it is."""
    for rid, old in before.requests.items():
        new = after.requests[rid]
        if old.why and old.hold > after.now and (new.why, new.hold) != (old.why, old.hold):
            yield "hold_ignored", f"{old} -> {new}"


def released(before: Snapshot, after: Snapshot, operation: object) -> Iterator[Fault]:
    """A token goes by its holder, or by a claim once it has ended."""
    mine = _begun(operation)
    for key in before.tokens.keys() - after.tokens.keys():
        token = before.tokens[key]
        if mine is not None and token.fence != mine.token.fence:
            yield "released_anothers_token", f"{token} by {mine.token}"
        if isinstance(operation, Claim) and token.until > after.now:
            yield "valid_token_taken", f"{token}"


def removed(
    before: Snapshot, after: Snapshot, operation: object, ledger: Ledger
) -> Iterator[Fault]:
    """A message goes by the holder that has it on loan, handled; or it is with the dead letters."""
    mine = _begun(operation)
    done = {each.message.id for each, said in _outcomes(operation) if isinstance(said, Done)}
    for key in before.messages.keys() - after.messages.keys():
        message = before.messages[key]
        if key in after.dead:
            ledger.bury(message.id)
        if mine is not None:
            token = before.tokens.get((message.rid, mine.token.fence))
            if token is None:
                yield "settled_by_stale_holder", f"{message} by {mine.token}"
            elif not token.lends(message) and after.causes.get(key) != "expired":
                yield "settled_beyond_loan", f"{message} by {token}"
        if message.id in done and not ledger.was_done(message.id):
            yield "settled_unhandled", f"{message}"
        known = key in after.dead or ledger.entries[message.id].discarded
        if message.id not in done and not known:
            yield "message_vanished", f"{message}"


def charged(before: Snapshot, after: Snapshot, operation: object) -> Iterator[Fault]:
    """An attempt is counted for a failure, or for a death with that one suspect alone in hand."""
    failed = {each.message.id for each, said in _outcomes(operation) if isinstance(said, Retry)}
    for key, message in after.messages.items():
        old = before.messages.get(key)
        if old is None or message.failed == old.failed or message.id in failed:
            continue
        lenders = [t for t in before.tokens.values() if t.rid == old.rid and t.lends(old)]
        if not old.suspect or not any(_in_hand(before, token) == [old] for token in lenders):
            yield "innocent_charged", f"{old} -> {message}, on loan to {lenders}"


def _in_hand(before: Snapshot, token: TokenRow) -> list[Message]:
    return [m for m in before.messages.values() if m.rid == token.rid and token.lends(m)]


def standing(after: Snapshot, slack: int) -> Iterator[Fault]:
    """Work or a token means a request, early enough; the backlog is counted right.

    ``slack`` are milliseconds: a lease that is renewed after the clock was set back ends earlier
    than the request, which nobody has touched, is due.
    """
    counts: dict[int, int] = {}
    for message in after.messages.values():
        counts[message.rid] = counts.get(message.rid, 0) + 1
    for rid in counts.keys() | {token.rid for token in after.tokens.values()}:
        request = after.requests.get(rid)
        if request is None:
            word = "work" if rid in counts else "token"
            yield f"{word}_without_request", f"{after.shops[rid].name}"
            continue
        if request.backlog != counts.get(rid, 0):
            yield "backlog_miscounted", f"{request}, there are {counts.get(rid, 0)}"
        if request.due > after.now:
            yield from _late(after, request, slack)


def _late(after: Snapshot, request: Request, slack: int) -> Iterator[Fault]:
    """A request that waits: for a hold, a token's end, or the earliest message; not longer."""
    if not after.active(request.rid):
        return
    if request.why == "state":
        yield "held_though_active", f"{request}"
    if request.why in LASTING and request.hold > after.now:
        if request.due < request.hold:
            yield "hold_ignored", f"{request}"
        return
    ends = [token.until for token in after.held(request.rid)]
    moments = ends or [message.due for message in after.free(request.rid)]
    if moments and request.due > max(min(moments), after.now) + slack:
        yield "request_too_late", f"{request}, at {after.now} wanted by {min(moments)}"


def _settling(operation: object) -> Settling | None:
    match getattr(operation, "finishing", operation):  # half of a finish has the whole one
        case Settling() as settling:
            return settling
        case Finishing(settling=settling):
            return settling
        case _:
            return None


def _begun(operation: object) -> Begun | None:
    settling = _settling(operation)
    return settling.begun if settling else None


def _outcomes(operation: object) -> Sequence[Settled]:
    settling = _settling(operation)
    return settling.outcomes if settling else ()
