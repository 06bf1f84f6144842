"""``attn dlq redrive`` and ``discard``, and ``op``: what moves or deletes dead letters."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from attention_queue import AttentionQueue
from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, by_text, numbers, with_dead_letters
from faces.cli.terminal import terminal


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
        (("dlq", "ls", "--limit", "0"), 2, "for --limit. Must be >= 1"),
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
