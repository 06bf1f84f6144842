"""Publishes of one turn of the loop share a transaction, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from attention_queue import Plan, Policy, Resource, WorkMessage
from attention_queue.clock import ManualClock
from attention_queue.contract.bus import Bus
from attention_queue.engines.sqlite import SqliteEngine
from attention_queue.errors import ContractError
from attention_queue.ports import Begun, Group, Put, Want

A, B = Resource("tenant", "a"), Resource("tenant", "b")
WANT = Want(owner="me", groups=("shops",), limit=2, extra=0)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = SqliteEngine(str(tmp_path / "attention.db"), ManualClock(), Bus())
    plans = (Plan("basic", Policy()),)
    await engine.open_group(Group(name="shops", plans=plans, default_plan="basic"))
    yield engine
    await engine.close()


def message(resource: Resource, id: str) -> WorkMessage:
    return WorkMessage(id=id, resource=resource, type="work", payload=b"{}")


async def put(engine: SqliteEngine, *messages: WorkMessage) -> Put:
    return await engine.put("shops", messages)


async def test_the_first_asks_and_the_others_coalesce(engine: SqliteEngine) -> None:
    puts = await asyncio.gather(
        put(engine, message(A, "1")),
        put(engine, message(A, "2"), message(B, "3")),
        put(engine, message(B, "4")),
    )

    assert puts == [Put(1, 0, 1, 0), Put(2, 0, 1, 1), Put(1, 0, 0, 1)]


async def test_the_same_id_twice_in_one_turn_is_one_message(engine: SqliteEngine) -> None:
    puts = await asyncio.gather(
        put(engine, message(A, "1")),
        put(engine, message(A, "1"), message(A, "2")),
        put(engine, message(B, "1")),
    )

    assert [(each.stored, each.duplicates) for each in puts] == [(1, 0), (1, 1), (1, 0)]


async def test_messages_keep_the_order_of_the_calls(engine: SqliteEngine) -> None:
    ids = [f"m{number}" for number in range(10)]

    await asyncio.gather(*(put(engine, message(A, id)) for id in ids))

    (begun,) = await engine.begin(WANT)
    assert isinstance(begun, Begun)
    assert [each.message.id for each in begun.loan] == ids


async def test_a_refused_one_costs_the_others_nothing(engine: SqliteEngine) -> None:
    answers = await asyncio.gather(
        put(engine, message(A, "1")),
        engine.put("nobody", [message(A, "2")]),
        put(engine, message(A, "3")),
        return_exceptions=True,
    )

    assert isinstance(answers[1], ContractError)
    assert [answers[0], answers[2]] == [Put(1, 0, 1, 0), Put(1, 0, 0, 1)]
