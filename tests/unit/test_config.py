"""Settings from four places, the last one wins, and all that is wrong is said at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import config
from attention_queue.contract import Policy, Priority
from attention_queue.errors import InvalidConfig


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, text: str, name: str = "attn.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, environ: dict[str, str] | None = None, **flags: object) -> list[str]:
    with pytest.raises(InvalidConfig) as refused:
        config.load(flags, environ=environ or {}, folder=folder)
    return list(refused.value.problems)


def test_without_anything_there_are_defaults(folder: Path) -> None:
    settings = config.load(environ={}, folder=folder)

    assert settings == config.Config(origins=settings.origins)
    assert settings.slots == 16
    assert settings.grace == timedelta(seconds=25)
    assert set(settings.origins.values()) == {"default"}


def test_a_later_place_wins_and_is_named(folder: Path) -> None:
    write(folder, 'slots = 2\nprocesses = 2\ngrace = "10s"\n')
    environ = {"ATTN_PROCESSES": "3", "ATTN_GRACE": "20s"}

    settings = config.load({"grace": "1m", "slots": None}, environ=environ, folder=folder)

    assert (settings.slots, settings.processes) == (2, 3)
    assert settings.grace == timedelta(minutes=1)
    assert settings.origins == {
        "url": "default",
        "slots": "attn.toml:1",
        "processes": "ATTN_PROCESSES",
        "grace": "--grace",
        "actor": "default",
    }


@pytest.mark.parametrize(("text", "seconds"), [("25", 25), ("25s", 25), ("1m 30s", 90)])
def test_a_duration_is_seconds_or_a_text(folder: Path, text: str, seconds: int) -> None:
    settings = config.load(environ={"ATTN_GRACE": text}, folder=folder)

    assert settings.grace == timedelta(seconds=seconds)


def test_a_secret_may_come_from_a_file(folder: Path) -> None:
    secret = write(folder, "sqlite:///kept-apart.db\n", "url.txt")

    settings = config.load(environ={"ATTN_URL_FILE": str(secret)}, folder=folder)

    assert settings.url == "sqlite:///kept-apart.db"
    assert settings.origins["url"] == "ATTN_URL_FILE"


def test_a_secret_from_two_places_is_refused(folder: Path) -> None:
    environ = {"ATTN_URL": "sqlite:///a.db", "ATTN_URL_FILE": "/nowhere"}

    assert problems(folder, environ) == ["ATTN_URL_FILE: ATTN_URL is set too: keep one of them"]


def test_a_secret_file_that_is_not_there_is_named(folder: Path) -> None:
    assert problems(folder, {"ATTN_URL_FILE": "/nowhere/url"}) == [
        "ATTN_URL_FILE: /nowhere/url: it cannot be read: No such file or directory"
    ]


def test_another_file_may_be_named(folder: Path) -> None:
    path = write(folder, "slots = 5", "other.toml")

    settings = config.load(environ={"ATTN_CONFIG": str(path)}, folder=folder)

    assert settings.slots == 5
    assert settings.origins["slots"] == f"{path}:1"


def test_a_named_file_must_be_there(folder: Path) -> None:
    [problem] = problems(folder, {"ATTN_CONFIG": "no.toml"})

    assert problem.startswith("ATTN_CONFIG: ")
    assert problem.endswith("no.toml: it cannot be read: No such file or directory")


def test_plans_are_read_by_group_with_their_lines(folder: Path) -> None:
    write(
        folder,
        "[groups.marketplace.plans.pro]\nmax_consumers = 3\n\n"
        '[groups.marketplace.plans.basic]\npriority = "low"\n[groups.returns.plans.only]\n',
    )

    settings = config.load(environ={}, folder=folder)

    pro, basic = settings.groups["marketplace"]
    assert (pro.name, pro.policy) == ("pro", Policy(max_consumers=3))
    assert (basic.name, basic.policy) == ("basic", Policy(priority=Priority.LOW))
    assert settings.groups["returns"][0].policy == Policy()
    assert settings.origins["groups.marketplace.plans.basic"] == "attn.toml:4"


def test_everything_that_is_wrong_is_said_at_once_with_its_place(folder: Path) -> None:
    write(
        folder,
        'slotz = 3\ngrace = "soon"\n[groups.marketplace]\nplan = 1\n'
        "[groups.marketplace.plans.pro]\nmax_mesages = 5\nmax_consumers = 0\n"
        '[groups."a b".plans]\n',
    )

    found = problems(folder, {"ATTN_SLOTS": "many", "ATTN_SLOTZ": "1"}, processes=0)

    assert found == [
        "attn.toml:1: slotz: unknown; did you mean slots?",
        "attn.toml:2: grace: want seconds, or a text such as 30s, 5m or 250ms; got 'soon'",
        "attn.toml:4: plan: unknown; did you mean plans?",
        "attn.toml:6: groups.marketplace.plans.pro.max_mesages: unknown; "
        "did you mean max_messages?",
        "attn.toml:7: groups.marketplace.plans.pro.max_consumers: "
        "want a whole number of at least 1, got 0",
        "attn.toml:8: groups.a b: want 1-64 characters of A-Z a-z 0-9 _ -",
        "ATTN_SLOTS: slots: want a whole number of at least 1, got 'many'",
        "ATTN_SLOTZ: unknown; did you mean ATTN_SLOTS?",
        "--processes: processes: want a whole number of at least 1, got 0",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("groups = 3", "attn.toml:1: groups: want a table"),
        ("[groups.a.plans]\npro = 3", "attn.toml:2: groups.a.plans.pro: want a table, got int"),
        ("[groups]\na = 3", "attn.toml:2: groups.a: want a table with plans in it"),
        ("slots = true", "attn.toml:1: slots: want a whole number of at least 1, got True"),
        ("url = 5", "attn.toml:1: url: want a text, got 5"),
    ],
)
def test_a_value_of_the_wrong_shape_is_refused(folder: Path, text: str, problem: str) -> None:
    write(folder, text)

    assert problems(folder) == [problem]


def test_a_file_that_is_no_toml_is_refused_with_the_line(folder: Path) -> None:
    write(folder, "slots = \n")

    [problem] = problems(folder)

    assert "attn.toml: no TOML: " in problem
    assert "line 1" in problem


def test_the_tests_own_variables_are_ignored(folder: Path) -> None:
    environ = {"ATTN_TEST_SOAK": "1", "HOME": "/root"}

    assert config.load(environ=environ, folder=folder).slots == 16
