"""``attn worker`` as it is used: a process, signals, children."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from attention_queue import AttentionQueue
from faces.cli.conftest import Cli, Setup
from faces.cli.running import running

APP = """
import asyncio, os, sys
from attention_queue import AttentionQueue

queue = AttentionQueue("marketplace", type="store")
returns = AttentionQueue("returns")

@queue.handler("quick")
@returns.handler("quick")
async def quick(payload: dict):
    print("handled", payload["n"], "in", os.getpid(), flush=True)

@queue.handler("endless")
async def endless(payload: dict):
    print("entered", flush=True)
    await asyncio.Event().wait()
"""


@pytest.fixture(autouse=True)
def application(folder: Path) -> None:
    (folder / "shop.py").write_text(APP)


async def three_quick(queue: AttentionQueue) -> None:
    for number in range(3):
        await queue.publish(f"eu/store-{number}", "quick", {"n": number})


async def one_endless(queue: AttentionQueue) -> None:
    await queue.publish("eu/store-1", "endless", {})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_serves_until_told_to_leave(
    folder: Path, given: Setup, cli: Cli, number: signal.Signals
) -> None:
    given(three_quick)

    with running(folder, "worker", "shop:queue", "--slots", "2") as worker:
        worker.until("serving marketplace: 2 slots on sqlite:///attention.db")
        worker.until("handled", times=3)
        worker.send(number)
        worker.until("draining")
        code = worker.ended()

    assert code == 0
    assert worker.said[-1] == "drained"
    assert cli("status", "-o", "json").data["groups"][0]["backlog"] == 0


def test_one_worker_serves_several_groups(folder: Path, given: Setup) -> None:
    given(three_quick)
    given(three_quick, group="returns")

    with running(folder, "worker", "shop:queue", "shop:returns") as worker:
        worker.until("serving marketplace, returns")
        worker.until("handled", times=6)
        worker.send(signal.SIGTERM)
        code = worker.ended()

    assert code == 0


def test_a_worker_needs_no_stdin(folder: Path) -> None:
    command = f'exec "{sys.executable}" -m attention_queue worker shop:queue <&- 2>&1'
    with subprocess.Popen(["sh", "-c", command], cwd=folder, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert b"serving" in worker.stdout.readline()
        worker.terminate()

        assert worker.wait(30) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_leaves_at_once(
    folder: Path, given: Setup, cli: Cli, number: signal.Signals, code: int
) -> None:
    given(one_endless)

    with running(folder, "worker", "shop:queue") as worker:
        worker.until("entered")
        shown = cli("explain", "eu/store-1", "-o", "json").data
        worker.send(number)
        worker.until("draining: running handlers have 25s")
        while worker.process.poll() is None:
            worker.send(number)
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(0.05)
        ended = worker.ended()

    assert ended == code
    assert shown["verdict"] == "serving"
    assert cli("show", "eu/store-1", "-o", "json").data["tokens"][0]["loaned"] == 1


def test_a_signal_that_comes_twice_at_once_is_one(folder: Path, given: Setup) -> None:
    given(one_endless)

    with running(folder, "worker", "shop:queue", "--grace", "500ms") as worker:
        worker.until("entered")
        worker.send(signal.SIGTERM)
        worker.send(signal.SIGINT)
        code = worker.ended()

    assert code == 1
    assert "leaving at once" not in worker.said


def test_what_is_not_done_within_the_grace_is_left_and_said(
    folder: Path, given: Setup, cli: Cli
) -> None:
    given(one_endless)

    with running(folder, "worker", "shop:queue", "--grace", "100ms") as worker:
        worker.until("entered")
        worker.send(signal.SIGTERM)
        code = worker.ended()

    assert code == 1
    assert worker.said[-1] == "1 handlers were not done after 100ms; their messages come again"
    assert cli("ls", "-o", "json").data[0]["backlog"] == 1


def test_an_application_that_is_none_ends_the_worker_at_once(folder: Path) -> None:
    with running(folder, "worker", "nothing:here") as worker:
        code = worker.ended()

    assert code == 2
    assert "there is no module 'nothing'" in worker.said[0]
    assert not any("Traceback" in line for line in worker.said)


def test_a_parent_takes_its_children_along(folder: Path, given: Setup) -> None:
    given(three_quick)

    with running(folder, "worker", "shop:queue", "--processes", "2") as parent:
        parent.until("serving", times=2)
        parent.send(signal.SIGINT)
        code = parent.ended()

    assert code == 0
    assert parent.said.count("drained") == 2


def test_a_child_that_dies_is_replaced(folder: Path, given: Setup) -> None:
    with running(folder, "worker", "shop:queue", "--processes", "2") as parent:
        parent.until("serving", times=2)
        given(three_quick)
        victim = int(parent.until("handled").split()[-1])
        os.kill(victim, signal.SIGKILL)
        parent.until(f"process {victim} ended with signal 9; another starts in 0.5 s")
        parent.until("serving")
        parent.send(signal.SIGTERM)
        code = parent.ended()

    assert code == 0


def test_no_child_outlives_its_parent(folder: Path) -> None:
    with running(folder, "worker", "shop:queue", "--processes", "2") as parent:
        parent.until("serving", times=2)
        parent.send(signal.SIGKILL)
        code = parent.ended()  # its output ends when the last child has closed it

    assert code == -signal.SIGKILL
    assert parent.said.count("drained") == 2


def test_a_parent_whose_children_cannot_start_ends_with_their_code(folder: Path) -> None:
    with running(folder, "worker", "nothing:here", "--processes", "2") as parent:
        code = parent.ended()

    assert code == 2


def test_an_interrupted_publisher_says_what_it_has_stored(folder: Path, given: Setup) -> None:
    given(three_quick)

    with running(folder, "publish", "-") as publisher:
        assert publisher.process.stdin is not None
        for number in range(750):
            publisher.process.stdin.write(
                f'{{"resource": "eu/x", "type": "t", "id": "{number}"}}\n'
            )
        publisher.process.stdin.write("bad\n")
        publisher.process.stdin.flush()
        publisher.until("line 751")
        publisher.send(signal.SIGINT)
        code = publisher.ended()

    assert code == 130
    assert publisher.said[-1] == "attn: interrupted; 500 stored before that"


FULL_DISK = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
sys.argv = ["attn", *sys.argv[1:]]
runpy.run_module("attention_queue", run_name="__main__")
"""


def test_a_full_disk_ends_a_publisher_with_what_it_has_stored(folder: Path, cli: Cli) -> None:
    lines = "".join(f'{{"resource": "eu/x{n}", "type": "t", "id": "{n}"}}\n' for n in range(5_000))

    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, "publish", "-", "--group", "marketplace"],
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (5, "")
    said = re.search(r"([0-9,]+) stored before that, and perhaps 500 more", ran.stderr)
    assert said, ran.stderr
    kept = cli("status", "-o", "json").data["groups"][0]["backlog"]
    assert int(said[1].replace(",", "")) <= kept < 5_000
    assert cli("publish", "-", stdin=lines.encode()).out.startswith(f"{5_000 - kept:,} stored")
