"""The whole card of ``attn explain``: one screen of a terminal, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from attention_queue import AttentionQueue, Plan, Policy
from attention_queue.clock import ManualClock
from attention_queue.contract import DONE, CycleEnd, Priority
from attention_queue.ports import Begun, Ending, Want
from faces.cli.conftest import Cli, Setup

SHOP = "eu-1/store-873"


async def one_slice(queue: AttentionQueue) -> None:
    [begun] = await begin(queue)
    outcomes = [(delivery, DONE) for delivery in begun.loan]
    assert isinstance(queue.engine.clock, ManualClock)
    queue.engine.clock.advance(timedelta(seconds=2))
    ending = Ending(end=CycleEnd.MESSAGES)
    await queue.engine.finish(begun, outcomes, ending, len(outcomes))


async def begin(queue: AttentionQueue) -> Sequence[Begun]:
    want = Want(owner="host-7.4242", groups=(queue.name,), limit=1, extra=0)
    return [each for each in await queue.engine.begin(want) if isinstance(each, Begun)]


async def busy(queue: AttentionQueue) -> None:
    """A shop with much work, four slices done and one under way, paused once and resumed."""
    await queue.set_plan(Plan("basic", Policy(max_messages=50, lease=timedelta(minutes=10))))
    await queue.register(SHOP, actor="deploy")
    await queue.publish_many(queue.message(SHOP, "price.changed", {"n": n}) for n in range(450))
    await queue.pause(SHOP, "stock taking, which takes as long as it takes " * 3, actor="kim")
    await queue.resume(SHOP, actor="kim")
    for _ in range(4):
        await one_slice(queue)
    await begin(queue)


@pytest.mark.parametrize("width", [80, 100])
def test_it_is_one_screen(
    cli: Cli, given: Setup, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(busy, ago=timedelta(seconds=10))
    monkeypatch.setenv("COLUMNS", str(width))

    ran = cli("explain", "store-873")

    lines = ran.out.splitlines()
    assert len(lines) <= 24
    assert max(len(line.rstrip()) for line in lines) <= width
    for name in ("backlog", "held by", "limit", "rates", "forecast", "last cycles", "last changes"):
        assert [line for line in lines if line.startswith(name)], f"no {name} in\n{ran.out}"


def test_it_says_how_fast_it_goes_what_holds_it_back_and_who_did_what(
    cli: Cli, given: Setup
) -> None:
    given(busy, ago=timedelta(seconds=10))

    said = {
        line[:14].strip(): " ".join(line[14:].split())
        for line in cli("explain", SHOP).out.splitlines()
        if line[:14].strip()
    }

    assert said["limit"] == "consumers"
    assert said["held by"].startswith("host-7.4242: slot 0, 50 messages, lease 9m 5")
    assert said["rates"].endswith("; a consumer does 25.0/s")
    assert said["last cycles"].endswith("ago: 50 messages in 2.0s, ended by messages")
    assert "ago: state paused → active by kim" in said["last changes"]
    assert said["forecast"].startswith(("not at this rate", "clear in"))


def test_the_json_has_all_of_it(cli: Cli, given: Setup) -> None:
    given(busy, ago=timedelta(seconds=10))

    explained = cli("explain", SHOP, "-o", "json").data
    shown = cli("show", SHOP, "-o", "json").data

    assert explained["limit"] == "consumers"
    assert explained["numbers"]["consumer_per_second"] == 25.0
    assert explained["tokens"][0]["owner"] == "host-7.4242"
    assert [cycle["end"] for cycle in explained["cycles"]] == ["messages"] * 4
    assert explained["cycles"][0]["handled"] == 50
    assert datetime.fromisoformat(explained["cycles"][0]["at"])
    assert [change["actor"] for change in explained["changes"]] == ["kim", "kim", "deploy"]
    assert set(explained["forecast"]) == {"clear_seconds", "because"}
    for name in ("cycles", "changes", "tokens"):
        assert shown[name] == explained[name]


def test_a_shop_that_goes_faster_than_its_work_comes_has_a_forecast(cli: Cli, given: Setup) -> None:
    async def catching_up(queue: AttentionQueue) -> None:
        await queue.publish_many(queue.message(SHOP, "price.changed", {}) for _ in range(2_000))
        assert isinstance(queue.engine.clock, ManualClock)
        await one_slice(queue)
        queue.engine.clock.advance(timedelta(minutes=4))
        for _ in range(10):
            await one_slice(queue)

    given(catching_up, ago=timedelta(seconds=262))

    data = cli("explain", SHOP, "-o", "json").data

    numbers = data["numbers"]
    faster = numbers["service_per_second"] - numbers["arrival_per_second"]
    assert data["forecast"]["because"].startswith("clear in ")
    assert numbers["clear_seconds"] == pytest.approx(numbers["backlog"] / faster, rel=0.01)


def test_status_shows_what_became_of_the_requests(cli: Cli, given: Setup) -> None:
    async def acts(queue: AttentionQueue) -> None:
        await busy(queue)
        await queue.publish("us/paused", "price.changed", {}, priority=Priority.HIGH)
        await queue.pause("us/paused", "stock taking", actor="kim")
        await begin(queue)

    given(acts)

    ran, data = cli("status"), cli("status", "-o", "json").data

    lines = ran.out.splitlines()
    head, row = lines[lines.index("", 3) + 1 :][:2]
    assert " ".join(head.split()) == (
        "Requests so far Published Coalesced Again Wasted Discarded Blocked"
    )
    assert row.split() == ["marketplace", "2", "-", "4", "-", "1", "-"]
    assert data["groups"][0]["requests"] == {
        "published": 2,
        "coalesced": 0,
        "republished": 4,
        "wasted": 0,
        "discarded": {"paused": 1},
        "blocked": {},
    }
