"""Loans as ranges on the token, one transaction for each verb: what the SQLite engine does.

Nothing is written to a message that is taken: it is free if it is ready and in no token's range.
Messages are numbered as they were stored; those with a due time all fell due in the same moment
here, which is the worst case for a range. Two messages make a loan, and a slice is one loan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from simulation.models.states import NEVER, READY, TIMER, Request

TAKE = 2  # messages on loan at once
Range = tuple[str, int, int]  # now or due, first and last message


class Message(NamedTuple):
    state: str = "new"  # new, now, wait, due, gone
    suspect: bool = False


class Holder(NamedTuple):
    """A worker's slot, or what is left of one that died (``dead``)."""

    at: str = "idle"  # idle, serve, finish, dead
    token: str = ""  # valid, ended, gone
    loan: tuple[Range, ...] = ()
    hand: tuple[int, ...] = ()  # delivered, and not settled


class World(NamedTuple):
    messages: tuple[Message, ...]
    holders: tuple[Holder, ...]
    faults: int
    retries: int
    request: Request | None = None
    person: str = "none"
    disturbed: bool = False
    wrong: str = ""

    def active(self) -> bool:
        return self.person != "paused"

    def tokens(self, *states: str) -> list[Holder]:
        return [each for each in self.holders if each.token in states]

    def message(self, n: int, **changes: object) -> World:
        each = self.messages[n]._replace(**changes)
        return self._replace(messages=(*self.messages[:n], each, *self.messages[n + 1 :]))

    def holder(self, n: int, each: Holder) -> World:
        return self._replace(holders=(*self.holders[:n], each, *self.holders[n + 1 :]))

    def free(self, lent: Sequence[Range]) -> list[int]:
        """Messages that may be taken, in the order in which they are."""
        ready = [n for kind in ("due", "now") for n in self.of(kind)]
        return [n for n in ready if not within(lent, self.messages[n].state, n)]

    def of(self, state: str) -> list[int]:
        return [n for n, each in enumerate(self.messages) if each.state == state]


def within(ranges: Sequence[Range], kind: str, n: int) -> bool:
    return any(kind == k and first <= n <= last for k, first, last in ranges)


def lent_by(holders: Sequence[Holder]) -> list[Range]:
    return [each for holder in holders for each in holder.loan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loans:
    """The model; ``broken`` names a mistake that it makes."""

    limit: int = 2
    messages: int = 3
    delayed: int = 0  # of them, the first ones
    workers: int = 2
    faults: int = 1
    retries: int = 1
    person: bool = False
    broken: str = ""

    def start(self) -> World:
        return World(
            (Message(),) * self.messages,
            (Holder(),) * self.workers,
            self.faults,
            self.retries,
            person="before" if self.person else "none",
        )

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        if world.wrong:
            return
        parts = chain(
            self._put(world),
            *(self._serve(world, n) for n in range(len(world.holders))),
            *(self._break(world, n) for n in range(len(world.holders))),
            self._time(world),
            self._people(world),
        )
        for label, after in parts:
            yield label, after._replace(holders=tuple(sorted(after.holders)))

    def fault(self, world: World, *, ended: bool, waits: bool) -> str | None:
        valid = world.tokens("valid")
        hands = [n for each in valid for n in each.hand]
        if world.wrong or len(valid) > self.limit:
            return world.wrong or "more holders than the limit"
        if len(hands) != len(set(hands)):
            return "one message in two hands"
        alive = [each for each in valid if each.at != "dead"]
        hidden = [(n, each) for n in world.of("now") for each in alive if n not in each.hand]
        if any(within(each.loan, "now", n) for n, each in hidden):
            return "a message is hidden by a loan that does not have it"
        if not world.active():
            return None
        left = [each for each in world.messages if each.state not in ("new", "gone")]
        if ended and (left or world.tokens("valid", "ended") or world.request):
            return "work, a token or a request is left for ever"
        free = world.free(lent_by(world.tokens("valid", "ended")))
        if waits and free and not valid and not world.disturbed:
            return "ready work waits for time, though a slot is free"
        return None

    def _put(self, world: World) -> Iterator[tuple[str, World]]:
        new = world.of("new")
        if not new:
            return
        later = new[0] < self.delayed
        request = world.request
        if request is None:
            request = Request(TIMER if later else READY)
        elif not later and not request.hold and self.broken != "never pulls forward":
            request = Request(READY)
        after = world._replace(request=request)
        yield "put", after.message(new[0], state="wait" if later else "now")

    def _serve(self, world: World, n: int) -> Iterator[tuple[str, World]]:
        me = world.holders[n]
        if me.at == "idle" and world.request and world.request.due == READY:
            yield "begin", self._begin(world, n)
        if me.at == "serve":
            yield "settle: done", self._settle(world, n, ())
            for retried in me.hand if world.retries else ():
                after = world._replace(retries=world.retries - 1)
                yield "settle: one retried", self._settle(after, n, (retried,))
        if me.at in ("serve", "finish"):
            for handled in range(len(me.hand) + 1):
                yield f"finish: {handled} done", self._finish(world, n, me.hand[:handled])

    def _begin(self, world: World, n: int) -> World:
        if not world.active():
            return world._replace(request=Request(NEVER, "state"))
        if self.broken != "ended tokens stay":
            world = _rescue(world)
        valid = world.tokens("valid")
        if len(valid) >= self.limit:
            return world._replace(request=Request(TIMER, "busy"))
        others = lent_by(world.tokens("valid", "ended"))
        taken = self._take(world, others)
        if not taken:
            due = world.of("wait") or valid
            return world._replace(request=Request(TIMER) if due else None)
        full = len(valid) + 1 >= self.limit
        more = len(world.free([])) > TAKE * (len(valid) + 1)
        request = Request(TIMER, "busy") if full else Request(READY if more else TIMER)
        loan = self._lend(world, taken, others)
        return world._replace(request=request).holder(n, Holder("serve", "valid", loan, taken))

    def _take(self, world: World, others: Sequence[Range]) -> tuple[int, ...]:
        """Up to ``TAKE`` that are free; a suspect comes alone."""
        taken: list[int] = []
        for n in world.free([] if self.broken == "take ignores loans" else others):
            if world.messages[n].suspect:
                return tuple(taken) or (n,)
            taken.append(n)
            if len(taken) == TAKE:
                break
        return tuple(taken)

    def _lend(
        self, world: World, taken: Sequence[int], others: Sequence[Range]
    ) -> tuple[Range, ...]:
        ranges: list[Range] = []
        for n in taken:
            kind = world.messages[n].state
            apart = not ranges or ranges[-1][0] != kind
            if not apart and self.broken != "a range spans another's":
                apart = any(k == kind and ranges[-1][2] < first < n for k, first, _ in others)
            if apart:
                ranges.append((kind, n, n))
            else:
                ranges[-1] = (kind, ranges[-1][1], n)
        return tuple(ranges)

    def _settle(self, world: World, n: int, retried: tuple[int, ...]) -> World:
        me = world.holders[n]
        if me.token == "gone" and self.broken != "no fence":
            return world.holder(n, Holder())
        done = tuple(each for each in me.hand if each not in retried)
        world = self._record(world, me, done)
        for each in retried:
            if world.messages[each].state != "gone":
                world = world.message(each, state="wait", suspect=False)
        me = me._replace(hand=())
        others = [h for at, h in enumerate(world.holders) if at != n and h.token in _HELD]
        taken = self._take(world, lent_by(others)) if me.token != "gone" else ()
        if not taken:
            return world.holder(n, me._replace(at="finish"))
        loan = self._lend(world, taken, lent_by(others))
        return world.holder(n, me._replace(loan=loan, hand=taken))

    def _record(self, world: World, me: Holder, done: tuple[int, ...]) -> World:
        """Delete what is done: whole ranges of ``now`` as one run, all else one by one."""
        runs: list[Range] = []
        for kind, first, last in me.loan:
            mine = [each for each in me.hand if first <= each <= last]
            if mine and kind == "now" and done == me.hand:
                runs.append((kind, mine[0], mine[-1]))
            else:
                runs += [(kind, each, each) for each in mine if each in done]
        for kind, first, last in runs:
            for each in range(first, last + 1):
                if world.messages[each].state == kind:
                    if each not in done:
                        world = world._replace(wrong="deleted what was not handled")
                    if me.token == "gone":
                        world = world._replace(wrong="settled by a stale holder")
                    world = world.message(each, state="gone", suspect=False)
        return world

    def _finish(self, world: World, n: int, done: tuple[int, ...]) -> World:
        me = world.holders[n]
        if me.token == "gone":
            return world.holder(n, Holder())
        part = me if done == me.hand else me._replace(hand=done)
        world = self._record(world, part, done).holder(n, Holder())
        tokens = world.tokens("valid", "ended")
        if not world.active():
            return world._replace(request=Request(NEVER, "state"))
        if world.free(lent_by(tokens)):
            return world._replace(request=Request(READY))
        if self.broken == "drops beside another slot":
            tokens = []
        waits = tokens or world.of("wait")
        return world._replace(request=Request(TIMER) if waits else None)

    def _break(self, world: World, n: int) -> Iterator[tuple[str, World]]:
        me = world.holders[n]
        if not world.faults or me.token not in _HELD or me.at == "dead":
            return
        hurt = world._replace(faults=world.faults - 1, disturbed=True)
        dead = hurt.holder(n, me._replace(at="dead", hand=()))
        yield "crash", dead._replace(holders=(*dead.holders, Holder()))
        if me.token == "valid":
            yield "stopped past the lease", hurt.holder(n, me._replace(token="ended"))

    def _time(self, world: World) -> Iterator[tuple[str, World]]:
        for n, each in enumerate(world.holders):
            if each.at == "dead" and each.token == "valid":
                yield "timer: a lease ends", world.holder(n, each._replace(token="ended"))
        if world.request and world.request.due == TIMER:
            request = world.request._replace(due=READY)
            messages = tuple(
                each._replace(state="due") if each.state == "wait" else each
                for each in world.messages
            )
            yield "timer: falls due", world._replace(request=request, messages=messages)

    def _people(self, world: World) -> Iterator[tuple[str, World]]:
        if world.person == "before":
            yield "pause", world._replace(person="paused")
        if world.person == "paused":
            work = world.request or world.of("now") or world.of("due") or world.of("wait")
            yield "resume", world._replace(person="after", request=Request(READY) if work else None)


_HELD = ("valid", "ended")


def _rescue(world: World) -> World:
    """Ended tokens are taken away; what they had on loan is free again, and suspect."""
    for n, each in reversed(list(enumerate(world.holders))):
        if each.token != "ended":
            continue
        for at, message in enumerate(world.messages):
            if within(each.loan, message.state, at):
                world = world.message(at, suspect=True)
        if each.at == "dead":
            world = world._replace(holders=(*world.holders[:n], *world.holders[n + 1 :]))
        else:
            world = world.holder(n, each._replace(token="gone", loan=()))
    return world
