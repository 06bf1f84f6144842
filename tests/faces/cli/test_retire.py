"""``attn discard`` and ``retire``: a backlog deleted, a resource that takes no more work."""

from __future__ import annotations

from pathlib import Path

import pytest

from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, with_backlog
from faces.cli.terminal import terminal


def backlog(cli: Cli, resource: str = LATE) -> int:
    return int(cli("show", resource, "-o", "json").data["backlog"])


def test_a_backlog_is_deleted_after_a_look_at_what_would_be(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    dry = cli("discard", LATE, "--reason", "wrong feed", "--dry-run", "-o", "json")
    assert backlog(cli) == 150
    done = cli("discard", LATE, "--reason", "wrong feed", "--yes")

    assert dry.data == {"dry_run": True, "kind": "discard", "count": 150}
    assert (done.code, done.out) == (0, "operation 1 (discard) is done: 150 messages deleted\n")
    assert backlog(cli) == 0
    [entry] = cli("audit", LATE, "-o", "json").data
    assert (entry["verb"], entry["reason"], entry["actor"]) == ("discard", "wrong feed", "kim")


def test_only_what_is_old_or_of_a_type_is_deleted(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    old = cli("discard", LATE, "--reason", "x", "--older-than", "1h", "--yes")
    other = cli("discard", LATE, "--reason", "x", "--type", "price.changed", "--yes")
    these = cli("discard", "us/store-3", "--reason", "x", "--type", "price.changed", "--yes")

    assert (old.code, other.code, these.code) == (3, 3, 0)
    assert "no message of eu-1/store-873 is meant by that" in old.err
    assert (backlog(cli), backlog(cli, "us/store-3")) == (150, 0)


def test_a_retired_resource_is_a_tombstone_and_its_work_dead_letters(
    cli: Cli, given: Setup
) -> None:
    given(with_backlog)

    ran = cli("retire", "us/store-3", "--reason", "closed for good", "--yes")
    again = cli("retire", "us/store-3", "--reason", "closed for good", "--yes")
    more = cli("publish", "us/store-3", "price.changed", "{}")

    assert "3 messages moved to the dead letters" in ran.out
    assert (ran.code, again.code, more.code) == (0, 4, 4)
    assert "removed by kim: closed for good" in cli("show", "us/store-3").out
    assert len(cli("dlq", "ls", "us/store-3", "-o", "json").data) == 3


@pytest.mark.parametrize("verb", ["discard", "retire"])
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((LATE,), 2, "why? add --reason TEXT"),
        ((LATE, "--reason", "x"), 2, "this is no terminal, so nobody is asked: add --yes"),
        (("nope", "--reason", "x", "--yes"), 3, "no resource 'nope'"),
    ],
)
def test_what_is_lost_is_asked_for_twice(
    cli: Cli, given: Setup, verb: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(with_backlog)

    ran = cli(verb, *arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert backlog(cli) == 150


@pytest.mark.parametrize(("typed", "code", "left"), [(LATE, 0, 0), ("y", 1, 150)])
def test_many_are_confirmed_with_the_name(
    folder: Path, cli: Cli, given: Setup, typed: str, code: int, left: int
) -> None:
    given(with_backlog)

    with terminal(folder, "discard", LATE, "--reason", "wrong feed") as seen:
        seen.until(f"150 messages of {LATE} are deleted for good. To go on type {LATE}: ")
        seen.type(f"{typed}\n")

        assert seen.ended() == code
    assert backlog(cli) == left
