"""Log lines: which events have one, at which level, and what may never be in it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from attention_queue import AttentionQueue
from attention_queue.clock import ManualClock
from attention_queue.contract import Resource
from attention_queue.contract import events as e
from attention_queue.contract.bus import Bus
from attention_queue.observe.logs import LEVEL_OF, LEVELS, NOT_LOGGED, Logs, logger_to
from attention_queue.testkit import Attn
from unit.observe.observing import ONE_OF_EACH, SHOP


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def written(*events: e.Event, level: str = "debug") -> list[dict[str, Any]]:
    bus, stream = Bus(), io.StringIO()
    Logs(bus, logger_to(stream, clock=ManualClock()), level=level).attach()
    for event in events:
        bus.emit(event)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_the_event_with_its_fields() -> None:
    finished = next(event for event in ONE_OF_EACH if isinstance(event, e.CycleFinished))

    lines = written(finished)

    assert lines == [
        {
            "timestamp": "2026-01-01T00:00:00.000+00:00",
            "level": "info",
            "event": "cycle.finished",
            "group": "marketplace",
            "resource": "seller-group-a/store-873",
            "plan": "pro",
            "end": "messages",
            "handled": 10,
            "duration": 0.4,
            "backlog": 6,
            "republished": True,
        }
    ]
    assert list(lines[0])[:3] == ["timestamp", "level", "event"]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.name)
def test_an_event_has_the_line_that_is_promised(event: e.Event) -> None:
    levels = [line["level"] for line in written(event)]

    if isinstance(event, e.SweepFinished):
        assert levels == ["warning"]
    else:
        assert levels == ([] if type(event) in NOT_LOGGED else [LEVEL_OF[type(event)]])


def test_a_sweep_that_found_nothing_is_no_warning() -> None:
    assert [line["level"] for line in written(e.SweepFinished({}))] == ["debug"]
    assert written(e.SweepFinished({}), level="info") == []


def test_what_a_retirement_sets_aside_has_no_line_for_each() -> None:
    dead = [each for each in ONE_OF_EACH if isinstance(each, e.DeadLettered)]
    retired = [replace(each, reason="retired") for each in dead]

    assert written(*retired, level="info") == []
    assert len(written(*retired)) == len(written(*dead, level="warning")) == 1


@pytest.mark.parametrize("progress", ["done", "cancelled"])
def test_the_last_step_of_an_operation_has_a_line(progress: str) -> None:
    last = e.OperationAdvanced("marketplace", 7, "redrive", 12, 0, progress)
    running = e.OperationAdvanced("marketplace", 7, "redrive", 12, 0, "running")

    [line] = written(running, last, level="info")

    assert (line["event"], line["number"], line["progress"]) == ("operation.advanced", 7, progress)


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_below_the_level_is_written_or_listened_for(level: str) -> None:
    lines = written(*ONE_OF_EACH, level=level)

    assert {LEVELS.index(line["level"]) >= LEVELS.index(level) for line in lines} == {True}
    assert len(lines) == {"debug": 18, "info": 14, "warning": 7, "error": 1}[level]


async def test_a_real_worker_writes_one_line_per_cycle_and_no_payload(attn: Attn) -> None:
    stream = io.StringIO()
    Logs(attn.bus, logger_to(stream, clock=attn.clock)).attach()
    queue = AttentionQueue("marketplace")

    @queue.handler("order")
    async def order(payload: str) -> None:
        raise ValueError(f"cannot ship {payload}")

    await attn.open(queue)
    for n in range(20):
        await attn.publish(Resource("a", "s"), "order", f"canary-{n}")
    ends = await attn.drain()

    cycles = [line for line in stream.getvalue().splitlines() if '"cycle.finished"' in line]
    assert len(cycles) == len(ends) == 1
    assert "canary" not in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no answer from postgres://me:hunter2@db/x", "no answer from postgres://me:***@db/x"),
        ("amqp://:hunter2@mq", "amqp://:***@mq"),
        ("key attn_k1_aHVudGVyMmh1bnRlcjI=", "key attn_k1_***"),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("password=hunter2 user=me", "password=*** user=me"),
        ("api_key: hunter2", "api_key: ***"),
        ("a\nb\x1b[31m\u202e\x00", "a\\u000ab\\u001b[31m\\u202e\\u0000"),
        ("\ud800", "\\ud800"),
        ("x" * 10_000, "x" * 500),
    ],
)
def test_text_from_outside_is_made_safe(text: str, shown: str) -> None:
    assert written(e.LoopFailed("dispatch", text))[0]["error"] == shown


def test_on_a_terminal_a_line_is_for_reading() -> None:
    bus, stream = Bus(), Terminal()
    Logs(bus, logger_to(stream, clock=ManualClock())).attach()

    bus.emit(e.TokenWasLost("marketplace", SHOP, 7))

    line = stream.getvalue()
    assert line.count("\n") == 1 and "token.lost" in line and "store-873" in line
    assert not line.startswith("{") and "\x1b" not in line


def test_a_full_disk_stops_no_work() -> None:
    bus = Bus()
    Logs(bus, logger_to(Full(), clock=ManualClock())).attach()

    bus.emit(e.TokenWasLost("marketplace", SHOP, 7))


def test_what_is_detached_writes_no_more() -> None:
    bus = Bus()

    Logs(bus, logger_to(io.StringIO(), clock=ManualClock())).attach()()

    assert not any(bus.wants(kind) for kind in get_args(e.Event))
