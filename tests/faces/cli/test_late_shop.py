"""The walk-through of docs/operations/late-shop.md, command by command, on a real file."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path

from attention_queue import AttentionQueue, Plan, Policy, Reject
from attention_queue.contract import Backoff
from attention_queue.ports import Want
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, served

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "late-shop.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
MOMENT = re.compile(r"(\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d:\d\d")
AGE = re.compile(r"\b\d+(\.\d+)?(d|h|m|s)( \d+[hms])?\b")
NUMBER = re.compile(r"^ *\d+ (?= *<moment>)")  # of an entry in the audit trail
EXITS = {"status": 1}  # degraded; all others succeed


async def yesterday(queue: AttentionQueue) -> None:
    """The shop's feed has wrong prices: its messages are refused. Much work stands before it."""

    @queue.handler("price.changed")
    async def refuse(payload: dict[str, int]) -> Reject | None:
        return Reject("negative_price") if payload["cents"] < 0 else None

    policy = Policy(max_messages=50, retry=Backoff(attempts=1), lease=timedelta(minutes=10))
    await queue.set_plan(Plan("basic", policy), actor="deploy")
    await queue.publish_many(
        queue.message(LATE, "price.changed", {"sku": n, "cents": -1}, id=f"bad-{n}")
        for n in range(40)
    )
    await served(queue)


async def this_morning(queue: AttentionQueue) -> None:
    shops = [f"us/store-{number}" for number in range(1, 13)]
    await queue.publish_many(
        queue.message(shop, "price.changed", {"sku": n, "cents": 100})
        for shop in (*shops, LATE)
        for n in range(30 if shop != LATE else 400)
    )


async def now(queue: AttentionQueue) -> None:
    """One worker, and it has one slot."""
    await queue.engine.begin(Want(owner="w-1", groups=(queue.name,), limit=1, extra=0))


def plain(line: str) -> str:
    """Without what differs from day to day: moments, ages, the width of columns."""
    line = AGE.sub("<age>", MOMENT.sub("<moment>", line))
    return " ".join(NUMBER.sub("", line).split())


def test_the_page_shows_what_the_commands_say(cli: Cli, given: Setup) -> None:
    given(yesterday, ago=timedelta(hours=20))
    given(this_morning, ago=timedelta(minutes=6))
    given(now)
    shown = [block.splitlines() for block in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]

    for command, *lines in shown:
        words = shlex.split(command.removeprefix("$ attn "))
        ran = cli(*words)

        assert ran.code == EXITS.get(words[0], 0), (command, ran.err)
        said = iter([plain(line) for line in (ran.out + ran.err).splitlines()])
        for line in filter(None, map(plain, lines)):
            assert line == "…" or line in said, f"{command}: {line!r} is not in\n{ran.out}"
    assert len(shown) >= 8
