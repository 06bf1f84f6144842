"""The port: its pages, when it is red, and whom it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from http.client import HTTPConnection

import pytest
from prometheus_client import CollectorRegistry

from attention_queue import AttentionQueue
from attention_queue.clock import ManualClock
from attention_queue.contract import events as e
from attention_queue.contract.bus import Bus
from attention_queue.errors import InvalidConfig
from attention_queue.observe import server as observe_server
from attention_queue.observe.health import FAILED_FOR, Health
from attention_queue.observe.opening import metrics_port
from attention_queue.observe.server import ObserveServer
from attention_queue.testkit import Attn
from unit.observe.observing import PLANS, Slots

Got = tuple[int, str, str]


async def get(port: int, path: str, method: str = "GET", **headers: str) -> Got:
    return await asyncio.to_thread(_get, port, path, method, headers)


def _get(port: int, path: str, method: str, headers: dict[str, str]) -> Got:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


class Stuck(Slots):
    stuck = 0


class Stage:
    """A port on a bus that the test speaks on."""

    def __init__(self) -> None:
        self.bus, self.clock, self.worker = Bus(), ManualClock(), Stuck()
        self.health = Health(self.bus, self.clock, self.worker)
        self.server = ObserveServer(CollectorRegistry(), self.health, port=0)

    async def ready(self) -> tuple[int, str, str]:
        status, _, body = await get(self.server.port, "/readyz")
        answer = json.loads(body)
        return status, answer["status"], answer["because"]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    async with stage.server:
        yield stage


async def test_a_worker_is_ready_from_its_start_until_it_drains(stage: Stage) -> None:
    before = await stage.ready()
    stage.bus.emit(e.WorkerStarted("w", 16))
    started = await stage.ready()
    stage.bus.emit(e.WorkerDraining("w"))
    draining = await stage.ready()
    stage.bus.emit(e.WorkerStopped("w", 0))
    stopped = await stage.ready()

    assert before == (503, "unready", "it has not started")
    assert started == (200, "ok", "")
    assert draining == (503, "unready", "it drains")
    assert stopped == (503, "unready", "it has stopped")


async def test_a_loop_that_fails_is_red_until_it_has_been_well_for_a_while(stage: Stage) -> None:
    stage.bus.emit(e.WorkerStarted("w", 16))
    stage.bus.emit(e.LoopFailed("dispatch", "EngineUnavailable: secret"))
    failed = await stage.ready()
    stage.clock.advance(timedelta(seconds=FAILED_FOR))
    later = await stage.ready()

    assert failed == (503, "unready", "the loop dispatch fails")
    assert later == (200, "ok", "")


async def test_what_the_application_breaks_is_not_red(stage: Stage) -> None:
    stage.bus.emit(e.WorkerStarted("w", 16))
    stage.bus.emit(e.LoopFailed("admit", "ValueError"))

    assert (await stage.ready())[0] == 200


async def test_a_stuck_handler_is_degraded(stage: Stage) -> None:
    stage.bus.emit(e.WorkerStarted("w", 16))
    stage.worker.stuck = 2

    assert await stage.ready() == (200, "degraded", "stuck handlers: 2")


async def test_it_lives_while_its_loop_turns(stage: Stage) -> None:
    assert await get(stage.server.port, "/livez") == (
        200, "application/json", '{"status":"ok","because":""}\n',
    )  # fmt: skip


async def test_a_held_loop_is_told_from_beside_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe_server, "LOOP_ANSWERS", 0.05)
    found: list[Got] = []
    asked = threading.Thread(
        target=lambda: found.append(_get(stage.server.port, "/livez", "GET", {}))
    )

    asked.start()
    asked.join(timeout=20)  # on the loop's own thread: it has no turn meanwhile

    assert found[0][0] == 503
    assert "its loop is held" in found[0][2]


async def test_another_path_says_which_there_are(stage: Stage) -> None:
    status, _, body = await get(stage.server.port, "/")

    assert (status, body) == (404, "there are /metrics, /events, /livez and /readyz\n")


async def test_a_head_has_no_body(stage: Stage) -> None:
    assert (await get(stage.server.port, "/metrics", "HEAD"))[2] == ""


async def test_a_web_page_under_another_name_is_refused(stage: Stage) -> None:
    assert (await get(stage.server.port, "/metrics", Host="evil.example"))[0] == 403
    assert (await get(stage.server.port, "/metrics", Host="localhost:9464"))[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_an_address_that_others_reach_is_refused(host: str) -> None:
    health = Health(Bus(), ManualClock(), Slots())

    with pytest.raises(InvalidConfig, match="is not loopback"):
        ObserveServer(CollectorRegistry(), health, port=0, host=host)


async def test_a_port_that_is_taken_is_an_error_that_says_so(stage: Stage) -> None:
    second = ObserveServer(CollectorRegistry(), stage.health, port=stage.server.port)

    with pytest.raises(InvalidConfig, match="choose another port"):
        async with second:
            pass


async def test_a_port_beyond_all_is_an_error_that_says_so(stage: Stage) -> None:
    second = ObserveServer(CollectorRegistry(), stage.health, port=70_000)

    with pytest.raises(InvalidConfig, match="choose another port"):
        async with second:
            pass


async def test_a_real_worker_is_scraped(attn: Attn) -> None:
    queue = AttentionQueue("marketplace")

    @queue.handler("order")
    async def order(payload: int) -> None: ...

    await attn.open(queue)
    worker = queue.worker(slots=4)
    async with metrics_port(
        attn.engine, worker, port=0, served=PLANS, insight=attn.insight
    ) as port:
        for n in range(7):
            await attn.publish("a/s", "order", n)
        before = await get(port.port, "/metrics")
        await attn.drain()
        after = await get(port.port, "/metrics")
        better = await get(port.port, "/metrics", Accept="application/openmetrics-text")

    assert before[0] == after[0] == 200
    assert after[1].startswith("text/plain")
    assert 'attn_backlog_messages{group="marketplace",plan="basic"} 7.0' in before[2]
    assert 'attn_messages_handled_total{group="marketplace",outcome="done"} 7.0' in after[2]
    assert 'attn_slots{state="free"} 4.0' in after[2]
    assert better[1].startswith("application/openmetrics-text")
    assert better[2].endswith("# EOF\n")
