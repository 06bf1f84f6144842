"""Changes by people that are not one unit, and a directory that is remembered."""

from __future__ import annotations

from attention_queue.contract import State
from attention_queue.engines.sqlite.directory import Directory, Record, ask_now, store_state
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.ports import Change, SetState
from simulation.scenario import Profile
from simulation.world import Mutant

_record = Directory.record
PEOPLE = Profile(people=1.0)


class ResumesInTwo(SqliteEngine):
    """First the state, then the ask (H28)."""

    async def change(self, change: Change, *, actor: str) -> None:
        if not isinstance(change, SetState) or change.state.state is not State.ACTIVE:
            await super().change(change, actor=actor)
            return
        gid, rid = await self.writer.run(lambda tx: self.store(tx, change))
        await self.between()
        await self.writer.run(lambda tx: ask_now(tx, rid, gid), wakes=True)

    def store(self, tx: Transaction, change: SetState) -> tuple[int, int]:
        gid = tx.first("group", change.group)[0]
        rid = tx.first("find", gid, change.resource.tenant, change.resource.id)[0]
        store_state(tx, rid, change.state)
        return gid, rid


class AsksThenResumes(ResumesInTwo):
    """First the ask, then the state."""

    async def change(self, change: Change, *, actor: str) -> None:
        if not isinstance(change, SetState) or change.state.state is not State.ACTIVE:
            await super().change(change, actor=actor)
            return
        await self.writer.run(lambda tx: self.ask(tx, change), wakes=True)
        await self.between()
        await self.writer.run(lambda tx: self.store(tx, change), wakes=True)

    def ask(self, tx: Transaction, change: SetState) -> None:
        gid = tx.first("group", change.group)[0]
        rid = tx.first("find", gid, change.resource.tenant, change.resource.id)[0]
        ask_now(tx, rid, gid)


def _remembered(self: Directory, tx: Transaction, rid: int, gid: int, group: str) -> Record:
    """What was read within the last fifth of a second is not read again (H27)."""
    known = self.__dict__.setdefault("remembered", {})
    if rid not in known or tx.now_ms - known[rid][0] > 200:
        known[rid] = tx.now_ms, _record(self, tx, rid, gid, group)
    return known[rid][1]


CHANGING = (
    Mutant(
        name="resume in two transactions (H28)",
        kinds=frozenset({"held_though_active"}),
        engine=ResumesInTwo,
        profile=PEOPLE,
    ),
    Mutant(
        name="resume asks before it changes the state (H28)",
        kinds=frozenset({"held_though_active"}),
        engine=AsksThenResumes,
        profile=PEOPLE,
    ),
    Mutant(
        name="a paused state is remembered (H27)",
        kinds=frozenset({"held_though_active", "served_while_inactive"}),
        swaps=((Directory, "record", _remembered),),
        profile=PEOPLE,
    ),
)
