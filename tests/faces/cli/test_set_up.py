"""``attn doctor``, ``config`` and ``db``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from attention_queue import AttentionQueue
from faces.cli.conftest import Cli, Ran, Setup


async def one_message(queue: AttentionQueue) -> None:
    await queue.publish("eu/store-1", "stock.updated", {})


def grades(ran: Ran) -> dict[str, str]:
    return {row["check"]: row["grade"] for row in ran.data}


def found(ran: Ran, check: str) -> tuple[str, str]:
    [row] = [row for row in ran.data if row["check"] == check]
    return row["found"], row["fix"]


def test_a_doctor_finds_nothing_wrong_where_nothing_is(cli: Cli, given: Setup) -> None:
    given(one_message)

    ran = cli("doctor", "-o", "json")

    assert ran.code == 0
    assert set(grades(ran).values()) == {"ok"}
    assert {"file", "schema", "sqlite", "disk", "clock", "unattended"} <= set(grades(ran))
    assert cli("doctor").out.count("ok ") >= 10


def test_a_doctor_without_a_file_says_how_to_make_one(cli: Cli, folder: Path) -> None:
    ran = cli("doctor", "-o", "json")

    assert ran.code == 0
    assert grades(ran)["file"] == "warn"
    assert not list(folder.iterdir())


def test_a_doctor_sees_a_file_that_others_may_read(cli: Cli, given: Setup, folder: Path) -> None:
    given(one_message)
    (folder / "attention.db").chmod(0o644)

    ran = cli("doctor", "-o", "json")

    assert grades(ran)["file"] == "warn"
    assert found(ran, "file")[1] == "chmod 600 attention.db"


def test_a_doctor_sees_work_that_no_request_stands_for(
    cli: Cli, given: Setup, folder: Path
) -> None:
    given(one_message)
    with closing(sqlite3.connect(folder / "attention.db")) as db, db:
        db.execute("DELETE FROM attention")

    ran = cli("doctor", "-o", "json")

    assert ran.code == 1
    assert found(ran, "unattended")[0] == "1 resources have work and no request"
    assert cli("explain", "store-1", "-o", "json").data["verdict"] == "unattended"
    assert cli("explain", "store-1", "-o", "json").data["numbers"]["backlog"] == 1


def test_a_doctor_sees_a_clock_that_went_back(cli: Cli, given: Setup) -> None:
    given(one_message, ago=-timedelta(hours=1))

    ran = cli("doctor", "-o", "json")

    assert ran.code == 1
    assert "behind what was written" in found(ran, "clock")[0]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_a_file_of_somebody_else_is_told_from_an_empty_one(
    cli: Cli, folder: Path, content: bytes
) -> None:
    (folder / "attention.db").write_bytes(content)

    ran = cli("doctor", "-o", "json")

    if content:
        assert (ran.code, cli("status").code) == (1, 5)
        assert "not an Attention Queue database" in found(ran, "file")[0]
    assert (folder / "attention.db").read_bytes() == content


def test_a_doctor_reports_wrong_settings_and_a_wrong_url(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cli("doctor", "--url", "redis://x", "-o", "json")
    monkeypatch.setenv("ATTN_SLOTZ", "3")
    settings = cli("doctor", "-o", "json")

    assert (url.code, grades(url)["engine"]) == (1, "fail")
    assert (settings.code, grades(settings)["settings"]) == (1, "fail")
    assert found(settings, "settings")[0] == "ATTN_SLOTZ: unknown; did you mean ATTN_SLOTS?"


def test_settings_are_shown_with_where_they_come_from(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "attn.toml").write_text(
        "slots = 4\n[groups.marketplace.plans.pro]\nmax_consumers = 3\n"
    )
    monkeypatch.setenv("ATTN_GRACE", "5s")

    rows = cli("config", "show", "--origin", "--url", "sqlite:///x.db", "-o", "json").data

    assert [(row["setting"], row["origin"]) for row in rows] == [
        ("url", "--url"),
        ("slots", "attn.toml:1"),
        ("processes", "default"),
        ("grace", "ATTN_GRACE"),
        ("actor", "USER"),
        ("groups.marketplace.plans.pro", "attn.toml:2"),
    ]
    assert rows[5]["value"]["max_consumers"] == 3
    assert "attn.toml:1" not in cli("config", "show").out


def test_a_password_is_never_shown(cli: Cli) -> None:
    ran = cli("config", "show", "--url", "postgresql://me:hunter2@db/attn")

    assert "hunter2" not in ran.out + ran.err
    assert "postgresql://me:***@db/attn" in ran.out


def test_wrong_settings_are_all_told_by_any_command(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "attn.toml").write_text("slotz = 4\n")
    monkeypatch.setenv("ATTN_GRACE", "soon")

    ran = cli("status")

    assert (ran.code, ran.out) == (2, "")
    assert "attn.toml:1: slotz: unknown; did you mean slots?" in ran.err
    assert "ATTN_GRACE: grace: want seconds" in ran.err


def test_a_database_is_made_once(cli: Cli, folder: Path) -> None:
    before = cli("db", "status", "-o", "json")
    made = cli("db", "migrate")
    again = cli("db", "migrate")
    after = cli("db", "status", "-o", "json")

    assert (before.code, before.data["schema"]) == (1, 0)
    assert "attention.db was made with schema" in made.err
    assert "already, the latest" in again.err
    assert (after.code, after.data["schema"]) == (0, after.data["latest"])
    assert (folder / "attention.db").exists()


def test_the_printed_scripts_make_the_schema(cli: Cli) -> None:
    script = cli("db", "sql").out

    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(script)
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    assert {"message", "attention", "token"} <= names


def test_a_file_of_a_newer_version_is_left_alone(cli: Cli, folder: Path) -> None:
    cli("db", "migrate")
    with closing(sqlite3.connect(folder / "attention.db")) as db:
        db.execute("PRAGMA user_version = 999")

    for command in (("status",), ("db", "migrate"), ("publish", "a/b", "t", "--group", "g")):
        ran = cli(*command)

        assert (ran.code, ran.out) == (5, "")
        assert "pip install --upgrade attention-queue" in ran.err
    assert grades(cli("doctor", "-o", "json"))["schema"] == "fail"
