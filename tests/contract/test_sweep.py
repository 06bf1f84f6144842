"""The sweep: what should never happen, made to happen behind the engine's back, and mended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import State
from attention_queue.ports import Engine
from contract.stage import LEASE, SECOND, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
MINUTE = timedelta(minutes=1)


async def _sweep(stage: Stage, *, page: int = 100, engine: Engine | None = None) -> dict[str, int]:
    repairs: dict[str, int] = {}
    after: int | None = -1
    while after is not None:
        swept = await (engine or stage.engine).sweep(after, page)
        for why, count in swept.repairs.items():
            repairs[why] = repairs.get(why, 0) + count
        assert swept.after is None or swept.after > after
        after = swept.after
    return repairs


async def test_a_sound_store_needs_no_repair(stage: Stage, passes: Passes) -> None:
    await stage.open(max_consumers=2)
    await stage.put(*messages(shop("ready"), 2))
    await stage.put(*messages(shop("held"), 2))
    await stage.put(message(shop("late"), "1", not_before=stage.clock.now() + SECOND))
    await stage.put(message(shop("paused"), "1"))
    await stage.set_state(shop("paused"), State.PAUSED)
    held = await stage.begin(take=1)

    assert await _sweep(stage) == {}
    for begun in held:
        await stage.finish(begun, done(begun.loan))
    assert await _sweep(stage) == {}


async def test_work_without_a_request_is_asked_for(stage: Stage) -> None:
    await stage.open()
    for n in range(7):
        await stage.put(*messages(shop(f"{n}"), 3))
    stage.rows("DELETE FROM attention WHERE rid % 2 = 0")
    ((lost,),) = stage.rows("SELECT count(DISTINCT rid) FROM message WHERE rid % 2 = 0")

    repairs = await _sweep(stage, page=2)

    assert repairs == {"work_without_request": lost}
    assert len(await stage.serve()) == 21


async def test_a_request_that_is_held_though_its_resource_is_active_is_freed(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.set_state(shop("a"), State.PAUSED)
    await stage.serve()
    stage.rows("UPDATE resource SET state = 'active'")
    assert await stage.serve() == []

    repairs = await _sweep(stage)

    assert repairs == {"held_though_active": 1}
    assert await stage.serve() == ["1"]


async def test_a_request_that_is_later_than_its_work_is_pulled_forward(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    late = stage.clock.now_ms() + 3_600_000
    stage.rows("UPDATE attention SET due_ms = ?", late)
    assert await stage.serve() == []

    repairs = await _sweep(stage)

    assert repairs == {"request_too_late": 1}
    assert await stage.serve() == ["1"]


async def test_a_token_that_ended_unnoticed_is_found(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.begin_one()
    stage.rows("UPDATE attention SET due_ms = due_ms + 3600000, hold_ms = hold_ms + 3600000")
    passes(LEASE + MINUTE + SECOND)
    assert await stage.serve() == []

    repairs = await _sweep(stage)

    assert repairs == {"ended_token": 1}
    assert await stage.serve() == ["1"]


async def test_a_token_that_ended_without_a_request_or_work_is_found(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.begin_one()
    stage.rows("DELETE FROM attention")
    stage.rows("DELETE FROM message")
    passes(LEASE + 2 * MINUTE)

    first = await _sweep(stage)
    await stage.serve()

    assert first == {"ended_token": 1}
    assert await _sweep(stage) == {}
    assert stage.rows("SELECT count(*) FROM token") == [(0,)]


async def test_tokens_that_are_well_do_not_hide_one_that_ended(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("lost"), "lost"))
    await stage.begin_one()
    stage.rows("UPDATE attention SET due_ms = due_ms + 36000000, hold_ms = hold_ms + 36000000")
    for n in range(1000):
        await stage.put(message(shop(f"{n}"), f"{n}"))
    passes(LEASE + MINUTE + SECOND)
    live = await stage.begin(limit=1000)

    repairs = await _sweep(stage, page=10)

    assert repairs["ended_token"] == 1
    assert "lost" in await stage.serve()
    for begun in live:
        await stage.finish(begun, done(begun.loan))


async def test_a_long_cycle_that_renews_is_left_alone(stage: Stage, passes: Passes) -> None:
    await stage.open(lease=10 * SECOND)
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    for _ in range(120):  # ten minutes
        passes(5 * SECOND)
        await stage.engine.renew([begun])
        assert await _sweep(stage) == {}
        assert await stage.begin() == []

    await stage.finish(begun, done(begun.loan))
    assert await stage.serve() == []


async def test_two_sweepers_with_one_view_repair_once_and_nothing_is_done_twice(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    stage.rows("DELETE FROM attention")

    first = await _sweep(stage, engine=engines[0])
    second = await _sweep(stage, engine=engines[1])

    assert (first, second) == ({"work_without_request": 1}, {})
    assert await stage.serve() == ["1"]


async def test_what_was_settled_before_the_sweep_got_there_stays_settled(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 1), *messages(shop("b"), 1))
    page = await stage.engine.sweep(-1, 1)
    assert page.after is not None
    assert sorted(await stage.serve()) == ["a-1", "b-1"]

    rest = await stage.engine.sweep(page.after, 1)

    assert (rest.after, dict(rest.repairs)) == (None, {})
    assert await stage.serve() == []


async def test_one_leads_until_its_lease_ends(
    stage: Stage, passes: Passes, engines: Engines
) -> None:
    lease = 10 * SECOND

    assert await engines[0].lead("sweep", "first", lease)
    assert not await engines[1].lead("sweep", "second", lease)
    passes(lease / 2)
    assert await engines[0].lead("sweep", "first", lease)  # renewed
    passes(lease / 2)
    assert not await engines[1].lead("sweep", "second", lease)
    passes(lease / 2)
    assert await engines[1].lead("sweep", "second", lease)
    assert not await engines[0].lead("sweep", "first", lease)  # it no longer believes it leads


async def test_leading_one_task_is_not_leading_another(stage: Stage) -> None:
    assert await stage.engine.lead("sweep", "first", SECOND)

    assert await stage.engine.lead("retire", "second", SECOND)


async def test_the_lead_is_steady_while_it_is_renewed_in_time(
    stage: Stage, passes: Passes, engines: Engines
) -> None:
    leaders = []
    for _ in range(120):
        leaders.append(
            [
                await engine.lead("sweep", name, 15 * SECOND)
                for engine, name in zip(engines, ("first", "second"), strict=True)
            ]
        )
        passes(5 * SECOND)

    assert leaders == [[True, False]] * 120


async def test_an_idle_resource_costs_a_sweep_nothing(stage: Stage) -> None:
    await stage.open()
    for n in range(50):
        await stage.register(shop(f"idle-{n}"))
    await stage.put(*messages(shop("busy"), 500))

    swept = await stage.engine.sweep(-1, 2)

    assert swept.after is None
    begun = await stage.begin_one()
    assert len(begun.loan) == 100
    await stage.finish(begun)


async def test_a_count_that_drifted_is_counted_again(stage: Stage) -> None:
    await stage.open()
    await stage.put(*messages(shop("more"), 3))
    await stage.put(*messages(shop("less"), 3))
    stage.rows("UPDATE attention SET backlog = backlog + 5 WHERE rid = 1")
    stage.rows("UPDATE attention SET backlog = 1 WHERE rid = 2")

    repairs = await _sweep(stage)

    assert repairs == {"counter_drift": 2}
    assert stage.rows("SELECT backlog FROM attention ORDER BY rid") == [(3,), (3,)]
    assert await _sweep(stage) == {}


async def test_a_request_that_waits_for_no_work_is_dropped(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.set_state(shop("a"), State.PAUSED)
    await stage.serve()
    stage.rows("DELETE FROM message")
    stage.rows("UPDATE attention SET backlog = 0")

    repairs = await _sweep(stage)

    assert repairs == {"request_without_work": 1}
    assert stage.rows("SELECT * FROM attention") == []
