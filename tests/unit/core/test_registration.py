"""What may be registered as a handler, and what is refused while the program starts."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from attention_queue import AttentionQueue, Context
from attention_queue.errors import ContractError, UnknownPlan
from attention_queue.testkit import Attn


def no_parameter() -> None: ...
def three(a: dict, b: Context, c: int) -> None: ...  # type: ignore[type-arg]
def any_number(*messages: dict) -> None: ...  # type: ignore[type-arg]
def by_name(*, message: dict) -> None: ...  # type: ignore[type-arg]
def needs_a_name(message: dict, *, client: str) -> None: ...  # type: ignore[type-arg]
def generator(message: dict) -> Iterator[int]:  # type: ignore[type-arg]
    yield 1


async def async_generator(message: dict) -> AsyncIterator[int]:  # type: ignore[type-arg]
    yield 1


def undecodable(message: Callable[[], int]) -> None: ...
def unknown_name(message: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "function",
    [
        no_parameter, three, any_number, by_name, needs_a_name, generator, async_generator,
        undecodable, unknown_name,
    ],
)  # fmt: skip
def test_a_function_that_cannot_be_called_is_refused_with_its_name(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(ContractError, match=function.__name__):
        AttentionQueue("market").handler("it")(function)


@pytest.mark.parametrize("type", ["", "a b", "a\n", "x" * 500, "é\0"])
def test_a_bad_type_is_refused(type: str) -> None:
    with pytest.raises(ContractError, match="message type"):
        AttentionQueue("market").handler(type)(lambda message: None)


def test_a_second_handler_of_a_type_is_refused() -> None:
    queue = AttentionQueue("market")
    queue.handler("it")(lambda message: None)

    with pytest.raises(ContractError, match="has one already"):
        queue.handler("it")(lambda message: None)


@pytest.mark.parametrize("batch", [0, -1])
def test_a_batch_of_none_is_refused(batch: int) -> None:
    def handle(messages: list[int]) -> None: ...

    with pytest.raises(ContractError, match="batch"):
        AttentionQueue("market").handler("it", batch=batch)(handle)


def test_a_batch_without_a_list_is_refused() -> None:
    def handle(message: int) -> None: ...

    with pytest.raises(ContractError, match="batch"):
        AttentionQueue("market").handler("it", batch=5)(handle)


def test_a_second_cycle_scope_is_refused() -> None:
    queue = AttentionQueue("market")
    queue.cycle_scope(lambda resource: pytest.fail("not opened"))

    with pytest.raises(ContractError, match="one already"):
        queue.cycle_scope(lambda resource: pytest.fail("not opened"))


@pytest.mark.parametrize(
    "options",
    [
        {"name": "a b"},
        {"name": "m", "type": "a.b"},
        {"name": "m", "register": "never"},
        {"name": "m", "maintenance": "perhaps"},
    ],
)
def test_a_badly_named_group_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        AttentionQueue(**options)


def test_a_default_plan_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UnknownPlan, match="basic, pro, enterprise"):
        AttentionQueue("market", default_plan="gold")


def test_a_group_without_plans_is_refused() -> None:
    with pytest.raises(UnknownPlan):
        AttentionQueue("market", plans=())


class Shop:
    """Handlers as people write them beside plain functions."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    async def method(self, message: int) -> None:
        self.seen.append(message)

    async def __call__(self, message: int) -> None:
        self.seen.append(message)

    def plain(self, message: int, context: Context) -> None:
        self.seen.append(message)

    async def with_more(self, message: int, context: Context, *, factor: int = 1) -> None:
        self.seen.append(message * factor)


def hidden(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that hides that its function is async."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


@pytest.mark.parametrize(
    "of",
    [
        lambda shop: shop.method,
        lambda shop: shop,
        lambda shop: shop.plain,
        lambda shop: functools.partial(shop.with_more, factor=1),
        lambda shop: hidden(shop.method),
    ],
    ids=["method", "object", "sync", "partial", "hidden"],
)
async def test_anything_that_can_be_called_is_a_handler(
    attn: Attn, of: Callable[[Shop], Callable[..., Any]]
) -> None:
    shop, queue = Shop(), AttentionQueue("market")
    queue.handler("it")(of(shop))
    await attn.open(queue)

    await attn.publish("t/1", "it", 5)
    await attn.publish("t/1", "it", "no number")
    await attn.drain()

    assert shop.seen == [5]
    assert [letter.reason for letter in attn.dead()] == ["undecodable"]
