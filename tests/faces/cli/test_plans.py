"""``attn plan``, ``override`` and ``boost``: limits shown and changed, for good or for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attention_queue import AttentionQueue, Plan, Policy
from attention_queue.contract.policy import Order
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, with_backlog


def plan(cli: Cli, name: str) -> Any:
    return cli("plan", "show", name, "-o", "json").data


def policy(cli: Cli) -> Any:
    return cli("show", LATE, "-o", "json").data["policy"]


def test_plans_are_listed_with_the_resources_that_feel_them_now(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    rows = cli("plan", "ls", "-o", "json").data

    assert [(row["plan"], row["default"], row["busy_resources"]) for row in rows] == [
        ("basic", True, 5), ("enterprise", False, 0), ("pro", False, 0),
    ]  # fmt: skip
    assert rows[0]["backlog"] == 157
    assert "basic (default)" in cli("plan", "ls").out


def test_a_plan_is_changed_field_by_field(cli: Cli, given: Setup) -> None:
    given(with_backlog)
    change = ("plan", "set", "basic", "max_consumers=2", "retry.attempts=3", "rates.resource=5/s")

    dry = cli(*change, "--dry-run", "-o", "json")
    assert plan(cli, "basic")["version"] == 1
    done = cli(*change, "--reason", "season")

    assert [(row["field"], row["busy_resources"]) for row in dry.data] == [
        ("max_consumers", 5), ("rates", 5), ("retry", 5),
    ]  # fmt: skip
    assert "nothing was changed: --dry-run" in dry.err
    assert (done.code, done.err) == (0, "changed; in force at once\n")
    now = plan(cli, "basic")
    assert (now["version"], now["as_declared"]) == (2, False)
    assert now["policy"]["max_consumers"] == 2
    assert now["policy"]["retry"] == {"attempts": 3, "first": 1.0, "factor": 2.0, "cap": 300.0}
    assert now["policy"]["rates"] == {"resource": "5/s"}
    [entry] = cli("audit", "-o", "json").data
    assert (entry["verb"], entry["reason"], entry["actor"]) == ("set_plan", "season", "kim")


def test_a_plan_is_made_only_when_that_is_said(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    slip = cli("plan", "set", "gold", "max_consumers=2")
    made = cli("plan", "set", "gold", "max_consumers=2", "--new")
    used = cli("plan", "use", LATE, "gold")

    assert slip.code == 3
    assert "has no plan 'gold'; it has basic, enterprise, pro" in slip.err
    assert made.code == 0
    assert used.out == f"{LATE} is on plan gold, and was on basic\n"
    assert policy(cli)["max_consumers"] == 2


def test_a_file_is_applied_and_again_changes_nothing(cli: Cli, given: Setup, folder: Path) -> None:
    given(with_backlog)
    text = "[groups.marketplace.plans.basic]\nmax_messages = 70\n[groups.marketplace.plans.xl]\n"
    (folder / "plans.toml").write_text(text)

    dry = cli("plan", "apply", "plans.toml", "--dry-run", "-o", "json")
    done = cli("plan", "apply", "plans.toml")
    again = cli("plan", "apply", "plans.toml", "--dry-run")

    assert [(r["plan"], r["field"], r["busy_resources"]) for r in dry.data] == [
        ("basic", "max_messages", 5), ("xl", "(new)", 0),
    ]  # fmt: skip
    assert done.code == 0
    assert again.out == "nothing differs\n"
    assert plan(cli, "basic")["policy"]["max_messages"] == 70
    assert plan(cli, "xl")["version"] == 1


def test_a_boost_ends_by_itself_and_stands_beside_other_overrides(cli: Cli, given: Setup) -> None:
    given(with_backlog)

    assert cli("override", "add", LATE, "max_messages=30", "--reason", "season").code == 0
    boosted = cli("boost", LATE, "--for", "10m")
    rows = cli("override", "ls", LATE, "-o", "json").data

    assert boosted.err == f"{LATE}: 2 x 30 in the lane high now, on plan basic\n"
    assert [row["changes"] for row in rows] == [
        {"max_messages": 30}, {"max_consumers": 2, "priority": "high"},
    ]  # fmt: skip
    assert rows[1]["until"] is not None
    assert cli("override", "rm", LATE, "2").code == 0
    assert (policy(cli)["max_consumers"], policy(cli)["max_messages"]) == (1, 30)
    assert [row["request"]["priority"] for row in [cli("show", LATE, "-o", "json").data]] == [
        "normal"
    ]


def test_a_boost_of_a_strict_order_leaves_its_one_consumer(cli: Cli, given: Setup) -> None:
    async def strict(queue: AttentionQueue) -> None:
        await queue.set_plan(Plan("basic", Policy(order=Order.STRICT)))
        await queue.publish(LATE, "a", {})

    given(strict)

    two = cli("boost", LATE, "--for", "10m", "--consumers", "2")
    lane = cli("boost", LATE, "--for", "10m", "-o", "json")

    assert two.code == 2
    assert 'order "strict" needs max_consumers = 1' in two.err
    assert [row["changes"] for row in lane.data] == [{"priority": "high"}]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan", "show", "nope"), 3, "has no plan 'nope'"),
        (("plan", "use", LATE, "nope"), 3, "has no plan 'nope'"),
        (("plan", "use", LATE, "pro", "--expect", "9"), 4, "has version 1, not 9"),
        (("plan", "set", "basic"), 2, "change what? add key=value"),
        (("plan", "set", "basic", "max_consumers"), 2, "want key=value"),
        (("plan", "set", "basic", "max_consumers=0"), 2, "want a whole number of at least 1"),
        (("plan", "set", "basic", "max_mesages=1"), 2, "did you mean max_messages?"),
        (("plan", "set", "basic", "max_messages=1", "--expect", "9"), 4, "has version 1, not 9"),
        (("plan", "set", "basic", "order=strict", "max_consumers=2"), 2, 'order "strict" needs'),
        (("plan", "apply", "nope.toml"), 2, "nope.toml: there is no such file"),
        (("plan", "apply", "empty.toml"), 2, "empty.toml: it has no plans"),
        (("plan", "apply", "bad.toml"), 2, "did you mean max_messages?"),
        (("plan", "apply", "other.toml"), 3, "no group 'shops'; there is marketplace"),
        (("boost", LATE), 2, "how long? attn boost R --for 30m"),
        (("boost", LATE, "--for", "10m", "--consumers", "0"), 2, "at least 1, got 0"),
        (("boost", "nope", "--for", "10m"), 3, "no resource 'nope'"),
        (("boost", LATE, "--for", "10m", "--expect", "9"), 4, "has version 1, not 9"),
        (("override", "add", LATE, "--reason", "x"), 2, "change what? add key=value"),
        (("override", "add", LATE, "max_messages=1"), 2, "why? add --reason TEXT"),
        (("override", "add", LATE, "max_mesages=1", "--reason", "x"), 2,
         "attn: max_mesages: unknown; did you mean max_messages?\n"),
        (("override", "add", LATE, "max_messages=1", "--reason", "x", "--since",
          "2098-01-02T00:00Z", "--until", "2098-01-01T00:00Z"), 2, "before it begins"),
        (("override", "rm", LATE, "1"), 3, "has no override 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_changed(
    cli: Cli, given: Setup, folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(with_backlog)
    (folder / "empty.toml").write_text("slots = 3\n")
    (folder / "bad.toml").write_text("[groups.marketplace.plans.pro]\nmax_mesages = 3\n")
    (folder / "other.toml").write_text("[groups.shops.plans.pro]\n")

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert cli("audit", "-o", "json").data == []
