"""MarketHub holds its claims, and its API says what is wrong with a call."""

from __future__ import annotations

import ast
import asyncio
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import msgspec
import pytest
from rich.console import Console

from attention_queue import WorkMessage
from attention_queue.errors import EngineUnavailable
from markethub import claims, demo
from markethub.api import MAX_BODY, Publish, serving
from markethub.claims import Tally, report
from markethub.integrator import EXPIRED, NOISY, Integrator

SOURCES = sorted(Path(demo.__file__).parent.glob("*.py"))
STOCK = {"type": "stock.updated", "id": "t-1", "sku": "A-1", "quantity": 3}


def test_the_demo_loses_nothing_and_says_what_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How long the quiet shops waited is shown, not asserted: it is the machine's load as well."""
    status = demo.main(db=tmp_path / "kept.db", quick=True, json=True)

    seen = capsys.readouterr()
    told = json.loads(seen.out)
    held = [claim["held"] for claim in told["claims"]]
    assert len(held) == 4
    assert held[1:] == [True, True, True], seen.out
    assert status == (0 if all(held) else 1)
    assert told["counts"]["moved to credentials_error"] >= 1
    assert told["counts"]["not served: maintenance"] >= 1
    assert told["counts"]["blocked by stop"] >= 1
    assert told["counts"]["workers started"] == 3
    assert seen.err.count("ok ") == sum(held)
    assert (tmp_path / "kept.db").stat().st_size > 0


def test_the_demo_can_be_interrupted(tmp_path: Path) -> None:
    attn = (sys.executable, "-m", "attention_queue", "demo", "--quick")
    running = subprocess.Popen(attn, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True)
    with running:
        assert running.stdout is not None
        while "was killed" not in (line := running.stdout.readline()):
            assert line, running.communicate()
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)

    assert running.returncode == 130
    assert "Traceback" not in told


@contextmanager
def tallies(folder: Path, *, ours: Sequence[Any], theirs: Sequence[Any]) -> Iterator[Any]:
    """What both runs wrote into their books, for tasks that were all sent at second 0."""
    made = []
    for name, lines in (("ours", ours), ("theirs", theirs)):
        book = folder / name
        book.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        integrator = Integrator(quiet=12, upload=1, seconds=1)
        called = {line[2] for line in lines if line[0] == "call"}
        integrator.sent = dict.fromkeys(sorted(called), 0.0)
        integrator.accepted = called
        made.append(Tally(book, integrator))
        made[-1].read()
    yield made
    for tally in made:
        tally.file.close()


def task(n: int, at: float, shop: str = "bazaar-1") -> list[object]:
    return ["call", shop, f"{shop}:{n:05}", at]


def held(made: list[Tally]) -> list[bool]:
    return [held for _, _, held in claims.judge(*made)]


def test_all_claims_hold_of_a_good_run(tmp_path: Path) -> None:
    with tallies(tmp_path, ours=[task(0, 0.1)], theirs=[task(0, 1.0)]) as made:
        assert held(made) == [True, True, True, True]


def test_nine_times_less_is_not_ten(tmp_path: Path) -> None:
    with tallies(tmp_path, ours=[task(0, 0.1)], theirs=[task(0, 0.9)]) as made:
        assert held(made) == [False, True, True, True]


def test_no_wait_at_all_proves_nothing(tmp_path: Path) -> None:
    with tallies(tmp_path, ours=[], theirs=[task(0, 0.9)]) as made:
        assert not held(made)[0]


def test_a_task_that_nobody_called_is_lost(tmp_path: Path) -> None:
    with tallies(tmp_path, ours=[task(0, 0.1)], theirs=[task(0, 1.0)]) as made:
        made[0].integrator.accepted.add("bazaar-1:00001")
        made[0].integrator.sent["bazaar-1:00001"] = 0.0

        assert held(made) == [True, False, True, True]


def test_a_call_that_was_not_accepted_is_a_loss(tmp_path: Path) -> None:
    with tallies(tmp_path, ours=[task(0, 0.1)], theirs=[task(0, 1.0)]) as made:
        made[0].integrator.sent["bazaar-1:00001"] = 0.0

        assert held(made) == [True, False, True, True]


def test_a_task_before_its_elder_is_disorder(tmp_path: Path) -> None:
    ours = [task(1, 0.1), task(0, 0.1)]

    with tallies(tmp_path, ours=ours, theirs=[task(0, 1.0)]) as made:
        assert held(made) == [True, True, False, True]


def test_a_repetition_after_a_kill_is_no_disorder(tmp_path: Path) -> None:
    ours = [task(0, 0.1), task(1, 0.1), task(0, 0.3), task(1, 0.4), task(2, 0.5)]

    with tallies(tmp_path, ours=ours, theirs=[task(0, 9.0)]) as made:
        assert held(made) == [True, True, True, True]
        assert made[0].counts["tasks done once more"] == 2


@pytest.mark.parametrize(("other", "slices", "fair"), [
    ("bazaar-2", 2, True), ("bazaar-2", 3, False),  # one consumer
    (NOISY, 20, True), (NOISY, 21, False),  # ten
])  # fmt: skip
def test_a_quiet_shop_waits_two_rounds_at_most(
    tmp_path: Path, other: str, slices: int, fair: bool
) -> None:
    others = [["slice", other, 10 + n / 100, 0.0] for n in range(slices)]
    before = [["slice", other, 1.0, 0.0]] * 9  # before it stood in line
    ours = [task(0, 0.1), *before, *others, ["slice", "bazaar-1", 11.0, 1.5]]

    with tallies(tmp_path, ours=ours, theirs=[task(0, 1.0)]) as made:
        assert held(made) == [True, True, True, fair]


def test_a_claim_that_failed_is_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "TIMES_LESS", 1e9)

    with tallies(tmp_path, ours=[task(0, 0.1)], theirs=[task(0, 1.0)]) as made:
        status = report(*made, Console(stderr=True), json=True)

    seen = capsys.readouterr()
    assert status == 1
    assert [claim["held"] for claim in json.loads(seen.out)["claims"]] == [False, True, True, True]
    assert "FAILED" in seen.err


async def post(
    publish: Publish, body: bytes, shop: str = "bazaar-1"
) -> tuple[int, dict[str, object]]:
    async with serving(publish) as port:
        return await asyncio.to_thread(_post, port, body, shop)


def _post(port: int, body: bytes, shop: str) -> tuple[int, dict[str, object]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        client.request("POST", f"/shops/acme/{shop}/tasks", body)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


class Accepted(list[WorkMessage]):
    async def publish(self, messages: Sequence[WorkMessage]) -> None:
        self.extend(messages)


async def test_one_task_is_accepted_with_its_own_id() -> None:
    accepted = Accepted()

    answer = await post(accepted.publish, json.dumps(STOCK).encode())

    assert answer == (202, {"accepted": 1})
    assert [(m.id, str(m.resource), m.type) for m in accepted] == [
        ("t-1", "acme/bazaar-1", "stock.updated")
    ]


async def test_a_whole_catalogue_is_accepted_in_one_call() -> None:
    accepted = Accepted()
    catalogue = [STOCK | {"id": f"t-{n}"} for n in range(20_000)]

    answer = await post(accepted.publish, json.dumps(catalogue).encode())

    assert answer == (202, {"accepted": 20_000})
    assert len(accepted) == 20_000


@pytest.mark.parametrize(("body", "where"), [
    ([STOCK, STOCK | {"quantity": -1}], "$[1].quantity"),
    ([STOCK | {"sku": 7}], "$[0].sku"),
    (STOCK | {"type": "shop.closed"}, "$.type"),
    (STOCK | {"id": ""}, "id"),
])  # fmt: skip
async def test_a_bad_task_is_refused_with_its_path_and_nothing_is_stored(
    body: object, where: str
) -> None:
    accepted = Accepted()

    status, answer = await post(accepted.publish, json.dumps(body).encode())

    assert status == 422
    assert where in str(answer["error"])
    assert accepted == []


async def test_a_body_that_is_no_json_is_refused() -> None:
    status, _ = await post(Accepted().publish, b"[{")

    assert status == 422


async def test_a_shop_with_an_impossible_id_is_refused() -> None:
    status, answer = await post(Accepted().publish, json.dumps(STOCK).encode(), shop="a%0Ab")

    assert status == 422
    assert "not a resource" in str(answer["error"])


async def test_a_body_that_is_too_large_is_refused() -> None:
    accepted = Accepted()

    status, _ = await post(accepted.publish, b" " * (MAX_BODY + 1))

    assert status == 413
    assert accepted == []


async def test_an_engine_that_does_not_answer_is_a_reason_to_try_again() -> None:
    async def publish(messages: Sequence[WorkMessage]) -> None:
        raise EngineUnavailable("no answer")

    status, _ = await post(publish, json.dumps(STOCK).encode())

    assert status == 503


def test_the_load_is_the_same_every_time() -> None:
    def sent() -> bytes:
        shops = Integrator(quiet=30, upload=100, seconds=4).shops
        return msgspec.json.encode([shop.calls(4) for shop in shops.values()])

    assert sent() == sent()
    assert b"stock.updated" in sent() and EXPIRED.encode() in sent()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_it_uses_public_names_only(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    ours = {module for module in modules if module and module.startswith("attention_queue")}

    assert ours <= {
        "attention_queue",
        "attention_queue.contract",
        "attention_queue.contract.events",
    }


def test_it_stays_short() -> None:
    lines = [line for path in SOURCES for line in path.read_text(encoding="utf-8").splitlines()]

    assert len([line for line in lines if line.strip()]) < 600


def test_a_database_that_is_there_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.db").write_text("mine")

    assert demo.main(db=tmp_path / "mine.db") == 2
    assert (tmp_path / "mine.db").read_text() == "mine"
    assert "is there" in capsys.readouterr().out
