"""When outcomes reach the store: slow ones at once, quick ones together, none twice."""

from __future__ import annotations

import pytest

from attention_queue import AttentionQueue, Context, Plan, Policy
from attention_queue.contract.events import (
    CycleFinished,
    HandlerStarted,
    MessagesSettled,
    TokenWasLost,
)
from attention_queue.testkit import Attn
from unit.core.serving import SECOND, of_kind, rest, serving, started


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(lease=10 * SECOND))])

    @queue.handler("wait")
    async def wait(message: float) -> None:
        await attn.clock.sleep(message)

    await attn.open(queue)
    return queue


async def test_what_a_slow_handler_did_is_settled_before_the_next_begins(
    attn: Attn, queue: AttentionQueue
) -> None:
    for _ in range(3):
        await attn.publish("t/1", "wait", 1)

    async with serving(queue):
        await attn.advance(4 * SECOND)

    kinds = [type(e) for e in attn.events if isinstance(e, HandlerStarted | MessagesSettled)]
    assert kinds == [HandlerStarted, MessagesSettled] * 3


async def test_what_quick_handlers_did_is_settled_together_with_the_end(
    attn: Attn, queue: AttentionQueue
) -> None:
    for _ in range(30):
        await attn.publish("t/1", "wait", 0)

    await attn.drain()

    assert [event.done for event in of_kind(attn, MessagesSettled)] == [30]


async def test_a_slice_whose_token_is_lost_starts_no_further_message(
    attn: Attn, queue: AttentionQueue
) -> None:
    handled: list[int] = []

    @queue.handler("lose")
    async def lose(message: int, context: Context) -> None:
        handled.append(context.fence)
        if len(handled) == 1:  # all stands still for longer than the lease; another takes over
            attn.clock.advance(11 * SECOND)
            assert await attn.crash() == ["0"]

    for n in range(3):
        await attn.publish("t/1", "lose", n, id=str(n))
    async with serving(queue):
        await rest(attn)
        assert len(handled) == 1
        await attn.advance(12 * SECOND)

    assert started(attn) == ["0", "0", "1", "2"]
    assert len(set(handled)) == 2
    assert len(of_kind(attn, TokenWasLost)) == 1
    assert [event.handled for event in of_kind(attn, CycleFinished)] == [3]
    assert await attn.backlog("t/1") == 0
