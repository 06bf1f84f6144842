"""SIGKILL at every step of a worker and of a publisher: nothing lost, nothing stranded."""

from __future__ import annotations

import signal

import pytest

from scenario.processes import assert_at_rest
from scenario.stage import Stage

WORKER_STEPS = [
    "before begin",
    "after begin",
    "handler.started",
    "effect made",
    "handler.ended",
    "before settle",
    "after settle",
    "before finish",
    "after finish",
]
QUANTUM = 5


async def publish_some(stage: Stage, *, per_resource: int) -> dict[str, list[str]]:
    """Two resources with one consumer and one with three, all with work; ids by resource."""
    published: dict[str, list[str]] = {}
    stage.witness.many.add("t/c")
    async with stage.queue() as queue:
        for resource, plan in (("t/a", "one"), ("t/b", "one"), ("t/c", "three")):
            await queue.register(resource, plan=plan)
            published[resource] = [f"{resource[-1]}-{n}" for n in range(per_resource)]
            await queue.publish_many(
                queue.message(resource, "work", {"n": id}, id=id) for id in published[resource]
            )
    return published


@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize("step", WORKER_STEPS)
async def test_a_worker_killed_at_any_step_loses_nothing(stage: Stage, step: str, nth: int) -> None:
    published = await publish_some(stage, per_resource=12)
    victim = await stage.start("worker", die_at=step, nth=nth, quantum=QUANTUM, work=0.025)
    assert await victim.ended() == -signal.SIGKILL

    survivors = [await stage.start("worker", quantum=QUANTUM) for _ in range(2)]
    await stage.witness.until_effects(id for ids in published.values() for id in ids)
    codes = [await survivor.leave() for survivor in survivors]

    assert codes == [0, 0]
    assert_at_rest(stage.path)
    for resource, ids in published.items():
        limit = 3 if resource == "t/c" else 1
        assert stage.witness.most_at_once[resource] <= limit
        if limit == 1:
            assert stage.witness.order_of(resource) == ids
    effects = [effect.message for effect in stage.witness.effects]
    assert len(effects) - len(set(effects)) <= 4 * QUANTUM  # what the victim had on loan


@pytest.mark.parametrize("step", ["before put", "after put"])
async def test_what_a_killed_publisher_was_told_is_accepted_is_handled(
    stage: Stage, step: str
) -> None:
    publisher = await stage.start(
        "publisher", die_at=step, nth=7, prefix="p", resource="a", messages=20
    )
    assert await publisher.ended() == -signal.SIGKILL
    accepted = list(publisher.said)
    assert len(accepted) == 6

    worker = await stage.start("worker")
    await stage.witness.until_effects(accepted)
    assert await worker.leave() == 0

    assert_at_rest(stage.path)
    assert stage.witness.order_of("t/a")[:6] == accepted


async def test_workers_killed_again_and_again_lose_nothing(stage: Stage) -> None:
    """Kill between any two instructions, fifty messages at a time (sidekiq#1831)."""
    published = await publish_some(stage, per_resource=40)
    for round in range(6):
        victim = await stage.start("worker", lease=0.3, quantum=QUANTUM, work=0.002)
        await stage.witness.until_entered(3 + round * 7)
        await victim.kill()

    survivor = await stage.start("worker", lease=0.3, quantum=QUANTUM)
    await stage.witness.until_effects(id for ids in published.values() for id in ids)
    assert await survivor.leave() == 0

    assert_at_rest(stage.path)
    assert stage.witness.order_of("t/a") == published["t/a"]
