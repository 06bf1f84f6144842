"""The sweep that runs beside every worker, and who leads it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from attention_queue import AttentionQueue
from attention_queue.contract.events import LoopFailed, SweepFinished
from attention_queue.core.reconciler import Reconciler
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, of_kind, rest, serving

EVERY = timedelta(seconds=30)


async def test_of_several_workers_one_sweeps_at_a_time(attn: Attn) -> None:
    queue = AttentionQueue("market")
    await attn.open(queue)

    async with serving(queue), serving(queue), serving(queue):
        await attn.advance(10 * EVERY)
        assert len(of_kind(attn, SweepFinished)) == 10


async def test_when_the_leader_dies_another_sweeps_within_its_lease(attn: Attn) -> None:
    queue = AttentionQueue("market")
    await attn.open(queue)
    async with asyncio.TaskGroup() as tasks:
        for name in "ab":
            dies = Reconciler(attn.engine, attn.clock, attn.bus, owner=name, every=EVERY)
            if name == "a":
                leader = tasks.create_task(dies.run())
            else:
                other = tasks.create_task(dies.run())
        await attn.advance(EVERY)
        assert len(of_kind(attn, SweepFinished)) == 1

        leader.cancel()
        await attn.advance(4 * EVERY)
        assert len(of_kind(attn, SweepFinished)) >= 2
        other.cancel()


async def test_a_sweep_of_a_healthy_store_repairs_nothing(attn: Attn) -> None:
    queue = AttentionQueue("market")
    queue.handler("it")(lambda message: None)
    await attn.open(queue)
    for n in range(500):
        await attn.publish(f"t/{n}", "it", {}, delay=timedelta(hours=n % 3))
    await queue.pause("t/1", "a rest")
    await attn.crash()

    sweeping = Reconciler(attn.engine, attn.clock, attn.bus, owner="a", every=EVERY)
    async with asyncio.TaskGroup() as tasks:
        swept = tasks.create_task(sweeping.sweep())
        await attn.advance(SECOND)

    assert swept.result() == {}
    assert of_kind(attn, LoopFailed) == []
    await rest(attn)
