"""What a handler's parameter says about its messages, and what becomes of those that do not fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest

from attention_queue import AttentionQueue, Context, Done, Reject, Retry, WorkMessage
from attention_queue.testkit import Attn
from unit.core.serving import SECOND


class Price(msgspec.Struct):
    sku: str
    cents: int


@dataclasses.dataclass
class Stock:
    sku: str
    left: int


class Order(pydantic.BaseModel):
    number: int


@pytest.fixture
def queue() -> AttentionQueue:
    return AttentionQueue("market")


@pytest.mark.parametrize(
    ("wanted", "payload", "value"),
    [
        (Price, {"sku": "a", "cents": 5}, Price("a", 5)),
        (Stock, {"sku": "a", "left": 3}, Stock("a", 3)),
        (Order, {"number": 7}, Order(number=7)),
        (Order, Order(number=7), Order(number=7)),
        (Price, Price("a", 5), Price("a", 5)),
        (dict, {"sku": "a"}, {"sku": "a"}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (bytes, b"\x00\xff", b"\x00\xff"),
        (int, 42, 42),
        (Any, None, None),
        (tuple[int, str], [1, "a"], (1, "a")),
    ],
)
async def test_the_parameter_says_how_a_payload_is_read(
    attn: Attn, queue: AttentionQueue, wanted: Any, payload: object, value: object
) -> None:
    seen: list[object] = []

    def handle(message: object) -> None:
        seen.append(message)

    handle.__annotations__["message"] = wanted
    queue.handler("it")(handle)
    await attn.open(queue)

    await attn.publish("t/1", "it", payload)
    await attn.drain()

    assert seen == [value]
    assert attn.dead() == []


async def test_without_an_annotation_a_payload_is_a_json_object(
    attn: Attn, queue: AttentionQueue
) -> None:
    seen: list[object] = []
    queue.handler("it")(lambda message: seen.append(message))
    await attn.open(queue)

    await attn.publish("t/1", "it", {"a": 1})
    await attn.publish("t/1", "it", [1])
    await attn.drain()

    assert seen == [{"a": 1}]
    assert [letter.reason for letter in attn.dead()] == ["undecodable"]


async def test_a_handler_may_take_the_whole_message(attn: Attn, queue: AttentionQueue) -> None:
    seen: list[WorkMessage] = []

    @queue.handler("it")
    async def handle(message: WorkMessage) -> None:
        seen.append(message)

    await attn.open(queue)
    id = await attn.publish("t/1", "it", {"a": 1}, headers={"trace": "z"})
    await attn.drain()

    assert (seen[0].id, seen[0].headers, seen[0].payload) == (id, {"trace": "z"}, b'{"a":1}')


@pytest.mark.parametrize(
    ("wanted", "path"),
    [(Price, "$.cents"), (Stock, "left"), (Order, "number"), (dict[str, int], "$[...]")],
)
async def test_what_does_not_fit_is_a_dead_letter_with_its_path_after_one_attempt(
    attn: Attn, queue: AttentionQueue, wanted: Any, path: str
) -> None:
    async def handle(message: object) -> None:
        raise AssertionError("it was called")

    handle.__annotations__["message"] = wanted
    queue.handler("it")(handle)
    await attn.open(queue)
    payload = {"sku": "a", "cents": "five", "number": "x"}

    await attn.publish("t/1", "it", payload)
    await attn.drain()

    (letter,) = attn.dead()
    assert (letter.reason, letter.attempts, letter.error) == ("undecodable", 1, "Undecodable")
    assert path in letter.text


async def test_neighbours_of_what_cannot_be_read_are_handled(
    attn: Attn, queue: AttentionQueue
) -> None:
    seen: list[int] = []

    @queue.handler("it")
    async def handle(message: int) -> None:
        seen.append(message)

    await attn.open(queue)
    for payload in (1, "two", 3, {"four": 4}, 5):
        await attn.publish("t/1", "it", payload)
    await attn.drain()

    assert seen == [1, 3, 5]
    assert len(attn.dead()) == 2


async def test_a_list_takes_neighbours_of_one_type_in_one_call(
    attn: Attn, queue: AttentionQueue
) -> None:
    calls: list[list[int]] = []

    @queue.handler("many", batch=3)
    async def many(messages: list[int], context: Context) -> None:
        calls.append(messages)
        assert len(context.deliveries) == len(messages)

    @queue.handler("one")
    async def one(message: int) -> None:
        calls.append([message])

    await attn.open(queue)
    for type, n in (*(("many", n) for n in range(5)), ("one", 5), ("many", 6)):
        await attn.publish("t/1", type, n)
    await attn.drain()

    assert calls == [[0, 1, 2], [3, 4], [5], [6]]


async def test_a_list_never_mixes_resources(attn: Attn, queue: AttentionQueue) -> None:
    calls: list[list[str]] = []

    @queue.handler("many")
    async def many(messages: list[str], context: Context) -> None:
        assert {str(context.resource)} == set(messages)
        calls.append(messages)

    await attn.open(queue)
    for n in range(6):
        await attn.publish(f"t/{n % 2}", "many", f"t/{n % 2}")
    await attn.drain()

    assert [len(call) for call in calls] == [3, 3]


async def test_what_cannot_be_read_is_taken_out_of_a_list(
    attn: Attn, queue: AttentionQueue
) -> None:
    calls: list[list[int]] = []

    @queue.handler("many")
    async def many(messages: list[int]) -> list[Done | Retry]:
        calls.append(messages)
        return [Retry() if message == 3 else Done() for message in messages]

    await attn.open(queue)
    ids = [await attn.publish("t/1", "many", each) for each in (1, "bad", 3, 4)]
    await attn.drain()

    assert calls == [[1, 3, 4]]
    assert [letter.id for letter in attn.dead()] == [ids[1]]
    assert await attn.backlog("t/1") == 1

    await attn.advance(SECOND)
    await attn.drain()
    assert calls == [[1, 3, 4], [3]]


async def test_one_outcome_of_a_list_stands_for_all(attn: Attn, queue: AttentionQueue) -> None:
    @queue.handler("many")
    async def many(messages: list[int]) -> Reject:
        return Reject("out of season")

    await attn.open(queue)
    for n in range(3):
        await attn.publish("t/1", "many", n)
    await attn.drain()

    assert [letter.reason for letter in attn.dead()] == ["out of season"] * 3


async def test_a_validator_that_breaks_is_a_failed_attempt_of_its_message_alone(
    attn: Attn, queue: AttentionQueue
) -> None:
    seen: list[int] = []

    @queue.handler("it")
    async def handle(message: Fragile) -> None:
        seen.append(message.n)

    await attn.open(queue)
    for n in (1, 0, 2):
        await attn.publish("t/1", "it", {"n": n})
    await attn.drain()

    assert seen == [1, 2]
    assert await attn.backlog("t/1") == 1
    assert attn.dead() == []


class Fragile(pydantic.BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def not_none(cls, n: int) -> int:
        if n == 0:
            raise KeyError(n)
        return n


@pytest.mark.parametrize(
    "payload", [b"\x80\x04\x95cposix\nsystem\n", b"!!python/object/apply:os.system ['id']", b"{"]
)
async def test_nothing_of_a_payload_is_ever_run(
    attn: Attn, queue: AttentionQueue, payload: bytes
) -> None:
    @queue.handler("it")
    async def handle(message: dict[str, object]) -> None:
        raise AssertionError("it was called")

    await attn.open(queue)
    await attn.publish("t/1", "it", payload)
    await attn.drain()

    assert [letter.reason for letter in attn.dead()] == ["undecodable"]
