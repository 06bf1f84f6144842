"""A worker that sleeps through a wake-up, lets its leases end, or breaks the order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attention_queue.contract import CycleEnd
from attention_queue.core.cycle import Cycle
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.keeper import LoopKeeper
from attention_queue.engines.sqlite.settle import Settling
from attention_queue.ports import Begun, Declined, Ending, Keeper, Want
from simulation.scenario import Profile
from simulation.world import Mutant

_note, _bury = Cycle._note, Settling._bury


class MissesTheWakeUp(SqliteEngine):
    """Waits only for what comes after the wait has begun, not after the look."""

    async def wait(self, groups: Collection[str], at_most: float) -> None:
        self._seen[tuple(groups)] = self._stirred
        await super().wait(groups, at_most)


class ForgetsTheTimer(SqliteEngine):
    """Sleeps until something is written, whatever falls due meanwhile."""

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        found = await super().begin(want)
        self._next_due_ms[want.groups] = None
        return found


class KeepsNothing(LoopKeeper):
    def keep(self, begun: Begun) -> None:
        pass


class LetsLeasesEnd(SqliteEngine):
    def keeper(self) -> Keeper:
        return KeepsNothing(self)


def _goes_on_behind_a_failed_head(self: Cycle, delivery: object, outcome: object) -> Ending | None:
    ending = _note(self, delivery, outcome)
    return None if ending is not None and ending.end is CycleEnd.HEAD else ending


def _does_not_count_the_dead(self: Settling, *values: object) -> int:
    _bury(self, *values)
    return 0


SERVING = (
    Mutant(
        name="a wake-up between the look and the wait is missed",
        kinds=frozenset({"asleep_beside_work"}),
        engine=MissesTheWakeUp,
    ),
    Mutant(
        name="the worker does not know the next timer",
        kinds=frozenset({"asleep_beside_work"}),
        engine=ForgetsTheTimer,
    ),
    Mutant(
        name="leases are not renewed",
        kinds=frozenset({"lease_lost"}),
        engine=LetsLeasesEnd,
        profile=Profile(faultless=1.0, slow=0.5),
    ),
    Mutant(
        name="strict order goes on behind a failed head",
        kinds=frozenset({"strict_overtaken"}),
        swaps=((Cycle, "_note", _goes_on_behind_a_failed_head),),
        profile=Profile(plans=("strict",), fail=0.3),
    ),
    Mutant(
        name="dead letters stay in the backlog",
        kinds=frozenset({"backlog_miscounted"}),
        swaps=((Settling, "_bury", _does_not_count_the_dead),),
        profile=Profile(fail=0.6),
    ),
)
