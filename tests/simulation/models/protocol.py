"""The protocol with N slots on a database of many writers, statement by statement.

One resource; publishers with a message each; workers that take one message a slice; a crash or the
end of a live holder's lease at any statement; somebody who pauses and resumes, or changes N. The
request exists whenever work or a token does, and no worker ever holds it: a claim makes a token of
it and parks it. ``Variant.UPSERT`` locks the request's row at every publish; ``Variant.INSERT``
touches it only to pull it forward, and finishing asks for the resource's lock instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain

from simulation.models.states import NEVER, READY, TIMER, Publisher, Request, Steps, Worker, World


class Variant(Enum):
    UPSERT = "upsert"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The model; ``broken`` names a mistake that it makes."""

    variant: Variant = Variant.UPSERT
    limit: int = 1  # consumers
    new_limit: int = 0  # the limit changes to it, at any moment
    publishers: int = 2
    delayed: int = 0  # of them publish for later
    workers: int = 2
    faults: int = 0
    person: bool = False  # pauses and resumes
    broken: str = ""

    def start(self) -> World:
        delayed = (Publisher(delayed=True),) * self.delayed
        prompt = (Publisher(),) * (self.publishers - self.delayed)
        return World(
            None,
            delayed + prompt,
            (Worker(),) * self.workers,
            "before" if self.person else "none",
            self.limit,
            self.faults,
        ).sorted()

    def steps(self, world: World) -> Steps:
        parts = chain(
            *(self._publish(world, n) for n in range(len(world.publishers))),
            *(self._work(world, n) for n in range(len(world.workers))),
            *(self._break(world, n) for n in range(len(world.workers))),
            self._time(world),
            self._people(world),
        )
        for label, after in parts:
            yield label, after.sorted()

    def fault(self, world: World, *, ended: bool, waits: bool) -> str | None:
        if world.valid() > max(self.limit, self.new_limit):
            return "more holders than the limit"
        if world.state != "active" or world.person not in ("none", "before", "after"):
            return None
        if ended and world.has("written", "ready", "orphan", "later"):
            return "work is lost from sight"
        if waits and not world.disturbed and world.valid() < world.limit and world.has("ready"):
            return "ready work waits for time, though a slot is free"
        return None

    # Publishing: the message, the request, the commit.

    def _publish(self, world: World, n: int) -> Steps:
        me = world.publishers[n]
        if me.at == "new":
            if self.variant is Variant.UPSERT or not world.resource_locked():
                yield "publish: insert message", world.publisher(n, at="written", message="written")
        elif me.at == "written":
            lock = self._request_lock(world, me)
            if not lock or not world.locked():
                yield (
                    f"publish: ask ({lock or 'it stands'})",
                    world.publisher(n, at="asked", lock=lock),
                )
        elif me.at == "asked":
            yield "publish: commit", self._commit(world, n)
        if me.at in ("written", "asked") and world.faults:
            after = world._replace(faults=world.faults - 1)
            yield "publish: crash", after.publisher(n, at="dead", message="none", lock="")

    def _request_lock(self, world: World, me: Publisher) -> str:
        if world.request is None:
            return "insert"
        if self.variant is Variant.UPSERT:
            return "update"
        stands = me.delayed or _pulled(world.request) == world.request
        return "" if stands or self.broken == "never pulls forward" else "update"

    def _commit(self, world: World, n: int) -> World:
        me = world.publishers[n]
        if me.lock == "insert":
            world = world._replace(request=Request(TIMER if me.delayed else READY))
        elif me.lock == "update" and not me.delayed and world.request is not None:
            world = world._replace(request=_pulled(world.request))
        message = "later" if me.delayed else "ready"
        return world.publisher(n, at="done", message=message, lock="")

    # Working: claim, take, settle, finish.

    def _work(self, world: World, n: int) -> Steps:
        match world.workers[n].at:
            case "idle":
                if world.request and world.request.due == READY and not world.locked():
                    yield from self._claim(world, n)
            case "take" | "run":
                yield self._serve(world, n)
            case "finish":
                yield from self._finish(world, n)
            case "lock" | "soft" if _locked_by_others(world, n):
                return
            case _:
                yield self._end(world, n)

    def _serve(self, world: World, n: int) -> tuple[str, World]:
        me = world.workers[n]
        fenced = me.token == "gone"
        if me.at == "take":
            if fenced or not world.has("ready"):
                return "take: nothing", world.worker(n, at="finish")
            return "take", world.move("ready", "lent").worker(n, at="run", lent=True)
        if fenced or not me.lent:
            return "settle: fenced out", world.worker(n, at="finish", lent=False)
        return "settle", world.move("lent", "done").worker(n, at="finish", lent=False)

    def _end(self, world: World, n: int) -> tuple[str, World]:
        me = world.workers[n]
        match me.at:
            case "lock":
                return "finish: lock request", world.worker(n, at="look", lock=me.lock or "row")
            case "soft":
                return "finish: lock request", world.worker(n, at="softlook", lock="row")
            case "look":
                return "finish: release, look, commit", self._look(world, n)
            case _:
                return "finish: release, look again soon", _soft(world, n)

    def _claim(self, world: World, n: int) -> Steps:
        if world.state != "active":
            yield "claim: not active", world._replace(request=Request(NEVER, "state"))
            return
        world = _rescue(world)
        valid = world.valid()
        if valid >= world.limit:
            yield "claim: busy", world._replace(request=Request(TIMER, "busy"))
            return
        more = sum(each.message == "ready" for each in world.publishers) > 1
        request = Request(TIMER, "busy") if valid + 1 >= world.limit else Request(TIMER)
        if more and not request.hold:
            request = Request(READY)
        yield "claim", world._replace(request=request).worker(n, at="take", token="valid")

    def _finish(self, world: World, n: int) -> Steps:
        if self.broken == "one statement":
            seen = world.state, world.has("ready")
            yield "finish: snapshot", world.worker(n, at="lock", seen=seen)
        elif self.variant is Variant.UPSERT or self.broken == "no resource lock":
            yield "finish", world.worker(n, at="lock")
        elif world.publishing() or world.resource_locked():
            yield "finish: resource is locked", world.worker(n, at="soft")
        else:
            yield "finish: lock resource", world.worker(n, at="lock", lock="resource")

    def _look(self, world: World, n: int) -> World:
        me = world.workers[n]
        after = world.worker(n, **Worker()._asdict())
        if me.token == "gone":
            return after  # the request is the successor's
        state, ready = me.seen or (world.state, world.has("ready"))
        tokens = [w for w in after.workers if w.token in ("valid", "ended")]
        others = world.orphans + world.ended + len(tokens)
        if self.broken == "drops beside another slot":
            others = 0
        if state != "active":
            return after._replace(request=Request(NEVER, "state"))
        if ready:
            return after._replace(request=Request(READY))
        if others or world.has("later"):
            return after._replace(request=Request(TIMER))
        return after._replace(request=None)

    # What goes wrong, what time does, what people do.

    def _break(self, world: World, n: int) -> Steps:
        me = world.workers[n]
        if me.at == "idle" or not world.faults:
            return
        hurt = world._replace(faults=world.faults - 1, disturbed=True)
        gone = hurt.worker(n, **Worker()._asdict())
        if me.lent and me.token != "gone":
            gone = gone.move("lent", "orphan")
        yield (
            "worker: crash",
            gone._replace(
                orphans=world.orphans + (me.token == "valid"),
                ended=world.ended + (me.token == "ended"),
            ),
        )
        if me.token == "valid" and me.at in ("take", "run", "finish"):
            yield "worker: stopped past its lease", hurt.worker(n, token="ended")

    def _time(self, world: World) -> Steps:
        if world.orphans:
            yield (
                "timer: a dead holder's lease ends",
                world._replace(orphans=world.orphans - 1, ended=world.ended + 1),
            )
        if world.request and world.request.due == TIMER and not world.locked():
            due = tuple(
                each._replace(message="ready") if each.message == "later" else each
                for each in world.publishers
            )
            request = world.request._replace(due=READY)
            yield "timer: the request falls due", world._replace(request=request, publishers=due)

    def _people(self, world: World) -> Steps:
        if self.new_limit and world.limit != self.new_limit and not world.locked():
            asked = world.request and world.request.hold == "busy"
            yield (
                "limit changes",
                world._replace(
                    limit=self.new_limit, request=Request(READY) if asked else world.request
                ),
            )
        match world.person:
            case "before":
                yield "pause", world._replace(state="paused", person="paused")
            case "paused":
                apart = self.broken == "resumes in two"
                state = "active" if apart else "paused"
                yield "resume: begin", world._replace(person="resuming", state=state)
            case "resuming" if not world.locked():
                yield "resume: ask", world._replace(person="asked")
            case "asked":
                yield (
                    "resume: commit",
                    world._replace(person="after", state="active", request=Request(READY)),
                )
        if world.person in ("resuming", "asked") and world.faults:
            back = "after" if self.broken == "resumes in two" else "paused"
            yield "resume: crash", world._replace(person=back, faults=world.faults - 1)


def _pulled(request: Request) -> Request:
    """What a publish makes of a request that stands: due now, but never through a hold."""
    return request if request.hold else Request(READY)


def _locked_by_others(world: World, n: int) -> bool:
    return world.worker(n, lock="").locked()


def _rescue(world: World) -> World:
    """Tokens that have ended are taken away, and what they had on loan is ready again."""
    for _ in range(world.ended):
        if world.has("orphan"):
            world = world.move("orphan", "ready")
    world = world._replace(ended=0)
    for n, each in enumerate(world.workers):
        if each.token == "ended":
            if each.lent:
                world = world.move("lent", "ready")
            world = world.worker(n, token="gone", lent=False)
    return world


def _soft(world: World, n: int) -> World:
    """Never delete and never push further: look again soon."""
    after = world.worker(n, **Worker()._asdict())
    if world.workers[n].token == "gone":
        return after
    active = world.state == "active"
    return after._replace(request=Request(READY) if active else Request(NEVER, "state"))
