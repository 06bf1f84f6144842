"""``attn dlq``: dead letters listed, shown, counted, written out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from attention_queue import AttentionQueue, Reject
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, by_text, numbers, served, with_dead_letters


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
