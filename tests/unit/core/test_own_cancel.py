"""A handler that cancels its own task is not the worker leaving."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from attention_queue import AttentionQueue
from attention_queue.contract import CycleEnd
from attention_queue.contract.events import LoopFailed
from attention_queue.testkit import Attn
from unit.core.serving import of_kind


async def test_its_resource_is_left_alone_for_a_while(attn: Attn) -> None:
    queue = AttentionQueue("shops")
    await attn.open(queue)
    stubborn = True

    @queue.handler("it")
    async def it(message: int) -> None:
        task = asyncio.current_task()
        if stubborn and task is not None:
            task.cancel()
            await asyncio.sleep(0)

    await attn.publish("t/1", "it", 1)

    ends = await attn.drain()
    stubborn = False
    await attn.advance(timedelta(seconds=6))
    later = await attn.drain()

    assert ends == [CycleEnd.STOPPED]
    assert later == [CycleEnd.DRAINED]
    assert [e.loop for e in of_kind(attn, LoopFailed)] == ["handler"]
