"""``attn pause``, ``resume``, ``maintenance``, ``disable``, ``nudge``: one resource's state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from attention_queue import AttentionQueue
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, with_backlog


def version(cli: Cli, resource: str = LATE) -> int:
    return int(cli("show", resource, "-o", "json").data["version"])


@pytest.mark.parametrize(
    ("verb", "state"),
    [("pause", "paused"), ("maintenance", "maintenance"), ("disable", "disabled")],
)
def test_a_state_is_set_with_who_and_why_and_resumed(
    cli: Cli, given: Setup, verb: str, state: str
) -> None:
    given(with_backlog)

    held = cli(verb, "store-873", "--reason", "stock taking", "-o", "json")
    explained = cli("explain", "store-873")
    resumed = cli("resume", "store-873", "--actor", "lee")

    assert held.code == 0
    assert held.data == {
        "group": "marketplace", "resource": LATE, "version": 2, "state": state,
        "reason": "stock taking", "actor": "kim", "until": None, "backlog": 150,
    }  # fmt: skip
    assert f"it was set to {state} by kim: stock taking" in explained.out
    assert f"attn resume {LATE}; its work is kept" in explained.out
    assert "version       2" in explained.out
    assert resumed.out == f"{LATE} is active; 150 messages waiting\n"
    assert version(cli) == 3
    assert [row["actor"] for row in cli("audit", LATE, "-o", "json").data] == ["lee", "kim"]


def test_a_state_with_a_window_ends_by_itself(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    ran = cli("pause", LATE, "--reason", "lunch", "--for", "30m", "-o", "json")

    left = datetime.fromisoformat(ran.data["until"]) - datetime.now(UTC)
    assert timedelta(minutes=29) < left <= timedelta(minutes=30)


def test_a_nudge_changes_no_state(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    ran = cli("nudge", "us/later", "--reason", "asked for", "-o", "json")

    assert (ran.code, ran.data["state"]) == (0, "active")
    assert cli("show", "us/later", "-o", "json").data["request"]["due"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pause", LATE), 2, "why? add --reason TEXT"),
        (("pause", LATE, "--reason", " "), 2, "why? add --reason TEXT"),
        (("pause", LATE, "--reason", "x", "--for", "0s"), 2, "it would end as it begins"),
        (("pause", LATE, "--reason", "x", "--for", "soon"), 2, "--for: want seconds"),
        (("pause", LATE, "--reason", "x", "--until", "2020-01-01T00:00Z"), 2,
         "--until 2020-01-01T00:00Z: it would end before it begins, now"),
        (("pause", LATE, "--reason", "x", "--until", "2099-01-01"), 2,
         "--until: want a time with its zone"),
        (("pause", LATE, "--reason", "x", "--for", "1h", "--until", "2099-01-01T00:00Z"), 2,
         "--for and --until: want one of them"),
        (("pause", LATE, "--reason", "x", "--expect", "7"), 4,
         "eu-1/store-873 has version 1, not 7"),
        (("resume", LATE, "--expect", "7"), 4, "somebody has changed it since you read it"),
        (("pause", "nope", "--reason", "x"), 3, "no resource 'nope'"),
        (("resume", LATE, "--group", "shops"), 3, "no resource 'eu-1/store-873' in group 'shops'"),
        (("nudge", "nope"), 3, "no resource 'nope'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_and_nothing_is_changed(
    cli: Cli, given: Setup, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(with_backlog)

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert version(cli) == 1
    assert cli("audit", "-o", "json").data == []


def test_without_a_database_nothing_is_changed_and_none_is_made(cli: Cli) -> None:
    ran = cli("pause", LATE, "--reason", "x")

    assert ran.code == 5
    assert "there is no database attention.db yet" in ran.err


def test_of_two_actors_the_second_is_told(cli: Cli, given: Setup) -> None:
    given(with_backlog)
    seen = str(version(cli))

    first = cli("pause", LATE, "--reason", "one", "--expect", seen, "--actor", "one")
    second = cli("disable", LATE, "--reason", "two", "--expect", seen, "--actor", "two")

    assert (first.code, second.code) == (0, 4)
    assert "paused by one" in cli("show", LATE).out


def test_a_retired_resource_changes_its_state_no_more(cli: Cli, given: Setup) -> None:
    async def idle(queue: AttentionQueue) -> None:
        await queue.register("eu/gone")

    given(idle)
    assert cli("retire", "eu/gone", "--reason", "closed", "--yes").code == 0

    ran = cli("pause", "eu/gone", "--reason", "x")

    assert (ran.code, ran.err) == (
        4, "attn: eu/gone is removed: its state does not change any more\n",
    )  # fmt: skip
