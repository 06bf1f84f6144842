"""``attn top`` and ``attn watch`` as a person meets them: on a terminal, and in a pipe."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from faces.cli.conftest import Cli, Setup
from faces.cli.stage import LATE, with_backlog
from faces.cli.terminal import ALTERNATE, NORMAL, terminal


@pytest.mark.parametrize("key", ["q", "Q", "\x1b"])
def test_top_shows_the_busiest_until_q_and_puts_the_terminal_back(
    folder: Path, given: Setup, key: str
) -> None:
    given(with_backlog)

    with terminal(folder, "top", "--every", "200ms") as seen:
        seen.until("q leaves", times=3)  # it goes on drawing
        seen.type(key)

        assert seen.ended() == 0
        assert seen.settings() == seen.before
    assert seen.shown.index(ALTERNATE) < seen.shown.index("q leaves")
    assert seen.shown.rindex(NORMAL) > seen.shown.rindex("q leaves")
    assert seen.shown.index(LATE) < seen.shown.index("us/store-3") < seen.shown.index("us/store-1")


def test_watch_shows_one_resource_live(folder: Path, cli: Cli, given: Setup) -> None:
    given(with_backlog)

    with terminal(folder, "watch", "store-873", "--every", "200ms") as seen:
        seen.until("waiting turn")
        assert cli("pause", LATE, "--reason", "stock taking").code == 0
        seen.until("it was set to paused by kim: stock taking")
        seen.type("q")

        assert seen.ended() == 0
        assert seen.settings() == seen.before
    assert seen.shown.rindex(NORMAL) > seen.shown.rindex("stock taking")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_too_and_puts_the_terminal_back(
    folder: Path, given: Setup, number: signal.Signals, code: int
) -> None:
    given(with_backlog)

    with terminal(folder, "top") as seen:
        seen.until("q leaves")
        seen.process.send_signal(number)

        assert seen.ended() == code
        assert seen.settings() == seen.before
    assert NORMAL in seen.shown
    assert "Traceback" not in seen.shown


def test_without_a_terminal_there_is_one_picture(cli: Cli, given: Setup) -> None:
    given(with_backlog, ago=timedelta(minutes=2))

    top, watch = cli("top"), cli("watch", "store-873", "--once")

    assert (top.code, watch.code) == (0, 0)
    assert top.out.startswith("degraded: no worker: 157 messages")
    lines = [line.split()[0] for line in top.out.splitlines() if " basic " in line]
    assert lines == [LATE, "us/store-3", "us/store-2", "us/store-1", "us/later"]
    assert watch.out.startswith(f"{LATE} of marketplace\nno workers: ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("top", "--every", "0s"), 2, "--every 0s: want from 100ms to 1h"),
        (("top", "--every", "soon"), 2, "--every: want seconds, or a text such as 30s"),
        (("top", "--group", "nope"), 3, "no group 'nope'; there are marketplace"),
        (("watch", "nope"), 3, "no resource 'nope'"),
    ],
)
def test_what_cannot_be_shown_is_said_before_the_screen_is_taken(
    cli: Cli, given: Setup, arguments: tuple[str, ...], code: int, said: str
) -> None:
    given(with_backlog)

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
