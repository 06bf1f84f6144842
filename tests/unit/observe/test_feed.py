"""The feed of events on a worker's port, and the command that follows it."""

from __future__ import annotations

import asyncio
import json
from http.client import HTTPConnection

import pytest

from attention_queue import AttentionQueue
from attention_queue.cli import program
from attention_queue.cli.exits import Exit
from attention_queue.observe.opening import metrics_port
from attention_queue.testkit import Attn
from unit.observe.observing import Slots


def _follow(
    port: int, last: str, listening: asyncio.Event, loop: asyncio.AbstractEventLoop
) -> list[dict[str, object]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        loop.call_soon_threadsafe(listening.set)
        found: list[dict[str, object]] = []
        for line in answer:
            if line.strip():
                found.append(json.loads(line))
            if found and found[-1]["event"] == last:
                break
        return found
    finally:
        connection.close()


async def test_a_listener_hears_of_each_cycle_and_change_and_of_no_payload(attn: Attn) -> None:
    queue = AttentionQueue("shops")
    await attn.open(queue)

    @queue.handler("it")
    async def it(message: str) -> None: ...

    opening = metrics_port(attn.engine, Slots(), port=0, served={"shops": ()}, insight=None)
    async with opening as server, asyncio.timeout(20):
        listening, loop = asyncio.Event(), asyncio.get_running_loop()
        following = loop.create_task(
            asyncio.to_thread(_follow, server.port, "resource.state_changed", listening, loop)
        )
        await listening.wait()
        await attn.publish("t/1", "it", "secret")
        await attn.drain()
        await queue.pause("t/1", "stock taking")
        heard = await following

    (cycle,) = [event for event in heard if event["event"] == "cycle.finished"]
    assert (cycle["resource"], cycle["end"]) == ("t/1", "drained")
    assert heard[-1]["state"] == "paused"
    assert "secret" not in json.dumps(heard)


async def test_a_feed_that_ends_ends_its_listeners(attn: Attn) -> None:
    await attn.open(AttentionQueue("shops"))
    opening = metrics_port(attn.engine, Slots(), port=0, served={"shops": ()}, insight=None)
    async with asyncio.timeout(20):
        async with opening as server:
            listening, loop = asyncio.Event(), asyncio.get_running_loop()
            following = loop.create_task(
                asyncio.to_thread(_follow, server.port, "none", listening, loop)
            )
            await listening.wait()

        assert await following == []


def test_events_are_followed_or_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["events"]) == Exit.USAGE
    assert "follow new ones with -f" in capsys.readouterr().err


def test_a_port_without_a_worker_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["events", "-f", "--port", "1"]) == Exit.UNAVAILABLE
    assert "attn worker APP --metrics-port 1" in capsys.readouterr().err
