"""``attn audit``, ``attention``, ``peek``, ``reconcile`` and ``token``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import AttentionQueue
from attention_queue.ports import Want
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, with_backlog


async def begun(queue: AttentionQueue) -> None:
    """A worker has the shop's first messages in hand, and dies."""
    await with_backlog(queue)
    await queue.engine.begin(Want(owner="w-1", groups=(queue.name,), limit=1, extra=1, take=10))


def test_the_trail_says_who_did_what_to_what(cli: Cli, given: Setup) -> None:
    given(with_backlog)
    cli("pause", LATE, "--reason", "one", "--actor", "lee")
    cli("boost", LATE, "--for", "10m")
    cli("plan", "set", "basic", "max_messages=9", "--reason", "two")

    all_, one = (cli("audit", *words, "-o", "json").data for words in ((), (LATE,)))
    drawn = cli("audit").out.splitlines()
    older = cli("audit", "--before", str(all_[0]["number"]), "--limit", "1", "-o", "json").data

    assert [(e["verb"], e["actor"], e["reason"]) for e in all_] == [
        ("set_plan", "kim", "two"), ("plan", "kim", "boost"), ("state", "lee", "one"),
    ]  # fmt: skip
    assert [e["verb"] for e in one] == ["plan", "state"]
    assert [e["verb"] for e in older] == ["plan"]
    assert all_[2]["detail"]["is"] == "paused"
    assert "set plan basic" in drawn[1]
    assert "overrides" in drawn[2]
    assert "state active → paused" in drawn[3]


def test_the_line_is_shown_in_order_with_what_is_parked_and_why(cli: Cli, given: Setup) -> None:
    given(with_backlog, ago=timedelta(minutes=1))
    cli("boost", "us/store-3", "--priority", "high", "--for", "1h")

    rows = cli("attention", "-o", "json").data
    drawn = cli("attention", "--first", "2").out

    assert [(row["resource"], row["lane"], row["place"], row["parked"]) for row in rows] == [
        ("us/store-3", "high", 1, None),
        (LATE, "normal", 1, None),
        ("us/store-1", "normal", 2, None),
        ("us/store-2", "normal", 3, None),
        ("us/later", None, None, "delayed"),
    ]
    assert "Lane normal: 3 requests in line" in drawn
    assert "Parked, delayed: 1 request" in drawn
    assert "us/store-2" not in drawn


def test_a_peek_takes_nothing_and_says_what_is_in_hand(cli: Cli, given: Setup) -> None:
    given(begun)

    rows = cli("peek", "store-873", "--limit", "12", "-o", "json").data
    later = cli("peek", "us/later", "-o", "json").data

    assert [row["on_loan"] for row in rows] == [True] * 10 + [False] * 2
    assert rows[3]["payload"] == '{"sku":3}'
    assert later[0]["due"] is not None
    assert cli("show", LATE, "-o", "json").data["backlog"] == 150


def test_tokens_are_listed_and_a_dead_holders_is_freed(cli: Cli, given: Setup) -> None:
    given(begun)
    [held] = cli("token", "ls", "-o", "json").data

    ran = cli("token", "release", LATE, "--reason", "its machine is gone", "--yes")

    assert (held["resource"], held["owner"], held["loaned"], held["ended"]) == (
        LATE, "w-1", 10, False,
    )  # fmt: skip
    assert (ran.code, ran.out) == (0, f"slot 0 of {LATE} is free to be taken over\n")
    [after] = cli("token", "ls", "-o", "json").data
    assert after["ended"]
    assert cli("show", LATE, "-o", "json").data["request"]["due"] is None
    [entry] = cli("audit", "-o", "json").data
    assert (entry["verb"], entry["reason"]) == ("release_token", "its machine is gone")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("token", "release", LATE), 2, "why? add --reason TEXT"),
        (("token", "release", LATE, "--reason", "x"), 2, "this is no terminal"),
        (("token", "release", LATE, "--reason", "x", "--slot", "3", "--yes"), 3,
         "has no token in slot 3 out"),
        (("token", "release", "us/store-1", "--reason", "x", "--yes"), 3, "has no token out"),
        (("audit", "nope"), 3, "no resource 'nope'"),
        (("peek", "nope"), 3, "no resource 'nope'"),
        (("attention", "--group", "nope"), 3, "no group 'nope'; there is marketplace"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_changed(
    cli: Cli, given: Setup, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(begun)

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert cli("audit", "-o", "json").data == []


def test_work_that_nobody_comes_for_is_found_and_then_mended(
    cli: Cli, given: Setup, folder: Path
) -> None:
    given(with_backlog)
    assert cli("reconcile", "--dry-run").out == "nothing is wrong\n"
    with closing(sqlite3.connect(folder / "attention.db")) as db, db:
        db.execute("DELETE FROM attention WHERE backlog = 150")

    dry = cli("reconcile", "--dry-run", "-o", "json")
    assert cli("reconcile", "--dry-run").code == 1
    mended = cli("reconcile")
    after = cli("reconcile", "--dry-run")

    assert dry.data == [
        {"group": "marketplace", "resource": LATE, "finding": "work_without_request"}
    ]
    assert (mended.code, mended.err) == (0, "mended: 1 work_without_request\n")
    assert (after.code, after.out) == (0, "nothing is wrong\n")
    assert cli("explain", LATE, "-o", "json").data["verdict"] == "waiting_turn"


@pytest.mark.parametrize(
    "command",
    [
        ("peek", "eu-1/store-1", "--limit", "-1"),
        ("audit", "--limit", "0"),
        ("dlq", "show", "9" * 30),
    ],
)
def test_a_number_beyond_reason_is_a_usage_error(cli: Cli, command: tuple[str, ...]) -> None:
    said = cli(*command)

    assert said.code == 2
    assert "Traceback" not in said.err
