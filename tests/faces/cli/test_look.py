"""``attn status``, ``ls``, ``show`` and ``explain`` on a real file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import AttentionQueue, ResourceState, State
from attention_queue.contract import Override
from faces.cli.conftest import Cli, Setup


async def three_shops(queue: AttentionQueue) -> None:
    await queue.register("eu-1/store-1", plan="pro", routing={"marketplace": "amazon"})
    for number in range(5):
        await queue.publish("eu-1/store-1", "stock.updated", {"n": number})
    await queue.publish("eu-2/store-1", "stock.updated", {})
    await queue.publish("us/store-2", "stock.updated", {}, delay=timedelta(hours=1))
    await queue.pause("eu-2/store-1", "stock taking", actor="kim")
    await queue.register("us/idle")


async def nothing(queue: AttentionQueue) -> None:
    """The group itself is made."""


def test_without_a_database_looking_says_how_to_make_one_and_makes_none(
    cli: Cli, folder: Path
) -> None:
    for command in (("status",), ("ls",), ("show", "a/b"), ("explain", "a/b")):
        ran = cli(*command)

        assert (ran.code, ran.out) == (5, "")
        assert ran.err.startswith("attn: there is no database attention.db yet: ")
        assert "attn publish" in ran.err
    assert not list(folder.iterdir())


def test_status_is_healthy_while_a_worker_may_still_come(cli: Cli, given: Setup) -> None:
    given(three_shops)

    ran = cli("status")

    assert ran.code == 0
    assert ran.out.startswith("healthy: 7 messages, 0 resources being served and 2 in line\n")
    assert "marketplace" in ran.out


def test_status_is_degraded_when_nobody_comes(cli: Cli, given: Setup) -> None:
    given(three_shops, ago=timedelta(minutes=2))

    ran = cli("status", "-o", "json")

    assert ran.code == 1
    assert ran.data["health"] == "degraded"
    assert ran.data["because"].startswith("no worker: 7 messages and a request has waited 2m")
    [group] = ran.data["groups"]
    assert (group["backlog"], group["ready"], group["parked"]) == (7, 2, {"delayed": 1})


def test_a_list_shows_every_resource_in_the_order_of_names(cli: Cli, given: Setup) -> None:
    given(three_shops)

    rows = cli("ls", "-o", "json").data

    assert [row["resource"] for row in rows] == [
        "eu-1/store-1", "eu-2/store-1", "us/idle", "us/store-2",
    ]  # fmt: skip
    assert [row["backlog"] for row in rows] == [5, 1, 0, 1]
    assert [row["request"] for row in rows] == ["ready", "ready", None, "parked"]
    assert rows[0]["plan"] == "pro"
    assert rows[1]["state"] == "paused"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["plan:pro"], ["eu-1/store-1"]),
        (["state:paused"], ["eu-2/store-1"]),
        (["tenant:eu-*"], ["eu-1/store-1", "eu-2/store-1"]),
        (["tenant:eu-*", "state:active"], ["eu-1/store-1"]),
        (["backlog:>1"], ["eu-1/store-1"]),
        (["store-*"], ["eu-1/store-1", "eu-2/store-1", "us/store-2"]),
        (["--busy"], ["eu-1/store-1", "eu-2/store-1", "us/store-2"]),
        (["--busy", "tenant:us", "plan:basic"], ["us/store-2"]),
        (["tenant:eu-[12]"], []),
        (["plan:none"], []),
    ],
)
def test_a_list_is_narrowed_by_a_filter(
    cli: Cli, given: Setup, words: list[str], found: list[str]
) -> None:
    given(three_shops)

    rows = cli("ls", *words, "-o", "json").data

    assert [row["resource"] for row in rows] == found


@pytest.mark.parametrize("busy", [[], ["--busy"]])
def test_a_long_list_is_read_page_by_page(cli: Cli, given: Setup, busy: list[str]) -> None:
    given(three_shops)

    first = cli("ls", "--limit", "2", *busy, "-o", "ndjson")
    second = cli("ls", "--limit", "2", "--after", "eu-2/store-1", *busy, "-o", "ndjson")

    assert "there are more: --after eu-2/store-1" in first.err
    assert len(first.out.splitlines()) == 2
    assert second.err == ""
    assert '"us/store-2"' in second.out.splitlines()[-1]


def test_a_list_is_narrowed_by_the_age_of_the_oldest_message(cli: Cli, given: Setup) -> None:
    given(three_shops, ago=timedelta(minutes=10))

    async def later(queue: AttentionQueue) -> None:
        await queue.publish("us/new", "stock.updated", {})

    given(later)

    old = cli("ls", "oldest:>5m", "-o", "json").data
    older = cli("ls", "oldest:>1h", "-o", "json").data

    assert [row["resource"] for row in old] == ["eu-1/store-1", "eu-2/store-1", "us/store-2"]
    assert older == []


def test_a_filter_that_means_nothing_is_a_usage_error(cli: Cli, given: Setup) -> None:
    given(three_shops)

    ran = cli("ls", "colour:red")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("attn: filter 'colour:red': want one of plan:")


def test_a_resource_is_shown_with_all_that_governs_it(cli: Cli, given: Setup) -> None:
    given(three_shops)

    card = cli("show", "eu-2/store-1")
    data = cli("show", "eu-1/store-1", "-o", "json").data

    assert "paused by kim: stock taking" in card.out
    assert data["plan"] == "pro"
    assert data["policy"]["max_consumers"] == 3
    assert data["routing"] == {"marketplace": "amazon"}
    assert data["request"] == {"priority": "normal", "due": None, "hold": None, "ahead": 0,
                               "waited_seconds": data["request"]["waited_seconds"]}  # fmt: skip
    assert data["next"]["type"] == "stock.updated"


def test_an_override_counts_in_the_policy_in_force(cli: Cli, given: Setup) -> None:
    async def campaign(queue: AttentionQueue) -> None:
        override = Override(changes={"max_messages": 7}, reason="black friday")
        await queue.register("eu-1/store-1", overrides=[override])

    given(campaign)

    ran = cli("show", "store-1")
    data = cli("show", "store-1", "-o", "json").data

    assert "max_messages = 7 (black friday)" in ran.out
    assert data["policy"]["max_messages"] == 7


def test_a_bare_id_is_enough_if_one_tenant_has_it(cli: Cli, given: Setup) -> None:
    given(three_shops)

    assert cli("explain", "store-2", "-o", "json").data["resource"] == "us/store-2"


def test_a_bare_id_of_several_tenants_is_a_usage_error_that_lists_them(
    cli: Cli, given: Setup
) -> None:
    given(three_shops)

    ran = cli("explain", "store-1")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "attn: 'store-1' may be one of these:",
        "  eu-1/store-1",
        "  eu-2/store-1",
    ]


def test_a_name_in_two_groups_needs_the_group(cli: Cli, given: Setup) -> None:
    given(three_shops)
    given(three_shops, group="returns")

    ran = cli("explain", "us/store-2")
    chosen = cli("explain", "us/store-2", "--group", "returns", "-o", "json")

    assert ran.code == 2
    assert "  us/store-2 --group returns" in ran.err
    assert chosen.data["group"] == "returns"
    assert cli("ls").code == 2
    assert cli("ls", "--group", "retuns").code == 3


@pytest.mark.parametrize("command", ["show", "explain"])
def test_a_resource_that_is_not_there_is_not_found(cli: Cli, given: Setup, command: str) -> None:
    given(nothing)

    ran = cli(command, "nobody/here")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "attn: no resource 'nobody/here'; attn ls shows those that there are\n"


def test_a_verdict_comes_with_its_numbers_and_what_to_try(cli: Cli, given: Setup) -> None:
    given(three_shops, ago=timedelta(minutes=2))

    ran = cli("explain", "eu-1/store-1")
    data = cli("explain", "eu-1/store-1", "-o", "json").data

    assert "no workers: it has been in line for 2m" in ran.out
    assert "start a worker: attn worker" in ran.out
    assert data["verdict"] == "no_workers"
    assert data["numbers"]["backlog"] == 5
    assert data["numbers"]["ahead"] == 0


def test_a_paused_resource_says_who_paused_it_and_why(cli: Cli, given: Setup) -> None:
    async def pause(queue: AttentionQueue) -> None:
        await queue.publish("eu/a", "stock.updated", {})
        await queue.set_state("eu/a", ResourceState(State.MAINTENANCE, "stock taking", "kim"))

    given(pause)

    data = cli("explain", "eu/a", "-o", "json").data

    assert data["verdict"] == "maintenance"
    assert data["because"] == "it was set to maintenance by kim: stock taking"


def test_a_name_from_outside_is_printed_as_it_is(cli: Cli, given: Setup) -> None:
    async def odd(queue: AttentionQueue) -> None:
        await queue.publish("[red]a*b/[bold]?:x", "stock.updated", {})

    given(odd)

    assert "[red]a*b/[bold]?:x" in cli("ls").out
    assert "[red]a*b/[bold]?:x" in cli("show", "[bold]?:x").out
    assert [row["id"] for row in cli("ls", "tenant:[red]a*", "-o", "json").data] == ["[bold]?:x"]
