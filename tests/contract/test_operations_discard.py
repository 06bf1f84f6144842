"""Discard: a backlog or dead letters are deleted in bounded chunks; what is in hand is left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import State, WorkMessage
from attention_queue.contract.operation import Kind, Progress
from attention_queue.errors import Conflict, ContractError, UnknownOperation
from attention_queue.ports import Engine
from contract.orders import complete, die, order, run, start, step
from contract.stage import LEASE, SECOND, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A, B = shop("a"), shop("b")


def of_type(type: str, *ids: str) -> list[WorkMessage]:
    return [WorkMessage(id=id, resource=A, type=type, payload=b"{}") for id in ids]


async def test_a_backlog_is_discarded_in_chunks_and_the_neighbours_is_not(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 7), *messages(B, 2))
    number = await start(stage, Kind.DISCARD, resource=A)

    chunks = [(await step(stage, number, limit=3)).done for _ in range(3)]
    figures = await run(stage, number)

    assert chunks == [3, 6, 7]
    assert (figures.progress, figures.total, figures.done) == (Progress.DONE, 7, 7)
    assert await stage.serve() == ["b-1", "b-2"]
    assert (stage.dead(), stage.requests()) == ([], 0)


async def test_only_one_type_is_discarded(stage: Stage) -> None:
    await stage.open()
    await stage.put(*of_type("stock", "s1", "s2"), *of_type("order", "o1"), *of_type("stock", "s3"))

    figures = await complete(stage, Kind.DISCARD, limit=2, resource=A, type="stock")

    assert figures.done == 3
    assert await stage.serve() == ["o1"]


async def test_only_what_was_old_at_the_start_is_discarded(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(A, "old"))
    passes(SECOND)
    await stage.put(message(A, "young"))
    passes(59 * SECOND)
    number = await start(stage, Kind.DISCARD, resource=A, older_than=60 * SECOND)
    passes(60 * SECOND)

    await run(stage, number)

    assert await stage.serve() == ["young"]


async def test_delayed_messages_are_part_of_a_backlog(stage: Stage, passes: Passes) -> None:
    await stage.open()
    later = stage.clock.now() + 60 * SECOND
    await stage.put(message(A, "1", not_before=later), message(A, "2"))

    await complete(stage, Kind.DISCARD, limit=1, resource=A)

    assert stage.requests() == 0
    passes(60 * SECOND)
    assert await stage.serve() == []


async def test_what_is_on_loan_is_left_to_its_holder(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 5))
    begun = await stage.begin_one(take=2)

    figures = await complete(stage, Kind.DISCARD, limit=2, resource=A)

    assert (figures.done, figures.skipped) == (3, 2)
    left = await stage.finish(begun, done(begun.loan))
    assert (left.backlog, left.republished) == (0, False)


async def test_what_a_holder_returns_after_a_discard_is_served(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 3))
    begun = await stage.begin_one(take=2)
    await complete(stage, Kind.DISCARD, resource=A)

    left = await stage.finish(begun, done(begun.loan[:1]))

    assert (left.backlog, left.republished) == (1, True)
    assert await stage.serve() == ["a-2"]


async def test_what_comes_after_the_start_is_not_part_of_it(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await stage.put(*messages(A, 4))
    number = await start(stage, Kind.DISCARD, resource=A)

    await step(stage, number, limit=2)
    await engines[1].put("shops", [message(A, "new")])
    figures = await run(stage, number)

    assert figures.done == 4
    assert await stage.serve() == ["new"]


async def test_a_paused_resource_is_emptied_and_takes_work_again(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    await stage.set_state(A, State.PAUSED)
    await stage.serve()

    await complete(stage, Kind.DISCARD, resource=A)

    assert stage.requests() == 0
    await stage.put(message(A, "new"))
    await stage.set_state(A, State.ACTIVE)
    assert await stage.serve() == ["new"]


async def test_a_dead_holders_messages_come_back_after_a_discard(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(*messages(A, 2))
    await stage.begin_one(take=1)

    await complete(stage, Kind.DISCARD, resource=A)
    passes(LEASE)

    assert await stage.serve() == ["a-1"]


async def test_a_cancelled_discard_leaves_the_rest_and_its_request(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(A, 4))
    number = await start(stage, Kind.DISCARD, resource=A)
    await step(stage, number, limit=3)

    await stage.engine.cancel(number, actor="bob")

    assert await stage.serve() == ["a-4"]


async def test_dead_letters_are_discarded_by_a_selection(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "k1", "k2", error="KeyError")
    await die(stage, A, "v1", error="ValueError")

    figures = await complete(stage, Kind.DISCARD_DEAD, limit=1, error="KeyError")

    assert figures.done == 2
    assert [letter["id"] for letter in stage.dead()] == ["v1"]


async def test_a_second_same_operation_of_a_resource_is_a_conflict(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")
    number = await start(stage, Kind.REDRIVE, resource=A)

    with pytest.raises(Conflict, match=f"operation {number} .* under way.*attn op cancel {number}"):
        await start(stage, Kind.REDRIVE, resource=A)

    assert stage.rows("SELECT count(*) FROM operation") == [(1,)]
    await run(stage, number)
    await run(stage, await start(stage, Kind.REDRIVE, resource=A))
    await stage.serve()


async def test_an_operation_that_has_ended_is_not_cancelled(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    figures = await complete(stage, Kind.DISCARD, resource=A)

    with pytest.raises(Conflict, match="is done"):
        await stage.engine.cancel(figures.number, actor="bob")


async def test_an_unknown_operation_is_refused(stage: Stage) -> None:
    await stage.open()

    with pytest.raises(UnknownOperation, match="17"):
        await stage.engine.cancel(17, actor="bob")
    with pytest.raises(UnknownOperation, match="17"):
        await stage.engine.step(17, 100)


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        (Kind.DISCARD, {}),
        (Kind.DISCARD, {"resource": A, "error": "KeyError"}),
        (Kind.DISCARD_DEAD, {}),
        (Kind.RETIRE, {}),
        (Kind.RETIRE, {"resource": A, "type": "order"}),
        (Kind.REDRIVE, {"per_second": 0}),
        (Kind.REDRIVE, {"jitter": -SECOND}),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(kind: Kind, selection: dict[str, object]) -> None:
    with pytest.raises(ContractError, match=kind.value):
        order(kind, **selection)


async def test_a_step_moves_no_more_than_a_few_megabytes(stage: Stage) -> None:
    await stage.open()
    large = bytes(256 * 1024)
    ids = [f"{n}" for n in range(20)]
    await stage.put(*(WorkMessage(id=id, resource=A, type="t", payload=large) for id in ids))
    number = await start(stage, Kind.DISCARD, resource=A)

    first = await step(stage, number, limit=100)
    figures = await run(stage, number)

    assert 10 < first.done < 20
    assert figures.done == 20
