"""Group commit: one transaction for all that waits, and a bad apple costs the others nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from attention_queue.clock import ManualClock
from attention_queue.engines.sqlite.database import connect
from attention_queue.engines.sqlite.engine import open_writer
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.engines.sqlite.writer import InlineWriter, ThreadWriter, Writer
from attention_queue.errors import ContractError, EngineUnavailable


@pytest.fixture(params=["file", "memory"])
async def writer(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Writer]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "attention.db")
    writer = open_writer(path, ManualClock())
    yield writer
    await writer.close()


@pytest.fixture
async def threaded(tmp_path: Path) -> AsyncIterator[ThreadWriter]:
    writer = open_writer(str(tmp_path / "attention.db"), ManualClock())
    assert isinstance(writer, ThreadWriter)
    yield writer
    await writer.close()


def lead(task: str) -> object:
    return lambda tx: tx.run("lead", task, "me", 10, 0)


def tasks(tx: Transaction) -> list[str]:
    return [task for (task,) in tx._db.execute("SELECT task FROM leader ORDER BY task")]


def refuse(tx: Transaction) -> None:
    tx.run("lead", "refused", "me", 10, 0)
    raise ContractError("no")


def break_the_rules(tx: Transaction) -> None:
    tx._db.execute("INSERT INTO leader (task) VALUES (NULL)")


async def test_an_operation_answers_with_its_result(writer: Writer) -> None:
    await writer.run(lead("a"))

    assert await writer.run(tasks) == ["a"]


async def test_a_refusal_undoes_its_own_writes_and_only_those(writer: Writer) -> None:
    await writer.run(lead("a"))

    with pytest.raises(ContractError, match="no"):
        await writer.run(refuse)

    assert await writer.run(tasks) == ["a"]


async def test_an_error_of_the_store_is_ours_and_keeps_its_cause(writer: Writer) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await writer.run(break_the_rules)

    assert isinstance(caught.value.__cause__, apsw.ConstraintError)
    assert await writer.run(tasks) == []


async def test_one_that_fails_in_a_group_fails_alone(writer: Writer) -> None:
    operations = [lead("a"), refuse, lead("b"), break_the_rules, lead("c")]

    results = await asyncio.gather(
        *(writer.run(operation) for operation in operations), return_exceptions=True
    )

    kinds = [type(result) for result in results]
    assert kinds == [int, ContractError, int, EngineUnavailable, int]
    assert await writer.run(tasks) == ["a", "b", "c"]


async def test_what_waits_while_the_writer_is_busy_goes_into_one_commit(
    threaded: ThreadWriter,
) -> None:
    busy, go_on = threading.Event(), threading.Event()
    seen: set[int] = set()

    def block(tx: Transaction) -> None:
        busy.set()
        assert go_on.wait(10)

    first = asyncio.ensure_future(threaded.run(block))
    await asyncio.to_thread(busy.wait, 10)
    rest = [asyncio.ensure_future(threaded.run(lambda tx: seen.add(id(tx)))) for _ in range(50)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(first, *rest)

    assert len(seen) == 1


async def test_numbers_only_grow_also_after_a_refusal(writer: Writer) -> None:
    def deal_and_refuse(tx: Transaction) -> None:
        tx.next(5)
        raise ContractError("no")

    first = await writer.run(lambda tx: tx.next(3))
    with pytest.raises(ContractError):
        await writer.run(deal_and_refuse)
    second = await writer.run(lambda tx: tx.next())

    assert second == first + 3


async def test_listeners_hear_of_a_commit_before_its_caller_does(writer: Writer) -> None:
    heard: list[str] = []
    writer.listeners.append(lambda: heard.append("listener"))

    await writer.run(lead("a"), wakes=True)
    heard.append("caller")
    await writer.run(lead("b"))

    assert heard == ["listener", "caller"]


async def test_a_listener_that_leaves_does_not_cost_another_its_turn(writer: Writer) -> None:
    heard: list[str] = []

    def leave() -> None:
        heard.append("first")
        writer.listeners.remove(leave)

    writer.listeners += [leave, lambda: heard.append("second")]

    await writer.run(lead("a"), wakes=True)

    assert heard == ["first", "second"]


async def test_closing_finishes_what_was_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "attention.db")
    writer = open_writer(path, ManualClock())
    asked = [asyncio.ensure_future(writer.run(lead(f"{n}"))) for n in range(20)]
    await asyncio.sleep(0)

    await writer.close()

    assert await asyncio.gather(*asked) == [1] * 20
    again = open_writer(path, ManualClock())
    assert len(await again.run(tasks)) == 20
    await again.close()


async def test_a_closed_writer_takes_nothing_and_may_be_closed_again(writer: Writer) -> None:
    await writer.close()

    with pytest.raises(EngineUnavailable):
        await writer.run(lead("a"))
    with pytest.raises(EngineUnavailable):
        writer.run_blocking(lead("a"))
    await writer.close()


async def test_the_thread_ends_with_the_writer(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    writer = open_writer(str(tmp_path / "attention.db"), ManualClock())
    await writer.run(lead("a"))

    await writer.close()

    assert {t.name for t in set(threading.enumerate()) - before if "attn" in t.name} == set()


async def test_a_thread_may_ask_and_wait(writer: Writer) -> None:
    if isinstance(writer, InlineWriter):
        assert writer.run_blocking(tasks) == []
        return

    asked = [asyncio.to_thread(writer.run_blocking, lead(f"{n}")) for n in range(8)]
    await asyncio.gather(*asked)

    assert len(writer.run_blocking(tasks)) == 8
    with pytest.raises(ContractError):
        await asyncio.to_thread(writer.run_blocking, refuse)


async def test_a_caller_that_is_cancelled_does_not_disturb_the_others(
    threaded: ThreadWriter,
) -> None:
    first = asyncio.ensure_future(threaded.run(lead("a")))
    second = asyncio.ensure_future(threaded.run(lead("b")))
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    assert await second == 1
    assert "b" in await threaded.run(tasks)


async def test_many_operations_one_after_the_other_keep_one_timer(
    threaded: ThreadWriter,
) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    ask = loop.call_later

    def call_later(delay: float, *rest: object, **named: object) -> asyncio.TimerHandle:
        timers.append(delay)
        return ask(delay, *rest, **named)

    loop.call_later = call_later
    for n in range(50):
        await threaded.run(lead(f"{n}"))

    assert len(timers) <= 1


async def test_a_commit_of_another_connection_is_heard_of_while_somebody_watches(
    threaded: ThreadWriter, tmp_path: Path
) -> None:
    other = open_writer(str(tmp_path / "attention.db"), ManualClock())
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    threaded.listeners.append(lambda: loop.call_soon_threadsafe(heard.set))
    threaded.watch(True)
    threaded.watch(True)
    threaded.watch(False)  # one of two: the other still wants to hear

    await other.run(lead("a"))

    async with asyncio.timeout(10):
        await heard.wait()
    threaded.watch(False)
    await other.close()


def test_a_file_that_is_broken_inside_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "attention.db"
    db = connect(str(path))
    page = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'counter'").get
    size = db.pragma("page_size")
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)

    with pytest.raises(EngineUnavailable, match="malformed"):
        open_writer(str(path), ManualClock())
