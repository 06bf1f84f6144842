"""Waiting: whoever waits for a request hears of it, also between its look and its wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from attention_queue.contract import CycleEnd
from attention_queue.ports import Begun, Engine, Nudge
from contract.stage import LEASE, SECOND, Stage, done, ids, message, messages, shop

Passes = Callable[[timedelta], None]
Engines = tuple[Engine, Engine]
FAR = 3600.0  # seconds of the manual clock: nobody moves it, so only a wake-up ends the wait
GROUPS = ("shops",)


async def _woken(engine: Engine, groups: tuple[str, ...] = GROUPS) -> None:
    async with asyncio.timeout(10):
        await engine.wait(groups, FAR)


async def _all_seen(stage: Stage, *engines: Engine) -> None:
    """Nothing is due, and nothing of the past will wake them."""
    for engine in engines * 2:
        assert await stage.look(engine=engine) == []


async def _asleep(*tasks: asyncio.Task[None]) -> None:
    """Let the waiters go to sleep; fails if one of them does not."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def test_a_publish_ends_the_wait(stage: Stage) -> None:
    await stage.open()
    await stage.look()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(stage.engine))
        await _asleep(waiting)

        await stage.put(message(shop("a"), "1"))

    assert await stage.serve() == ["1"]


async def test_a_publish_by_another_connection_ends_the_wait(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await _all_seen(stage, engines[0])
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(engines[0]))
        await _asleep(waiting)

        await engines[1].put("shops", [message(shop("a"), "1")])

    assert await stage.serve(engine=engines[0]) == ["1"]


async def test_everybody_who_waits_is_woken(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await _all_seen(stage, *engines)
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(_woken(engine)) for engine in (*engines, *engines)]
        await _asleep(*waiting)

        await stage.put(message(shop("a"), "1"))

    assert await stage.serve() == ["1"]


async def test_one_that_stops_waiting_leaves_the_others_waiting(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await _all_seen(stage, *engines)
    await engines[0].wait(GROUPS, 0.0)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(engines[1]))
        await _asleep(waiting)
        await engines[0].wait(GROUPS, 0.0)

        await engines[0].put("shops", [message(shop("a"), "1")])

    assert await stage.serve() == ["1"]


async def test_what_came_between_the_look_and_the_wait_is_not_missed(stage: Stage) -> None:
    await stage.open()
    assert await stage.look() == []
    await stage.put(message(shop("a"), "1"))

    await _woken(stage.engine)

    assert await stage.serve() == ["1"]


async def test_what_another_connection_did_between_the_look_and_the_wait_is_not_missed(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    for n in range(50):
        assert await stage.look(engine=engines[0]) == []
        await engines[1].put("shops", [message(shop("a"), str(n))])

        await _woken(engines[0])

        assert await stage.serve(engine=engines[0]) == [str(n)]


async def test_the_look_of_one_worker_does_not_hide_the_work_of_another(stage: Stage) -> None:
    await stage.open()
    await stage.open("mail")
    assert await stage.look(groups=("shops",)) == []
    await stage.put(message(shop("a"), "1"))
    assert await stage.look(groups=("mail",)) == []

    await _woken(stage.engine, ("shops",))

    assert await stage.serve() == ["1"]


async def test_a_finish_that_leaves_work_ends_the_wait_of_another(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    await _all_seen(stage, engines[1])
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(engines[1]))
        await _asleep(waiting)

        await stage.finish(begun, done(begun.loan))

    assert await stage.serve(engine=engines[1]) == ["a-2"]


async def test_a_nudge_ends_the_wait(stage: Stage, engines: Engines) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1", not_before=stage.clock.now() + LEASE))
    await stage.look()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(stage.engine))
        await _asleep(waiting)

        await engines[1].change(Nudge(group="shops", resource=shop("a")), actor="ann")

    assert await stage.look() == []  # the message is still not due


async def test_a_request_that_falls_due_ends_the_wait(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1", not_before=stage.clock.now() + 10 * SECOND))
    assert await stage.look() == []
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(stage.engine))
        await _asleep(waiting)

        passes(10 * SECOND)

    assert await stage.serve() == ["1"]


async def test_the_end_of_a_dead_holders_lease_ends_the_wait(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    dead = await stage.begin_one()
    assert await stage.look() == []
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_woken(stage.engine))
        await _asleep(waiting)

        passes(LEASE)

    assert await stage.serve() == ids(dead.loan)


async def test_a_wait_lasts_no_longer_than_it_may(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.look()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(stage.engine.wait(GROUPS, 5.0))
        await _asleep(waiting)

        passes(5 * SECOND)

        async with asyncio.timeout(10):
            await waiting


async def test_more_that_is_ready_than_was_begun_ends_the_wait_at_once(stage: Stage) -> None:
    await stage.open()
    for n in range(3):
        await stage.put(message(shop(f"{n}"), "1"))
    begun = await stage.begin_one()

    await _woken(stage.engine)

    assert len(await stage.serve()) == 2
    await stage.finish(begun, done(begun.loan))


async def test_a_cancelled_wait_leaves_nothing_behind(stage: Stage) -> None:
    await stage.open()
    await stage.look()
    waiting = asyncio.ensure_future(stage.engine.wait(GROUPS, FAR))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stage.put(message(shop("a"), "1"))

    assert waiting.cancelled()
    assert await stage.serve() == ["1"]


async def test_the_two_that_wait_longest_are_named(stage: Stage, passes: Passes) -> None:
    await stage.open()
    for name in ("a", "b", "c"):
        await stage.put(message(shop(name), name))
        passes(SECOND)

    waiting = await stage.engine.waiting(GROUPS)

    assert list(waiting) == [(shop("a"), 3.0), (shop("b"), 2.0)]


async def test_a_request_that_fell_due_unseen_waits_like_any_other(
    stage: Stage, passes: Passes
) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "a", not_before=stage.clock.now() + SECOND))
    passes(3 * SECOND)

    assert list(await stage.engine.waiting(GROUPS)) == [(shop("a"), 2.0)]


async def test_the_end_of_a_renewed_lease_makes_nobody_wait(stage: Stage, passes: Passes) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 2))
    begun = await stage.begin_one(take=1)
    passes(LEASE / 2)
    await stage.engine.renew([begun])
    passes(LEASE / 2)

    assert list(await stage.engine.waiting(GROUPS)) == []
    assert not any(isinstance(found, Begun) for found in await stage.look())
    await stage.finish(begun, done(begun.loan), CycleEnd.MESSAGES)
