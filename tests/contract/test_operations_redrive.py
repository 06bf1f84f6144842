"""Redrive: dead letters go back to work, in steps that each happen whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import Order, Retry, State
from attention_queue.contract.events import OperationAdvanced, OperationStarted
from attention_queue.contract.operation import Kind, Progress
from attention_queue.errors import UnknownResource
from attention_queue.ports import Engine
from contract.orders import complete, die, numbers, order, run, start, step
from contract.stage import MS, SECOND, Stage, done, message, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
A, B = shop("a"), shop("b")


async def test_one_dead_letter_goes_back_to_work_with_its_history(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    await stage.finish(begun, [(begun.loan[0], Retry(after=SECOND))])
    passes(SECOND)
    await die(stage, A, "2")

    figures = await complete(stage, Kind.REDRIVE, ids=(numbers(stage)[0],))

    begun = await stage.begin_one()
    (delivery,) = begun.loan
    assert (figures.progress, figures.total, figures.done) == (Progress.DONE, 1, 1)
    assert (delivery.message.id, delivery.redriven, delivery.attempt) == ("1", 1, 1)
    ((history,),) = stage.rows("SELECT history FROM message")
    assert [(e["attempt"], e["error"]) for e in json.loads(history)] == [(1, None), (2, "KeyError")]
    assert [letter["id"] for letter in stage.dead()] == ["2"]
    await stage.finish(begun, done(begun.loan))


async def test_each_redrive_of_a_message_is_counted(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")
    for _ in range(2):
        await complete(stage, Kind.REDRIVE, resource=A)
        await die(stage, A)

    await complete(stage, Kind.REDRIVE, resource=A)

    begun = await stage.begin_one()
    assert begun.loan[0].redriven == 3
    await stage.finish(begun, done(begun.loan))


async def test_one_resource_is_redriven_in_its_order_and_no_other(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "a1", "a2", "a3")
    await die(stage, B, "b1")

    await complete(stage, Kind.REDRIVE, limit=2, resource=A)

    assert await stage.serve() == ["a1", "a2", "a3"]
    assert [letter["id"] for letter in stage.dead()] == ["b1"]


async def test_a_filter_picks_by_error(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "k1", error="KeyError")
    await die(stage, B, "v1", error="ValueError")
    await die(stage, B, "k2", error="KeyError")

    await complete(stage, Kind.REDRIVE, error="KeyError")

    assert sorted(await stage.serve()) == ["k1", "k2"]


async def test_a_filter_picks_by_tenant_type_reason_and_age(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await die(stage, A, "old")
    passes(60 * SECOND)
    await die(stage, A, "new")

    for nothing in ({"tenant": "other"}, {"type": "other"}, {"reason": "poison"}):
        assert (await complete(stage, Kind.REDRIVE, **nothing)).done == 0
    same = {"tenant": "acme", "type": "order", "reason": "bad_order"}
    await complete(stage, Kind.REDRIVE, **same, older_than=60 * SECOND)

    assert await stage.serve() == ["old"]


async def test_a_rate_paces_the_steps(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await die(stage, A, *(f"{n}" for n in range(5)))
    number = await start(stage, Kind.REDRIVE, resource=A, per_second=10)

    first = await step(stage, number)
    early = await step(stage, number)
    nobody = await stage.engine.step(None, 100)
    passes(200 * MS)
    second = await step(stage)

    assert (first.done, early.done, nobody, second.done) == (2, 2, None, 4)
    assert second.next == stage.clock.now() + 200 * MS
    await run(stage, number)
    await stage.serve()


async def test_a_rate_below_one_a_step_is_kept_too(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1", "2", "3")
    began = stage.clock.now()

    await complete(stage, Kind.REDRIVE, resource=A, per_second=3)

    assert stage.clock.now() - began >= SECOND
    await stage.serve()


async def test_jitter_spreads_what_is_redriven_and_the_request_fires_with_the_first(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await die(stage, A, *(f"{n}" for n in range(40)))

    await complete(stage, Kind.REDRIVE, resource=A, jitter=60 * SECOND)

    now = stage.clock.now_ms()
    dues = [due - now for (due,) in stage.rows("SELECT due_ms FROM message ORDER BY due_ms")]
    assert 0 < dues[0] < dues[-1] <= 60_000
    quarters = [sum(n * 15_000 < due <= (n + 1) * 15_000 for due in dues) for n in range(4)]
    assert min(quarters) >= 5
    assert await stage.serve() == []
    passes(dues[0] * MS)
    assert len(await stage.serve()) == dues.count(dues[0])
    passes(60 * SECOND)
    assert len(await stage.serve()) == 40 - dues.count(dues[0])


async def test_a_redrive_pulls_a_later_request_forward(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")
    await stage.put(message(A, "late", not_before=stage.clock.now() + 3600 * SECOND))

    await complete(stage, Kind.REDRIVE, resource=A)

    assert await stage.serve() == ["1"]


async def test_a_redrive_never_pulls_through_a_state(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")
    await stage.set_state(A, State.PAUSED)

    await complete(stage, Kind.REDRIVE, resource=A)

    assert await stage.serve() == []
    await stage.set_state(A, State.ACTIVE)
    assert await stage.serve() == ["1"]


async def test_who_is_back_at_work_already_is_left_in_the_dead_letters(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1", "2")
    await stage.put(message(A, "1"))

    figures = await complete(stage, Kind.REDRIVE, resource=A)

    assert (figures.done, figures.skipped) == (1, 1)
    assert [letter["id"] for letter in stage.dead()] == ["1"]
    assert await stage.serve() == ["1", "2"]


async def test_a_dead_letter_of_a_tombstone_stays_where_it_is(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "a")
    await die(stage, B, "b")
    await complete(stage, Kind.RETIRE, resource=A)

    figures = await complete(stage, Kind.REDRIVE, error="KeyError")

    assert (figures.done, figures.skipped) == (1, 1)
    assert await stage.serve() == ["b"]
    assert [letter["id"] for letter in stage.dead()] == ["a"]


async def test_what_dies_after_the_start_is_not_part_of_it(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1", "2", "3")
    number = await start(stage, Kind.REDRIVE, resource=A)

    await step(stage, number, limit=2)
    await die(stage, A, "4")  # and 1 and 2 again
    figures = await run(stage, number)

    assert (figures.total, figures.done) == (3, 3)
    assert await stage.serve() == ["3"]
    assert sorted(letter["id"] for letter in stage.dead()) == ["1", "2", "4"]


async def test_the_number_of_a_dead_letter_is_never_given_to_another(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1", "2")
    first, newest = numbers(stage)
    number = await start(stage, Kind.REDRIVE, resource=A)
    await step(stage, number, limit=1)
    await complete(stage, Kind.DISCARD_DEAD, ids=(newest,))

    await die(stage, B, "3")

    assert min(numbers(stage)) > newest > first
    await run(stage, number)
    await stage.serve()


async def test_a_cancelled_redrive_leaves_what_it_has_done(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await die(stage, A, "1", "2", "3")
    number = await start(stage, Kind.REDRIVE, resource=A)
    await step(stage, number, limit=1)

    cancelled = await engines[1].cancel(number, actor="bob")
    after = await step(stage, number)

    assert (cancelled.progress, after.progress, after.done) == (Progress.CANCELLED,) * 2 + (1,)
    assert cancelled.ended == stage.clock.now()
    assert await stage.serve() == ["1"]
    assert [letter["id"] for letter in stage.dead()] == ["2", "3"]


async def test_another_process_goes_on_where_a_crashed_one_stopped(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await die(stage, A, *(f"{n}" for n in range(6)))
    number = await start(stage, Kind.REDRIVE, resource=A)
    await step(stage, number, limit=2, engine=engines[0])

    figures = await step(stage, None, limit=2, engine=engines[1])

    assert (figures.number, figures.done) == (number, 4)
    await run(stage, number)
    assert await stage.serve() == [f"{n}" for n in range(6)]


async def test_a_step_that_breaks_before_its_end_has_not_happened(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1", "2")
    number = await start(stage, Kind.REDRIVE, resource=A)
    stage.rows(
        "CREATE TRIGGER broken BEFORE UPDATE ON operation BEGIN SELECT RAISE(ABORT, 'x'); END"
    )

    with pytest.raises(Exception, match="x"):
        await step(stage, number)

    assert len(stage.dead()) == 2
    assert (stage.rows("SELECT count(*) FROM message"), stage.requests()) == ([(0,)], 0)
    stage.rows("DROP TRIGGER broken")
    assert (await run(stage, number)).done == 2
    assert await stage.serve() == ["1", "2"]


async def test_strict_order_puts_what_is_redriven_behind_what_waits(stage: Stage) -> None:
    await stage.open(order=Order.STRICT)
    await die(stage, A, "1")
    await stage.put(message(A, "2"))

    await complete(stage, Kind.REDRIVE, resource=A)

    assert await stage.serve() == ["2", "1"]


async def test_an_unknown_resource_is_refused_and_nothing_noted(stage: Stage) -> None:
    await stage.open()

    with pytest.raises(UnknownResource):
        await stage.engine.start(order(Kind.REDRIVE, resource=A), actor="ann")

    assert stage.rows("SELECT count(*) FROM operation") == [(0,)]


async def test_its_start_and_steps_are_told(stage: Stage) -> None:
    await stage.open()
    await die(stage, A, "1")

    number = (await complete(stage, Kind.REDRIVE, resource=A)).number

    assert stage.of(OperationStarted) == [
        OperationStarted("shops", number, "redrive", "ann", "asked for")
    ]
    assert stage.of(OperationAdvanced) == [
        OperationAdvanced("shops", number, "redrive", 1, 0, "done")
    ]
    await stage.serve()
