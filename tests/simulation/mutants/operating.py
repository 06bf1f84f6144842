"""Operations whose steps are not one unit, or leave behind what they move."""

from __future__ import annotations

from attention_queue.contract.events import Event
from attention_queue.contract.operation import Kind, OperationFigures
from attention_queue.engines.sqlite import operations, steps
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.operations import Order
from attention_queue.engines.sqlite.transaction import Row, Transaction
from simulation.scenario import Profile
from simulation.world import Mutant, swapped

LIFE = Profile(life=1.0)
_note, _take_out = steps._note, steps._take_out


class DeletesThenRevives(SqliteEngine):
    """The dead letters of a step are deleted in one transaction, and are work after another."""

    async def _step(self, number: int, limit: int) -> OperationFigures:
        rows = await self.writer.run(lambda tx: self.delete(tx, number, limit))
        await self.between()
        await self.writer.run(lambda tx: self.put_back(tx, rows))
        return await super()._step(number, limit)

    def delete(self, tx: Transaction, number: int, limit: int) -> list[Row]:
        order = operations.load(tx, number)
        if order.kind is not Kind.REDRIVE:
            return []
        ids = [row[0] for row in steps._dead_page(tx, order, limit)]
        rows = [tx._db.execute("SELECT * FROM dead WHERE dead_id = ?", (id,)) for id in ids]
        found = [row.fetchone() for row in rows]
        for id in ids:
            tx.run("delete_dead", id)
        return found

    def put_back(self, tx: Transaction, rows: list[Row]) -> None:
        for row in rows:
            holes = ", ".join("?" * len(row))
            tx._db.execute(f"INSERT INTO dead VALUES ({holes})", row)


class NotesLater(SqliteEngine):
    """A step, and in another transaction how far it has come."""

    async def _step(self, number: int, limit: int) -> OperationFigures:
        notes: list[tuple[object, ...]] = []
        later = (steps, "_note", lambda tx, *values, **wait: notes.append((values, wait)))

        def first(tx: Transaction) -> steps.Stepped:
            with swapped((later,)):
                return steps.step(tx, number, limit)

        stepped = await self.writer.run(first, wakes=True)
        self._emit(stepped.events)
        await self.between()
        for values, wait in notes:
            await self.writer.run(lambda tx, v=values, w=wait: _note(tx, *v, **w))
        return stepped.figures


class _Keeps:
    """A transaction in which no message is removed."""

    def __init__(self, tx: Transaction) -> None:
        self.now_ms, self.first = tx.now_ms, tx.first

    def run(self, name: str, *values: object) -> int:
        return 0


def _buries_only(tx: Transaction, order: Order, row: Row) -> list[Event]:
    """A copy goes to the dead letters, and the message stays."""
    return _take_out(_Keeps(tx) if order.kind is Kind.RETIRE else tx, order, row)


OPERATING = (
    Mutant(
        name="redrive deletes before it revives",
        kinds=frozenset({"dead_letter_vanished", "lost"}),
        engine=DeletesThenRevives,
        profile=LIFE,
    ),
    Mutant(
        name="retire buries and does not remove",
        kinds=frozenset({"dead_and_at_work"}),
        swaps=((steps, "_take_out", _buries_only),),
        profile=LIFE,
    ),
    Mutant(
        name="progress noted in another transaction",
        kinds=frozenset({"moved_unnoted", "dead_letter_vanished"}),
        engine=NotesLater,
        profile=LIFE,
    ),
)
