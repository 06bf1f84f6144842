"""Answers and errors that no store takes as they are: kept as text, and attempts all the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from attention_queue import AttentionQueue, Backoff, Plan, Policy, Reject, State, Stop
from attention_queue.contract.events import StateChanged
from attention_queue.testkit import Attn
from unit.core.serving import of_kind


async def serve(attn: Attn, handler: Callable[..., Any], **policy: Any) -> AttentionQueue:
    """A group whose only type ``it`` is handled by ``handler``."""
    queue = AttentionQueue("market", plans=[Plan("plan", Policy(**policy))])
    queue.handler("it")(handler)
    await attn.open(queue)
    return queue


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


async def test_an_error_without_a_text_is_a_failed_attempt(attn: Attn) -> None:
    def handle(message: int) -> None:
        raise Speechless

    await serve(attn, handle, retry=Backoff(attempts=1))
    await attn.publish("t/1", "it", 1)

    await attn.drain()

    (letter,) = await attn.dead()
    assert letter.error == "Speechless"
    assert letter.text == "(no text: its __str__ raised ValueError)"


@pytest.mark.parametrize("reason", ["no\0 \ud800", ValueError("no\0 \ud800"), "x" * 9_000])
async def test_a_reason_that_no_store_takes_is_kept_as_text(attn: Attn, reason: Any) -> None:
    await serve(attn, lambda message: Reject(reason))
    await attn.publish("t/1", "it", {})

    await attn.drain()

    (letter,) = await attn.dead()
    assert letter.reason in ("no\\0 \\ud800", "x" * 2_000)


async def test_a_stop_with_an_error_for_its_reason_sets_the_state(attn: Attn) -> None:
    why: Any = PermissionError("expired\0")
    after = timedelta.max  # beyond the calendar
    await serve(attn, lambda message: Stop(why, state=State.CREDENTIALS_ERROR, after=after))
    await attn.publish("t/1", "it", {})

    await attn.drain()

    (changed,) = of_kind(attn, StateChanged)
    assert (changed.state, changed.reason) == (State.CREDENTIALS_ERROR, "expired\\0")
