"""SIGTERM, SIGSTOP, and messages that kill: drained, fenced, set aside."""

from __future__ import annotations

import asyncio
import signal

from scenario.processes import assert_at_rest, rows
from scenario.stage import Stage


async def test_a_worker_told_to_leave_finishes_what_runs_and_redelivers_nothing(
    stage: Stage,
) -> None:
    ids = [f"m-{n}" for n in range(60)]
    async with stage.queue() as queue:
        await queue.publish_many(
            queue.message(f"t/r{n % 6}", "work", {}, id=id) for n, id in enumerate(ids)
        )
    leaver = await stage.start("worker", work=0.01, quantum=20)
    await stage.witness.until_entered(10)

    assert await leaver.leave() == 0
    stays = await stage.start("worker")
    await stage.witness.until_effects(ids)
    assert await stays.leave() == 0

    assert sorted(effect.message for effect in stage.witness.effects) == sorted(ids)
    assert_at_rest(stage.path)


async def test_a_worker_stopped_past_its_lease_is_fenced_out(stage: Stage) -> None:
    ids = [f"m-{n}" for n in range(12)]
    async with stage.queue() as queue:
        await queue.publish_many(queue.message("t/a", "work", {}, id=id) for id in ids)
    sleeper = await stage.start("worker", work=0.2, quantum=12, lease=0.5)
    await stage.witness.until_entered(2)
    sleeper.send(signal.SIGSTOP)

    awake = await stage.start("worker", quantum=12, lease=0.5)
    await stage.witness.until_effects(ids)
    sleeper.send(signal.SIGCONT)
    codes = [await sleeper.leave(), await awake.leave()]

    assert codes == [0, 0]
    fences = [effect.fence for effect in stage.witness.effects]
    assert fences == sorted(fences)
    assert stage.witness.order_of("t/a") == ids
    assert_at_rest(stage.path)


async def test_a_message_that_kills_its_process_is_set_aside_and_its_neighbours_are_served(
    stage: Stage,
) -> None:
    good = [f"m-{n}" for n in range(6)]
    async with stage.queue() as queue:
        for id in good[:3]:
            await queue.publish("t/a", "work", {}, id=id)
        await queue.publish("t/a", "deadly", {}, id="poison")
        for id in good[3:]:
            await queue.publish("t/a", "work", {}, id=id)

    codes: list[int] = []
    async with asyncio.TaskGroup() as tasks:
        served = tasks.create_task(stage.witness.until_effects(good))
        while not served.done():
            worker = await stage.start("worker", lease=0.3, quantum=10, slots=1)
            ended = tasks.create_task(worker.ended(60))
            await asyncio.wait({served, ended}, return_when=asyncio.FIRST_COMPLETED)
            if served.done():
                worker.send(signal.SIGTERM)
            codes.append(await ended)

    dead = rows(stage.path, "SELECT id, reason, attempts FROM dead")
    assert dead == [("poison", "poison", 3)]
    assert codes == [9, 9, 9, 9, 0]  # a death that made it a suspect, three that were charged
    assert_at_rest(stage.path)


async def test_a_handler_that_outlasts_its_lease_many_times_is_delivered_once(
    stage: Stage,
) -> None:
    """Renewed, not guessed: no second delivery by age alone (kombu#337, hexpm#1825)."""
    async with stage.queue() as queue:
        await queue.publish("t/a", "work", {}, id="long")
    workers = [await stage.start("worker", work=2.5, lease=0.4) for _ in range(2)]

    await stage.witness.until_effects(["long"])
    codes = [await worker.leave() for worker in workers]

    assert codes == [0, 0]
    assert stage.witness.entered == ["long"]
    assert_at_rest(stage.path)
