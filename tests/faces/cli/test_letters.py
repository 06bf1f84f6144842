"""``attn dlq`` and ``op``: dead letters listed, shown, sent back, deleted, written out."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from attention_queue import AttentionQueue, Reject
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, served, with_dead_letters
from faces.cli.terminal import terminal


def numbers(cli: Cli, *words: str) -> list[int]:
    return [row["number"] for row in cli("dlq", "ls", *words, "-o", "json").data]


def by_text(cli: Cli) -> dict[str, int]:
    """The number of each dead letter by its message's id."""
    return {row["id"]: row["number"] for row in cli("dlq", "ls", "-o", "json").data}


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((), 8),
        ((LATE,), 5),
        (("store-873",), 5),
        (("resource:store-873",), 5),
        (("error:ValueError",), 5),
        (("type:price.changed",), 3),
        (("reason:bad_price",), 3),
        (("tenant:us",), 3),
        ((LATE, "reason:bad_price"), 0),
        (("older:>1h",), 0),
        (("older:>0s",), 8),
        (("id:999999",), 0),
    ],
)
def test_dead_letters_are_listed_newest_first_and_narrowed_down(
    cli: Cli, given: Setup, words: tuple[str, ...], count: int
) -> None:
    given(with_dead_letters)

    found = numbers(cli, *words)

    assert len(found) == count
    assert found == sorted(found, reverse=True)


def test_a_long_list_goes_on_below_a_number(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    first = cli("dlq", "ls", "--limit", "5", "-o", "ndjson")
    last = [line["number"] for line in map(msgspec.json.decode, first.out.splitlines())][-1]

    assert f"there are more: --before {last}" in first.err
    assert len(numbers(cli, "--before", str(last))) == 3


def test_they_are_counted_by_error_and_by_resource(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    errors = cli("dlq", "ls", "--by", "error", "-o", "json").data
    resources = cli("dlq", "ls", "--by", "resource", "-o", "json").data
    drawn = cli("dlq", "ls", "--by", "error").out.splitlines()

    assert [(e["count"], e["type"], e["reason"], e["error"]) for e in errors] == [
        (5, "stock.updated", "attempts_exhausted", "ValueError"),
        (3, "price.changed", "bad_price", None),
    ]
    assert [(r["count"], r["resource"]) for r in resources] == [(5, LATE), (3, "us/store-1")]
    assert drawn[1].split()[:4] == ["5", "stock.updated", "attempts_exhausted", "ValueError"]


def test_one_is_shown_whole_and_its_text_is_text(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)
    number = str(by_text(cli)["s-3"])

    card = cli("dlq", "show", number)
    data = cli("dlq", "show", number, "-o", "json").data

    assert "no such sku [bold]7[/bold]" in card.out
    assert '{"sku":3}' in card.out
    assert "Traceback (most recent call last)" in card.out
    assert (data["group"], data["resource"], data["attempts"]) == ("marketplace", LATE, 1)
    assert data["trace"].rstrip().endswith("[bold]7[/bold]")


def test_a_payload_that_is_no_text_is_shown_and_exported(cli: Cli, given: Setup) -> None:
    async def odd(queue: AttentionQueue) -> None:
        await queue.publish(LATE, "odd", b"\x1b[31m\xff\x00")

    given(odd)
    assert cli("retire", LATE, "--reason", "closed", "--yes").code == 0
    [number] = numbers(cli)

    card = cli("dlq", "show", str(number))
    line = msgspec.json.decode(cli("dlq", "export").out)

    assert "\\x1b[31m\\xff\\x00" in card.out
    assert "\x1b" not in card.out
    assert line["payload_base64"] == "G1szMW3/AA=="


def test_what_failed_cannot_speak_to_the_terminal(cli: Cli, given: Setup) -> None:
    async def odd(queue: AttentionQueue) -> None:
        @queue.handler("odd")
        async def refuse(payload: bytes) -> Reject:
            return Reject("red \x1b[31m alert")

        await queue.publish(LATE, "odd", b"{}")
        await served(queue)

    given(odd)

    for command in (("dlq", "ls"), ("dlq", "ls", "--by", "error"), ("dlq", "show", "1")):
        ran = cli(*command)
        assert ran.code == 0
        assert "red \\x1b[31m alert" in ran.out
        assert "\x1b" not in ran.out


def test_an_export_is_all_of_them_with_their_payloads(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    lines = [msgspec.json.decode(line) for line in cli("dlq", "export").out.splitlines()]

    assert len(lines) == 8
    assert {line["id"]: line["payload"] for line in lines}["s-4"] == {"sku": 4}


def test_one_shop_alone_is_sent_back_to_work(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    dry = cli("dlq", "redrive", LATE, "--reason", "mended", "--dry-run")
    assert len(numbers(cli)) == 8
    done = cli("dlq", "redrive", LATE, "--reason", "mended", "--yes", "-o", "json")

    assert dry.out == f"5 dead letters of {LATE}: back to work: not done, because of --dry-run\n"
    assert (done.code, done.data["progress"], done.data["done"]) == (0, "done", 5)
    assert numbers(cli, LATE) == []
    assert len(numbers(cli)) == 3
    seen = cli("peek", LATE, "-o", "json").data
    assert sorted(row["id"] for row in seen if row["redriven"]) == [f"s-{n}" for n in range(5)]


def test_one_letter_is_sent_back_by_its_number(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)
    number = by_text(cli)["s-1"]

    ran = cli("dlq", "redrive", f"id:{number}", "--reason", "a try", "--yes", "--rate", "50/s")

    assert ran.code == 0
    assert "1 dead letter sent back to work" in ran.out
    assert number not in numbers(cli)


def test_what_is_at_work_again_is_left_where_it_was(cli: Cli, given: Setup) -> None:
    async def twice(queue: AttentionQueue) -> None:
        await with_dead_letters(queue)
        await queue.publish(LATE, "stock.updated", {}, id="s-0")

    given(twice)

    ran = cli("dlq", "redrive", LATE, "--reason", "mended", "--yes")

    assert ran.code == 6
    assert "4 dead letters sent back to work, 1 left where they were" in ran.out


def test_dead_letters_are_deleted_for_good(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    ran = cli("dlq", "discard", "reason:bad_price", "--reason", "known", "--yes")

    assert ran.code == 0
    assert "3 dead letters deleted" in ran.out
    assert len(numbers(cli)) == 5


def test_an_operation_that_is_left_to_the_workers_is_shown_and_cancelled(
    cli: Cli, given: Setup
) -> None:
    given(with_dead_letters)

    left = cli("dlq", "redrive", "--all", "--reason", "mended", "--yes", "--detach", "-o", "json")
    number = str(left.data["number"])
    [row] = cli("op", "ls", "-o", "json").data
    shown = cli("op", "show", number)
    cancelled = cli("op", "cancel", number)

    assert left.data["progress"] == "running"
    assert f"operation {number} goes on in the workers" in left.err
    assert (row["kind"], row["reason"], row["actor"]) == ("redrive", "mended", "kim")
    assert "0 of 8" in shown.out
    assert "is cancelled" in cancelled.out
    assert len(numbers(cli)) == 8
    assert cli("op", "cancel", number).code == 4


def test_an_interrupt_leaves_the_operation_to_the_workers(
    folder: Path, cli: Cli, given: Setup
) -> None:
    given(with_dead_letters)
    slowly = ("dlq", "redrive", "--all", "--reason", "mended", "--yes", "--rate", "1/h")

    with terminal(folder, *slowly) as seen:
        seen.until("1/8")
        seen.process.send_signal(signal.SIGINT)

        assert seen.ended() == 130
    assert "goes on in the workers: attn op show 1 tells how far it is" in seen.shown
    assert "Traceback" not in seen.shown
    [row] = cli("op", "ls", "-o", "json").data
    assert (row["progress"], row["done"]) == ("running", 1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("dlq", "redrive", LATE), 2, "why? add --reason TEXT"),
        (("dlq", "redrive", "--reason", "x", "--yes"), 2, "which? want a resource, error:"),
        (("dlq", "discard", "--reason", "x", "--yes"), 2, "which? want a resource, error:"),
        (("dlq", "redrive", LATE, "--reason", "x"), 2, "this is no terminal"),
        (("dlq", "redrive", "error:Nope", "--reason", "x", "--yes"), 3, "no dead letter is meant"),
        (("dlq", "redrive", "nope", "--reason", "x", "--yes"), 3, "no resource 'nope'"),
        (("dlq", "redrive", LATE, "--reason", "x", "--rate", "fast", "--yes"), 2, "--rate: want"),
        (("dlq", "redrive", LATE, "--reason", "x", "--jitter", "x", "--yes"), 2, "--jitter: want"),
        (("dlq", "ls", "colour:red"), 2, "filter 'colour:red': want one of resource:, tenant:"),
        (("dlq", "ls", "id:x"), 2, "want the number of a dead letter"),
        (("dlq", "ls", "older:1h"), 2, "want older:>1h"),
        (("dlq", "ls", "tenant:eu-*"), 2, "want a whole tenant here"),
        (("dlq", "ls", "a", "b"), 2, "there is a resource already, 'a'"),
        (("dlq", "ls", "--limit", "0"), 2, "--limit: want at least 1"),
        (("dlq", "show", "99"), 3, "no dead letter 99"),
        (("op", "show", "99"), 3, "no operation 99"),
        (("op", "cancel", "99"), 3, "no operation 99"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_changed(
    cli: Cli, given: Setup, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(with_dead_letters)
    before = numbers(cli)

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert numbers(cli) == before
    assert cli("op", "ls", "-o", "json").data == []


def test_a_redrive_of_what_is_being_retired_is_refused(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)
    assert cli("retire", LATE, "--reason", "closed", "--yes", "--detach").code == 0

    ran = cli("dlq", "redrive", LATE, "--reason", "mended", "--yes")

    assert ran.code == 4
    assert f"{LATE} is retiring" in ran.err
    assert len(numbers(cli, LATE)) == 5


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 3), ("\n", 1, 8), ("no\n", 1, 8)])
def test_a_few_are_confirmed_with_a_letter(
    folder: Path, cli: Cli, given: Setup, typed: str, code: int, left: int
) -> None:
    given(with_dead_letters)

    with terminal(folder, "dlq", "discard", LATE, "--reason", "known") as seen:
        seen.until("deleted for good. Sure? [y/N]")
        seen.type(typed)

        assert seen.ended() == code
    assert ("nothing was changed" in seen.shown) is (code == 1)
    assert len(numbers(cli)) == left


def test_resources_are_found_by_the_error_of_their_dead_letters(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    for words, found in (
        (["error:ValueError"], [LATE]),
        (["error:ValueError", "--busy"], [LATE]),
        (["error:Nope"], []),
    ):
        rows = cli("ls", *words, "-o", "json").data
        assert [row["resource"] for row in rows] == found


def test_a_list_in_csv_has_a_head_and_a_line_for_each(cli: Cli, given: Setup) -> None:
    given(with_dead_letters)

    lines: list[Any] = cli("dlq", "ls", "reason:bad_price", "-o", "csv").out.splitlines()

    assert lines[0].startswith("number,resource,id,type,reason,error")
    assert len(lines) == 4
