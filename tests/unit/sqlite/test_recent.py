"""What has happened lately, read from a SQLite file: rates, cycles, changes, the ledger."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue.clock import ManualClock
from attention_queue.contract import CycleEnd, State
from attention_queue.contract.figures import PaceFigures, ResourceFigures
from attention_queue.contract.operation import Kind
from attention_queue.core.outlook import forecast
from attention_queue.core.tables import did, ledger_table
from attention_queue.engines.sqlite.figures import STATEMENTS
from attention_queue.engines.sqlite.insight import SqliteInsight
from attention_queue.engines.sqlite.recent import pace
from contract.orders import complete, die
from contract.stage import SECOND, SHOPS, SqliteStage, done, message, messages, shop

MINUTE = timedelta(minutes=1)
A = shop("a")
VALUES = {"pace": 1, "dead_of": 2, "expired_of": 1, "audit_newest_of": 4, "next_ready": 1}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[SqliteStage]:
    stage = SqliteStage(ManualClock(), str(tmp_path / "attention.db"))
    yield stage
    for engine in stage.engines:
        await engine.close()


@pytest.fixture
async def insight(stage: SqliteStage) -> AsyncIterator[SqliteInsight]:
    insight = SqliteInsight(stage.path, stage.clock)
    yield insight
    await insight.close()


async def see(insight: SqliteInsight) -> ResourceFigures:
    seen = await insight.resource(SHOPS, A)
    assert seen is not None
    return seen


async def seen_pace(insight: SqliteInsight) -> PaceFigures:
    found = (await see(insight)).pace
    assert found is not None
    return found


async def test_rates_are_read_as_of_now(stage: SqliteStage, insight: SqliteInsight) -> None:
    await stage.open()
    await stage.put(*messages(A, 60))
    await stage.serve()

    then = await seen_pace(insight)
    stage.clock.advance(MINUTE)
    later = await seen_pace(insight)

    assert (then.arrival, then.service) == pytest.approx((1.0, 1.0))
    assert (later.arrival, later.service) == pytest.approx((1 / math.e, 1 / math.e))


async def test_a_steady_flow_that_nobody_serves_is_seen_coming(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(*messages(A, 1))
    await stage.serve()
    for n in range(120):
        stage.clock.advance(5 * SECOND)
        await stage.put(*messages(A, 10, start=10 * n + 2))

    assert (await seen_pace(insight)).arrival == pytest.approx(2.0, rel=0.01)


async def test_what_was_never_served_came_since_its_oldest_message(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.register(A)
    assert (await see(insight)).pace is None
    await stage.put(*messages(A, 600))
    stage.clock.advance(10 * MINUTE)

    found = await seen_pace(insight)

    assert (found.service, found.cycles) == (0.0, ())
    assert found.arrival == pytest.approx(1.0, rel=0.01)
    assert forecast(await see(insight)).because == "it was never served"


def test_a_clock_that_went_back_makes_no_rate_of_nothing() -> None:
    row = (10_000, 2.0, 3.0, "[]")

    found = pace(row, 0, None, 4_000)

    assert found == PaceFigures(arrival=2.0, service=3.0)


async def test_the_last_cycles_are_there_newest_first_with_their_ends(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_messages=10)
    await stage.put(*messages(A, 25))
    for end in (CycleEnd.MESSAGES, CycleEnd.YIELDED, CycleEnd.DRAINED):
        begun = await stage.begin_one()
        await stage.finish(begun, done(begun.loan), end)
        stage.clock.advance(SECOND)

    found = (await seen_pace(insight)).cycles

    assert [(each.end, each.handled) for each in found] == [
        ("drained", 5), ("yielded", 10), ("messages", 10),
    ]  # fmt: skip
    assert found[0].at == stage.clock.now() - SECOND


async def test_the_last_three_changes_are_there_with_who_and_why(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.register(A)
    await stage.register(shop("other"))
    for state in (State.PAUSED, State.ACTIVE, State.MAINTENANCE):
        await stage.set_state(A, state, reason=f"to {state.value}")

    changes = (await see(insight)).changes

    assert [(did(each), each.actor, each.reason) for each in changes] == [
        ("state active → maintenance", "ann", "to maintenance"),
        ("state paused → active", "ann", "to active"),
        ("state active → paused", "ann", "to paused"),
    ]


async def test_what_was_redriven_and_what_has_expired_is_told(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(ttl=MINUTE)
    await die(stage, A, "back")
    await complete(stage, Kind.REDRIVE, resource=A)
    head = (await see(insight)).next
    await stage.serve()
    await stage.put(message(A, "late"))
    stage.clock.advance(2 * MINUTE)
    await stage.serve()

    seen = await see(insight)

    assert head is not None and (head.id, head.redriven) == ("back", 1)
    assert (seen.dead, seen.expired) == (1, 1)


async def test_the_ledger_of_requests_is_part_of_the_overview(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_messages=1)
    await stage.open("returns")
    await stage.put(*messages(A, 2))
    await stage.put(message(A, "again"))
    await stage.serve()
    await stage.set_state(A, State.PAUSED)
    await stage.put(message(A, "later"))
    await stage.serve()

    returns, shops = (await insight.overview()).groups

    assert ledger_table(shops) == {
        "published": 2,
        "coalesced": 1,
        "republished": 2,
        "wasted": 0,
        "discarded": {"paused": 1},
        "blocked": {},
    }
    assert not returns.ledger


async def test_a_look_at_one_resource_costs_the_same_however_much_waits(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    """No statement of it scans a table."""
    await stage.open()
    await stage.put(*messages(A, 3))
    plans = [
        row[3]
        for name in VALUES
        for row in stage.rows(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", *[1] * VALUES[name])
    ]

    assert not [step for step in plans if step.startswith("SCAN") and "subquery" not in step]
