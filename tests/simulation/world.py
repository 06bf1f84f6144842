"""One schedule: the production code on virtual time, and whatever the seed does to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from attention_queue.contract.events import (
    CycleStarted,
    LoansRescued,
    RequestBlocked,
    RequestWasted,
    TokenWasLost,
)
from attention_queue.engines.sqlite.engine import SqliteEngine
from simulation.audit import Audit
from simulation.database import Memory, WatchedWriter
from simulation.engine import SimulatedEngine
from simulation.fleet import Fleet
from simulation.ledger import Ledger
from simulation.loop import LANE, SeededLoop
from simulation.process import Faults, Killed, Process
from simulation.scenario import USUAL, Profile, Scenario, draw

STEPS = 60_000  # callbacks of one schedule, at most: more is a loop without end


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A broken product: other attributes (object, name, value), an engine with other verbs."""

    name: str
    kinds: frozenset[str]  # of violation, one of which must be found
    swaps: tuple[tuple[object, str, object], ...] = ()
    engine: type[SqliteEngine] | None = None
    profile: Profile = field(default_factory=Profile)
    within: int = 2_000  # schedules


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a schedule showed; ``fault`` is the first rule that was broken."""

    seed: int
    fault: tuple[str, str] | None
    trace: list[str]
    commits: int
    steps: int
    faults: int


class World:
    """All that one schedule needs; not to be used twice."""

    def __init__(
        self, seed: int, memory: Memory, *, mutant: Mutant | None = None, traced: bool = False
    ) -> None:
        chance = random.Random(seed)
        self.chance = random.Random(chance.random())
        profile = mutant.profile if mutant else USUAL
        self.scenario: Scenario = draw(random.Random(chance.random()), profile)
        self.loop = SeededLoop(random.Random(chance.random()), self._before_jump)
        self.faults = Faults(
            random.Random(chance.random()),
            self.scenario.fault_probability,
            self.scenario.faults,
            profile.faults,
            kept=2 if self.scenario.life and self.scenario.faults else 0,
        )
        self.trace: list[str] | None = [] if traced else None
        self.fault: tuple[str, str] | None = None
        self.processes: list[Process] = []
        self.engines: list[SimulatedEngine] = []
        self.looks = 0  # at requests
        self.over = False  # what happens from here on is not judged
        self._calls: dict[str, int] = {}
        memory.empty()
        self._house = Process(
            "world", self.loop, self.chance, Faults(self.chance, 0.0, 0, ()), None
        )
        self.ledger = Ledger(self.report)
        self.audit = Audit(
            memory,
            self._house.clock.now_ms,
            self.ledger,
            self.report,
            lambda: self.loop.set_back_ms,
        )
        self.writer = WatchedWriter(memory, self._house.clock, self.audit)
        self.engine_class = _engine_class(mutant.engine if mutant else None)

    def report(self, fault: tuple[str, str]) -> None:
        """The first one counts; nothing goes on after it."""
        if self.fault is None and not self.over:
            self.fault = fault
            self.note(f"VIOLATION {fault[0]}: {fault[1]}")
            self.loop.stop()

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.loop.time():9.4f} {'':12} {text}")

    def process(self, name: str, *, safe: bool = False) -> tuple[Process, SimulatedEngine]:
        """A new process with an engine on the shared database; ``safe``: nothing happens to it."""
        faults = Faults(self.chance, 0.0, 0, ()) if safe else self.faults
        process = Process(name, self.loop, self.chance, faults, self.trace)
        engine = self.engine_class(process, self.writer)
        self.processes.append(process)
        self.engines.append(engine)
        for kind in (CycleStarted, RequestBlocked, RequestWasted):
            process.bus.on(kind, self._looked)
        for kind in (LoansRescued, TokenWasLost):
            process.bus.on(kind, self._lost)
        return process, engine

    def run(self) -> Verdict:
        self.loop.limit, self.loop.exhausted = STEPS, self._exhausted
        self.loop.set_exception_handler(self._dropped)
        asyncio.set_event_loop(self.loop)
        try:
            main = self.loop.create_task(Fleet(self).live())
            main.add_done_callback(self._stop)
            self.loop.run_forever()
            if self.fault is None:
                main.result()
            self._tear_down(main)
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()
        return Verdict(
            -1,
            self.fault,
            self.trace or [],
            self.audit.commits,
            self.loop.steps,
            self.faults.happened,
        )

    def _tear_down(self, main: asyncio.Task[None]) -> None:
        self.over = True
        main.cancel()
        for process in self.processes:
            process.trace = None
            process.kill()
        tasks = [main, *(task for process in self.processes for task in process.tasks)]
        end = self.loop.create_task(_gone(tasks))
        end.add_done_callback(lambda _: self.loop.stop())
        self.loop.limit = self.loop.steps + STEPS
        self.loop.run_forever()

    def behaviour(self, id: str) -> str:
        """What the handler does with the message this time."""
        calls = self._calls[id] = self._calls.get(id, 0) + 1
        words = self.scenario.behaviours[id]
        return words[calls - 1] if calls <= len(words) else "done"

    def _looked(self, event: Any) -> None:
        self.looks += 1
        if self.trace is not None:
            self.note(f"{event}")

    def _lost(self, event: LoansRescued | TokenWasLost) -> None:
        self.note(f"{event}")
        if not self.scenario.faults:
            self.report(("lease_lost", f"{event}, and nothing had gone wrong"))

    def _before_jump(self) -> None:
        """Nothing is ready to run: no request may be, with a worker that sleeps."""
        last, now = self.audit.last, self._house.clock.now_ms()
        due = [r for r in last.requests.values() if r.due == 0 or r.due < now - 2]
        # The clock was set: a timer goes by monotonic time, and then by the next look.
        if self.loop.offset_ms or self.loop.set_back_ms:
            due = [r for r in due if r.due == 0]
        if not due or self.over:
            return
        for engine in self.engines:
            if engine.asleep and not engine.process.stopped and not engine.process.dead:
                self.report(("asleep_beside_work", f"{engine.process.name} {due}"))

    def _stop(self, main: object) -> None:
        if not self.over:
            self.loop.stop()

    def _exhausted(self) -> None:
        self.report(("endless", f"{self.loop.steps} steps"))

    def _dropped(self, loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Killed | BaseExceptionGroup) or self.over:
            return
        lane = LANE.get()
        if isinstance(lane, Process) and lane.dead:
            return
        self.report(("error_dropped", f"{context.get('message')}: {error!r}"))


def _engine_class(broken: type[SqliteEngine] | None) -> type[SimulatedEngine]:
    if broken is None:
        return SimulatedEngine
    return type("BrokenEngine", (SimulatedEngine, broken), {})


async def _gone(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def swapped(swaps: tuple[tuple[Any, str, object], ...]) -> Iterator[None]:
    """Each attribute, or item of a dict, has the other value while the context lasts."""
    with ExitStack() as stack:
        for owner, name, value in swaps:
            if isinstance(owner, dict):
                stack.callback(owner.__setitem__, name, owner[name])
                owner[name] = value
            else:
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)
        yield


_memories: list[Memory] = []


def play(seed: int, *, mutant: Mutant | None = None, traced: bool = False) -> Verdict:
    """Run one schedule; the same seed runs the same."""
    if not _memories:
        _memories.append(Memory())
    with swapped(mutant.swaps if mutant else ()):
        verdict = World(seed, _memories[0], mutant=mutant, traced=traced).run()
    return Verdict(seed, *(getattr(verdict, name) for name in Verdict.__slots__[1:]))
