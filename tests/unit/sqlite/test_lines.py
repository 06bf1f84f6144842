"""What is read one by one: the line, tokens, plans in use, pages by number, findings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import sql
from attention_queue.clock import ManualClock
from attention_queue.contract import Hold, Priority, Rate, Reject, State
from attention_queue.contract.operation import Kind, Operation, Selection
from attention_queue.contract.views import GroupBy
from attention_queue.engines.sqlite.figures import STATEMENTS
from attention_queue.engines.sqlite.insight import SqliteInsight
from attention_queue.errors import Conflict, UnknownResource
from attention_queue.ports import ReleaseToken
from contract.stage import LEASE, SHOPS, SqliteStage, done, message, messages, shop

SCANS_ALLOWED = {"dead_by_error", "dead_by_resource", "dead_selected"}  # over the dead letters


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


async def bury(stage: SqliteStage, id: str, count: int, reason: str = "bad") -> None:
    """So many dead letters of a shop."""
    await stage.put(*messages(shop(id), count))
    begun = await stage.begin_one(take=count)
    await stage.finish(begun, [(each, Reject(reason)) for each in begun.loan])


async def test_the_line_has_lanes_and_the_reasons_of_those_that_wait(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(rates={"resource": Rate(1, timedelta(hours=1))})
    for id in ("limited", "paused"):
        await stage.put(*messages(shop(id), 3))
    await stage.set_state(shop("paused"), State.PAUSED)
    limited = await stage.begin_one()
    await stage.finish(limited, [])
    await stage.look()
    await stage.put(message(shop("a"), "a"), message(shop("b"), "b"))
    await stage.put(message(shop("c"), "c", priority=Priority.HIGH))

    line = await insight.line(SHOPS, 1)

    first = {lane: [each.resource.id for each in waiting] for lane, waiting in line.lanes.items()}
    assert first == {Priority.HIGH: ["c"], Priority.NORMAL: ["a"], Priority.LOW: []}
    assert line.counts[Priority.NORMAL] == 2
    assert {parked.hold for parked in line.parked} >= {Hold.STATE}
    assert all(parked.count == len(parked.first) == 1 for parked in line.parked)


async def test_tokens_show_who_holds_what_and_one_can_be_ended(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open(max_messages=10)
    await stage.put(*messages(shop("a"), 4))
    begun = await stage.begin_one(owner="w7")
    [held] = await insight.tokens(SHOPS)
    release = ReleaseToken(
        group=SHOPS, resource=shop("a"), slot=0, fence=held.token.fence, reason="gone"
    )

    await stage.engine.change(release, actor="kim")
    successor = await stage.begin_one(owner="w8")

    assert (held.resource, held.token.owner, held.token.loaned) == (shop("a"), "w7", 4)
    assert successor.token.fence > begun.token.fence
    assert successor.loan[0].message.id == begun.loan[0].message.id
    with pytest.raises(Conflict, match="is not held with fence"):
        await stage.engine.change(release, actor="kim")


async def test_a_holder_that_lives_keeps_a_token_that_was_ended_by_mistake(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 1))
    begun = await stage.begin_one()
    release = ReleaseToken(
        group=SHOPS, resource=shop("a"), slot=0, fence=begun.token.fence, reason="by mistake"
    )

    await stage.engine.change(release, actor="kim")
    lost = await stage.engine.renew([begun])

    assert not lost
    [held] = await insight.tokens(SHOPS)
    assert held.token.until == stage.clock.now() + LEASE


async def test_plans_count_those_that_have_work(stage: SqliteStage, insight: SqliteInsight) -> None:
    await stage.open()
    await stage.set_policy("plain", max_messages=7)
    await stage.put(*messages(shop("a"), 3), message(shop("b"), "b"))
    await stage.register(shop("idle"))

    [use] = await insight.plans(SHOPS)

    assert (use.plan.name, use.plan.is_default, use.plan.is_declared) == ("plain", True, False)
    assert (use.version, use.busy, use.backlog) == (2, 2, 4)


async def test_the_busiest_come_first_and_rates_fade(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    for id, count in (("a", 2), ("b", 5), ("c", 3)):
        await stage.put(*messages(shop(id), count))
    served = await stage.begin_one(take=1)  # of the first in line
    await stage.finish(served, done(served.loan))

    now = await insight.busiest(SHOPS, 10)
    stage.clock.advance(timedelta(minutes=10))
    later = await insight.busiest(SHOPS, 10)

    assert [each.row.resource.id for each in now] == ["b", "c", "a"]
    assert [each.service for each in now[:2]] == [None, None]
    assert (now[2].service or 0) > (later[2].service or 0) > 0
    assert await insight.busiest(SHOPS, 1) == later[:1]


async def test_dead_letters_are_read_page_by_page_from_the_newest(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await bury(stage, "a", 3)
    await bury(stage, "b", 2, "worse")
    everything, of_a = Selection(), Selection(resource=shop("a"))

    first = await insight.dead_letters(SHOPS, everything, before=None, limit=3)
    rest = await insight.dead_letters(SHOPS, everything, before=first[-1].number, limit=3)
    only = await insight.dead_letters(SHOPS, of_a, before=None, limit=10)
    one = await insight.dead_letter(first[0].number)
    by_resource = await insight.dead_groups(SHOPS, everything, GroupBy.RESOURCE)

    numbers = [each.number for each in (*first, *rest)]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 5
    assert [each.resource for each in only] == [shop("a")] * 3
    assert one == (SHOPS, first[0])
    assert [(each.resource, each.count) for each in by_resource] == [(shop("a"), 3), (shop("b"), 2)]
    assert await insight.dead_letter(10**9) is None


async def test_what_an_operation_would_take_is_counted_before_it_is_started(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await bury(stage, "a", 3)
    await stage.put(*messages(shop("a"), 7, start=10))
    dead, work = Selection(reason="bad"), Selection(resource=shop("a"))

    assert await insight.extent(SHOPS, Kind.REDRIVE, dead) == 3
    assert await insight.extent(SHOPS, Kind.DISCARD, work) == 7
    with pytest.raises(UnknownResource):
        await insight.extent(SHOPS, Kind.DISCARD, Selection(resource=shop("nope")))


async def test_operations_and_the_trail_are_read_from_the_newest(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await bury(stage, "a", 3)
    for number in range(3):
        order = Operation(
            kind=Kind.DISCARD_DEAD, group=SHOPS, selection=Selection(ids=(number,)), reason="r"
        )
        await stage.engine.start(order, actor="kim")

    first = await insight.operations(SHOPS, before=None, limit=2)
    rest = await insight.operations(SHOPS, before=first[-1].number, limit=2)
    trail = await insight.audit(SHOPS, None, before=None, limit=2)

    assert [each.number for each in (*first, *rest)] == [3, 2, 1]
    assert await insight.operation(2) == first[1]
    assert await insight.operation(99) is None
    assert [each.verb for each in trail] == ["discard_dead"] * 2
    assert trail[0].number > trail[1].number
    assert await insight.audit(SHOPS, shop("a"), before=None, limit=9) == []


async def test_a_scan_finds_what_a_sweep_mends_and_changes_nothing(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    for id in "abc":
        await stage.put(message(shop(id), id))
    stage.rows("DELETE FROM attention WHERE rid IN (1, 3)")

    page = await insight.scan(-1, 2)
    rest = await insight.scan(page.after if page.after is not None else -1, 2)

    assert [each.why for each in (*page.findings, *rest.findings)] == ["work_without_request"] * 2
    assert [each.resource for each in rest.findings] == [shop("c")]
    assert rest.after is None
    assert await insight.unattended() == 2
    assert (await stage.engine.sweep(-1, 10)).repairs == {"work_without_request": 2}


async def test_a_scan_finds_a_token_that_nobody_will_come_to_find(
    stage: SqliteStage, insight: SqliteInsight
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    await stage.begin_one()
    stage.rows("UPDATE attention SET due_ms = due_ms + 86400000")
    stage.clock.advance(LEASE * 4)

    page = await insight.scan(-1, 10)

    assert [(each.resource, each.why) for each in page.findings] == [(shop("a"), "ended_token")]
    assert (await stage.engine.sweep(-1, 10)).repairs["ended_token"] == 1


@pytest.mark.parametrize("name", sorted(sql.load("attention_queue.engines.sqlite", "letters.sql")))
async def test_no_look_reads_all_resources_or_all_messages(
    stage: SqliteStage, insight: SqliteInsight, name: str
) -> None:
    statement = STATEMENTS[name]
    names = {word.strip(",()") for word in statement.split() if word.startswith((":", "(:"))}
    values = {each.lstrip(":") for each in names}
    plan = insight._db.execute(
        f"EXPLAIN QUERY PLAN {statement}",
        dict.fromkeys(values, 1) if values else (1,) * statement.count("?"),
    )
    steps = [row[3] for row in plan]

    assert not [step for step in steps if step.startswith(("SCAN message", "SCAN r", "SCAN m"))]
    if name not in SCANS_ALLOWED:
        assert not [step for step in steps if step.startswith(("SCAN dead", "SCAN d "))]
