"""``attn worker --metrics-port`` and ``--log``, as processes."""

from __future__ import annotations

import json
import re
import signal
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

from attention_queue import AttentionQueue
from attention_queue.cli.observed import Shown
from faces.cli.conftest import Setup
from faces.cli.running import Running, running

APP = """
from attention_queue import AttentionQueue

queue = AttentionQueue("marketplace", type="store")

@queue.handler("quick")
async def quick(payload: dict):
    print("handled", flush=True)
"""


@pytest.fixture(autouse=True)
def application(folder: Path) -> None:
    (folder / "shop.py").write_text(APP)


async def three_quick(queue: AttentionQueue) -> None:
    for number in range(3):
        await queue.publish("eu/store-1", "quick", {"n": number})


def address_of(worker: Running) -> str:
    line = worker.until("metrics on http://127.0.0.1:")
    return re.findall(r"http://\S+", line)[0].removesuffix("/metrics")


def read(url: str) -> str:
    with urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


def test_a_worker_shows_what_it_did_and_what_is_stored(folder: Path, given: Setup) -> None:
    given(three_quick)

    with running(folder, "worker", "shop:queue", "--metrics-port", "0", "--log", "info") as worker:
        address = address_of(worker)
        worker.until("cycle.finished")
        metrics = read(f"{address}/metrics")
        ready = json.loads(read(f"{address}/readyz"))
        worker.send(signal.SIGTERM)
        code = worker.ended()

    assert code == 0
    assert 'attn_messages_handled_total{group="marketplace",outcome="done"} 3.0' in metrics
    assert 'attn_backlog_messages{group="marketplace",plan="basic"} 0.0' in metrics
    assert ready == {"status": "ok", "because": ""}
    lines = [json.loads(line) for line in worker.said if line.startswith("{")]
    assert [line["event"] for line in lines if line["event"].startswith("cycle")] == [
        "cycle.finished"
    ]


def test_by_default_a_worker_logs_only_what_is_wrong(folder: Path, given: Setup) -> None:
    given(three_quick)

    with running(folder, "worker", "shop:queue") as worker:
        worker.until("handled", times=3)
        worker.send(signal.SIGTERM)
        worker.ended()

    assert not any(line.startswith("{") for line in worker.said)


def test_a_port_that_is_taken_is_said_in_a_sentence(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running(folder, "worker", "shop:queue", "--metrics-port", str(port)) as worker:
            code = worker.ended()

    assert code == 2
    assert any(f"127.0.0.1:{port}: " in line for line in worker.said)
    assert any("choose another port" in line for line in worker.said)
    assert not any("Traceback" in line for line in worker.said)


def test_each_process_has_a_port_of_its_own(folder: Path) -> None:
    with running(
        folder, "worker", "shop:queue", "--processes", "2", "--metrics-port", "0"
    ) as parent:
        addresses = {address_of(parent), address_of(parent)}
        pages = [read(f"{address}/livez") for address in addresses]
        parent.send(signal.SIGTERM)
        parent.ended()

    assert len(pages) == 2


def test_the_ports_of_several_processes_follow_each_other() -> None:
    shown = Shown("info", 9464)

    assert shown.flags(0) == ["--log", "info", "--metrics-port", "9464"]
    assert shown.flags(3) == ["--log", "info", "--metrics-port", "9467"]
    assert Shown("info", 0).flags(3)[-1] == "0"
    assert Shown().flags(3) == ["--log", "warning"]
