"""The fair turn between processes that write one file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from attention_queue.engines.sqlite.database import connect
from attention_queue.engines.sqlite.turn import Turn
from unit.sqlite import processes

ENOUGH = 150  # commits of the faster process


def test_two_processes_that_commit_all_the_time_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "attention.db"
    connect(str(path)).close()
    barrier, stop = processes.CONTEXT.Barrier(2), processes.CONTEXT.Event()
    out = processes.CONTEXT.SimpleQueue()
    arguments = (path, barrier, ENOUGH, stop, out)
    children = [processes.start(processes.commit_until, *arguments) for _ in range(2)]

    assert processes.ended(*children) == [0, 0]

    slower, faster = sorted(out.get() for _ in children)
    out.close()
    assert faster == ENOUGH
    assert slower * 5 > faster  # without the turn it was pushed down to a hundredth


def test_the_turn_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    path = tmp_path / "attention.db"
    holding, never = processes.CONTEXT.Event(), processes.CONTEXT.Event()
    child = processes.start(processes.hold_the_turn, path, holding, never)
    assert holding.wait(processes.PATIENCE)

    child.kill()
    processes.ended(child)
    turn = Turn(str(path))

    with turn.taken():
        pass
    turn.close()


async def test_two_turns_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first, second = Turn(str(tmp_path / "db")), Turn(str(tmp_path / "db"))
    order: list[str] = []

    def take_second() -> None:
        with second.taken():
            order.append("second")

    with first.taken():
        waiting = asyncio.ensure_future(asyncio.to_thread(take_second))
        await asyncio.sleep(0)
        order.append("first")
    await waiting

    assert order == ["first", "second"]
    first.close()
    second.close()


def test_eight_processes_publish_and_claim_and_nothing_is_done_twice(tmp_path: Path) -> None:
    path, number, batches, batch = tmp_path / "attention.db", 8, 25, 50
    published, out = processes.CONTEXT.Barrier(number), processes.CONTEXT.SimpleQueue()
    children = [
        processes.start(processes.publish_and_serve, path, n, batches, batch, published, out)
        for n in range(number)
    ]

    settled = [id for _ in children for id in out.get()]
    codes = processes.ended(*children)
    out.close()

    wanted = {f"{n}-{i}" for n in range(number) for i in range(batches * batch)}
    assert [word for word in settled if word not in wanted] == []  # an error would stand here
    assert codes == [0] * number
    assert len(settled) == len(wanted) == 10_000
    assert set(settled) == wanted
