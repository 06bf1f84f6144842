"""Handlers by message type, and what their parameter's type says about decoding."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect

from attention_queue.contract import WorkMessage
from attention_queue.contract.messages import BYTES, JSON
from attention_queue.contract.names import type_fault
from attention_queue.core.context import Context
from attention_queue.errors import ContractError

Decode = Callable[[WorkMessage], object]
BATCH = 100  # messages in one call of a handler that takes a list, unless it says otherwise


class Undecodable(Exception):
    """The payload is not what the handler's parameter says; the text has the path."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One function and how to call it."""

    type: str
    call: Callable[..., Any]
    decode: Decode
    batch: int | None  # takes a list of up to so many; None: one message a call
    wants_context: bool
    is_async: bool

    def arguments(self, values: Sequence[object], context: Context) -> tuple[object, ...]:
        """What to call it with, of the decoded payloads: one, or a list of them."""
        first = values[0] if self.batch is None else list(values)
        return (first, context) if self.wants_context else (first,)


class Handlers:
    """What this process can handle. Types come from here alone, never from a message."""

    def __init__(self) -> None:
        self._by_type: dict[str, Handler] = {}

    def add(self, type: str, function: Callable[..., Any], batch: int | None) -> None:
        """Raises ``ContractError`` for a bad type, a second handler or a bad signature."""
        if why := type_fault(type):
            raise ContractError(f"handler: message type {type!r}: {why}")
        if type in self._by_type:
            raise ContractError(f"handler: {type!r} has one already: {self._by_type[type].call}")
        self._by_type[type] = _inspect(type, function, batch)

    def get(self, type: str) -> Handler | None:
        return self._by_type.get(type)

    def __iter__(self) -> Any:
        return iter(sorted(self._by_type))

    def __bool__(self) -> bool:
        return bool(self._by_type)


def _inspect(type: str, function: Callable[..., Any], batch: int | None) -> Handler:
    where = f"handler of {type!r} ({getattr(function, '__qualname__', function)})"
    parameters = _parameters(function, where)
    wanted = _hints(function, where).get(parameters[0].name, dict)
    takes_list = get_origin(wanted) is list
    if takes_list:
        (wanted,) = get_args(wanted)
        batch = BATCH if batch is None else batch
    if batch is not None and (batch < 1 or not takes_list):
        raise ContractError(f"{where}: batch: want at least 1, and a parameter list[...]")
    return Handler(
        type=type,
        call=function,
        decode=decoder(wanted, where),
        batch=batch,
        wants_context=len(parameters) == 2,
        is_async=inspect.iscoroutinefunction(_code_of(function)),
    )


def _parameters(function: Callable[..., Any], where: str) -> list[inspect.Parameter]:
    """Raises: ContractError: It cannot be called with one message, or a message and a context."""
    every = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [each for each in every if each.kind in positional]
    named = [each for each in every if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if not 1 <= len(parameters) <= 2 or any(each.default is each.empty for each in named):
        raise ContractError(f"{where}: want (message) or (message, context)")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ContractError(f"{where}: want a function without yield")
    return parameters


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    try:
        return get_type_hints(_code_of(function))
    except NameError as exc:
        raise ContractError(f"{where}: {exc}: annotate with types of the module") from exc


def _code_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What holds the annotations: of a partial its function, of an object its ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return type(function).__call__


def decoder(wanted: Any, where: str) -> Decode:
    """How to make a ``wanted`` of a payload: bytes as they are, JSON for all else, validated."""
    if wanted is bytes:
        return lambda message: message.payload
    if wanted is WorkMessage:
        return lambda message: message
    if validate := getattr(wanted, "model_validate_json", None):
        return lambda message: _try(validate, message.payload)
    wanted = Any if wanted is object else wanted
    try:
        decode = msgspec.json.Decoder(wanted).decode
        if isinstance(msgspec.inspect.type_info(wanted), msgspec.inspect.CustomType):
            raise TypeError("it is no type that JSON can be validated as")
    except TypeError as exc:
        raise ContractError(f"{where}: cannot decode JSON as {wanted}: {exc}") from exc
    return lambda message: _try(decode, message.payload)


def _try(decode: Callable[[bytes], object], payload: bytes) -> object:
    try:
        return decode(payload)
    except (ValueError, RecursionError) as exc:  # msgspec's and pydantic's errors are ValueErrors
        raise Undecodable(str(exc)) from exc


def encode(payload: object) -> tuple[bytes, str]:
    """A payload's bytes and content type: bytes as they are, all else as JSON.

    Raises:
        ContractError: It cannot be written as JSON.
    """
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload), BYTES
    if dump := getattr(payload, "model_dump_json", None):
        return dump().encode(), JSON
    try:
        return msgspec.json.encode(payload), JSON
    except (TypeError, ValueError, RecursionError) as exc:
        raise ContractError(f"payload: cannot be written as JSON: {exc}") from exc


Proceed = Callable[[], Awaitable[object]]
Middleware = Callable[[Context, Proceed], Awaitable[object]]
