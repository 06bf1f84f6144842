"""What is seen of a SQLite file from beside its engine, against a clock moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from attention_queue.clock import ManualClock
from attention_queue.contract import (
    CycleEnd,
    Failure,
    Hold,
    Override,
    Plan,
    Policy,
    Priority,
    Rate,
    Resource,
    Retry,
    State,
)
from attention_queue.contract.figures import NextFigures, ResourceFigures, ResourceFilter
from attention_queue.core.insight import Word, explain
from attention_queue.engines.sqlite.insight import SqliteInsight
from contract.stage import LEASE, SECOND, SHOPS, SqliteStage, done, message, messages, shop


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


async def see(insight: SqliteInsight, id: str) -> ResourceFigures:
    seen = await insight.resource(SHOPS, shop(id))
    assert seen is not None
    return seen


async def test_a_served_resource_shows_its_token_and_what_is_in_hand(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_messages=10)
    for work in messages(shop("a"), 25):  # numbers between them go to another resource
        await stage.put(work, message(shop("b"), work.id))
    begun = await stage.begin_one(owner="w7")

    seen = await see(insight, "a")

    [token] = seen.tokens
    assert (token.owner, token.slot, token.fence, token.loaned) == ("w7", 0, begun.token.fence, 10)
    assert token.until == stage.clock.now() + LEASE
    assert seen.backlog == 25
    assert seen.line.tokens == 1
    assert seen.request is not None
    assert seen.request.hold is Hold.BUSY
    assert explain(seen).verdict is Word.SERVING


async def test_a_token_whose_lease_has_ended_serves_nobody(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    await stage.begin_one()
    stage.clock.advance(LEASE * 0.6)
    silent = await see(insight, "a")
    stage.clock.advance(LEASE)

    seen = await see(insight, "a")
    [group] = (await insight.overview()).groups

    assert explain(silent).verdict is Word.WAITING_TOKEN
    assert explain(seen).verdict is Word.NO_WORKERS
    assert (group.tokens, group.ended_tokens, group.ready) == (0, 1, 1)


async def test_a_place_in_line_counts_those_of_the_same_lane_before_it(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    for id in "abcd":
        await stage.put(message(shop(id), id))
    await stage.put(message(shop("urgent"), "u", priority=Priority.HIGH))

    ahead = {id: (await see(insight, id)).request for id in ("a", "d", "urgent")}

    assert {id: request and request.ahead for id, request in ahead.items()} == {
        "a": 0,
        "d": 3,
        "urgent": 0,
    }


async def test_the_failure_of_the_next_message_is_shown(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "m-1"))
    enqueued = stage.clock.now()
    begun = await stage.begin_one()
    retry = Retry(5 * SECOND, Failure("ValueError", "no such sku"))
    await stage.finish(begun, [(begun.loan[0], retry)], CycleEnd.DRAINED)

    seen = await see(insight, "a")

    assert seen.next == NextFigures(
        id="m-1",
        type="order",
        enqueued=enqueued,
        due=stage.clock.now() + 5 * SECOND,
        failed=1,
        crashes=0,
        error="ValueError: no such sku",
        unknown_since=None,
    )
    assert explain(seen).verdict is Word.BACKING_OFF
    assert "no such sku" in explain(seen).because


async def test_a_message_that_kills_is_named(stage: SqliteStage, insight: SqliteInsight) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "deadly"))
    for _ in range(2):
        await stage.begin_one()
        stage.clock.advance(LEASE + SECOND)
    await stage.begin_one()

    seen = await see(insight, "a")

    assert seen.next is not None
    assert seen.next.crashes == 1
    assert explain(seen).verdict is Word.POISON


async def test_a_rate_and_a_stop_are_told_apart(stage: SqliteStage, insight: SqliteInsight) -> None:
    await stage.open(rates={"resource": Rate(1, timedelta(minutes=1))})
    for id in ("limited", "stopped"):
        await stage.register(shop(id), routing={"marketplace": "amazon"})
    await stage.put(*messages(shop("limited"), 2))
    begun = await stage.begin_one()
    await stage.finish(begun, done(begun.loan), CycleEnd.RATE)
    await stage.look()
    await stage.put(message(shop("stopped"), "s"))
    begun = await stage.begin_one()
    await stage.finish(
        begun,
        end=CycleEnd.STOPPED,
        not_before=5 * SECOND,
        hold=Hold.STOP,
        scope="routing.marketplace",
        reason="503 from amazon",
    )

    limited, stopped = await see(insight, "limited"), await see(insight, "stopped")

    assert explain(limited).verdict is Word.RATE_LIMITED
    assert explain(stopped).verdict is Word.BACKING_OFF
    assert stopped.stop == "marketplace=amazon: 503 from amazon"


async def test_dead_letters_are_counted_for_the_resource_and_the_group(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_crashes=1)
    await stage.put(message(shop("a"), "deadly"))
    for _ in range(2):
        await stage.begin_one()
        stage.clock.advance(LEASE + SECOND)
    await stage.look()

    [group] = (await insight.overview()).groups

    assert ((await see(insight, "a")).dead, group.dead) == (1, 1)
    assert group.backlog == 0


async def test_overrides_count_while_they_hold(stage: SqliteStage, insight: SqliteInsight) -> None:
    await stage.open(max_messages=10)
    override = Override(
        changes={"max_messages": 70}, until=stage.clock.now() + SECOND, reason="season"
    )
    await stage.register(shop("a"), overrides=(override,))

    during = await see(insight, "a")
    stage.clock.advance(2 * SECOND)
    after = await see(insight, "a")

    assert during.policy == replace(after.policy, max_messages=70)
    assert after.policy.max_messages == 10
    assert after.overrides == (override,)


async def test_the_overview_counts_by_group_and_says_who_waits_for_what(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_messages=1)
    await stage.engine.open_group(
        replace(await stage.open("returns"), plans=(Plan("gold"), Plan("plain", Policy())))
    )
    for id in "abc":
        await stage.put(*messages(shop(id), 3))
    later = stage.clock.now() + timedelta(hours=1)
    await stage.put(message(shop("later"), "l", not_before=later))
    await stage.put(message(shop("a"), "r"), group="returns")
    await stage.begin_one()
    await stage.set_state(shop("b"), State.PAUSED)
    await stage.look(limit=2)
    stage.clock.advance(3 * SECOND)

    returns, shops = (await insight.overview()).groups

    assert (shops.name, shops.backlog, shops.busy, shops.tokens) == ("shops", 10, 4, 2)
    assert (shops.ready, dict(shops.parked)) == (0, {"busy": 2, "state": 1, "": 1})
    assert (returns.backlog, returns.ready) == (1, 1)
    assert returns.waiting_since == stage.clock.now() - 3 * SECOND
    assert [plan.name for plan in returns.plans] == ["gold", "plain"]


async def test_a_list_of_busy_resources_goes_on_behind_one_that_is_done(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    for id in "dcba":
        await stage.put(message(shop(id), id))
    busy = ResourceFilter(busy=True)
    first = await insight.resources(SHOPS, busy, after=None, limit=2)
    begun = await stage.begin(limit=2)
    for each in begun:
        await stage.finish(each, done(each.loan), CycleEnd.DRAINED)

    second = await insight.resources(SHOPS, busy, after=first[-1].resource, limit=2)

    assert [row.resource.id for row in [*first, *second]] == ["d", "c", "b", "a"]


async def test_a_name_is_found_whole_or_by_its_id(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    names = [Resource("a", "x"), Resource("b", "x"), Resource("b", "a/x")]
    for n, name in enumerate(names):
        await stage.put(message(name, str(n)))

    assert await insight.find("a/x") == [(SHOPS, names[0])]
    assert await insight.find("b/a/x") == [(SHOPS, names[2])]
    assert await insight.find("x") == [(SHOPS, names[0]), (SHOPS, names[1])]
    assert await insight.find("nobody/x") == []


async def test_work_that_nothing_stands_for_is_counted(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    for id in "abc":
        await stage.put(message(shop(id), id))
    before = await insight.unattended()
    stage.rows("DELETE FROM attention WHERE backlog = 1 AND rid > 1")

    assert (before, await insight.unattended()) == (0, 2)


async def test_looking_does_not_wait_for_a_write_that_is_not_done(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "m"))
    writer = apsw.Connection(stage.path)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE attention SET backlog = 7")

    seen = (await insight.overview()).groups[0].backlog
    writer.execute("COMMIT")
    writer.close()

    assert seen == 1
    assert (await insight.overview()).groups[0].backlog == 7
