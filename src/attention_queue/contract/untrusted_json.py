"""The check of JSON from strangers: what is refused here cannot poison a queue later."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate

import msgspec

from attention_queue.contract.messages import MAX_PAYLOAD
from attention_queue.errors import InvalidMessage

MAX_DEPTH = 64  # arrays and objects inside each other
MAX_DIGITS = 4300  # of a whole number, its sign counted; Python reads no longer ones

# A string ends at its quote or with the data: a pattern that could fail would start again at each
# quote, and a hostile body would take minutes.
_string = re.compile(rb'"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)', re.DOTALL)
_not_brackets = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_escaped_nul = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_json(data: bytes, *, max_bytes: int = MAX_PAYLOAD) -> None:
    """Let through JSON (RFC 8259, in UTF-8) that every part of the system can read.

    Refused besides what is no JSON: more than `max_bytes`, more than `MAX_DEPTH` levels, NaN and
    Infinity, numbers that no double holds, whole numbers of more than `MAX_DIGITS` digits, a key
    that an object has twice, lone surrogates and ``\\u0000``.

    Raises:
        InvalidMessage: Of the field ``payload``; the text has the JSON path, or the byte where the
            text stops being JSON.
    """
    if len(data) > max_bytes:
        raise InvalidMessage("payload", f"{len(data)} bytes, at most {max_bytes} are allowed")
    _check_depth(data)
    try:
        msgspec.json.decode(data)
        _check_keys(data)
    except ValueError as error:
        raise InvalidMessage("payload", _explain(data) or str(error)) from None
    if _escaped_nul.search(data):
        raise InvalidMessage("payload", _explain(data) or "\\u0000")


def _check_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    brackets = _string.sub(b"", data).translate(None, delete=_not_brackets)
    depth = max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
    if depth > MAX_DEPTH:
        raise InvalidMessage("payload", f"{depth} levels deep, at most {MAX_DEPTH} are allowed")


def _check_keys(data: bytes) -> None:
    """Raises: ValueError: An object has a key twice."""
    if b"{" in data:
        json.loads(data.decode(), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, object]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")


class _Pairs(list[tuple[str, object]]):
    """An object with all of its keys, for the search for a fault."""


class _Bad(str):
    """Why a number is refused, in its place."""


def _explain(data: bytes) -> str | None:
    """The first fault and where it is. Slower than `check_json`, so only for what that refused."""
    try:
        tree = json.loads(
            data.decode(),
            object_pairs_hook=_Pairs,
            parse_constant=lambda word: _Bad(f"{word} is no JSON"),
            parse_int=_whole,
            parse_float=_double,
        )
    except UnicodeDecodeError as error:
        return f"no UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        return f"no JSON: {error}"
    return next((f"{why} at {path}" for path, why in _faults(tree, "$")), None)


def _whole(digits: str) -> object:
    return (
        _Bad(f"a whole number of more than {MAX_DIGITS} digits") if len(digits) > MAX_DIGITS else 0
    )


def _double(digits: str) -> object:
    return _Bad("a number out of range") if math.isinf(float(digits)) else 0.0


def _faults(tree: object, path: str) -> Iterator[tuple[str, str]]:
    match tree:
        case _Bad():
            yield path, str(tree)
        case str():
            if why := _text_fault(tree):
                yield path, why
        case _Pairs():
            seen: set[str] = set()
            for key, value in tree:
                inside = f"{path}.{key[:40]}" if key.isidentifier() else f"{path}[{key[:40]!a}]"
                if why := _text_fault(key):
                    yield inside, f"in a key: {why}"
                if key in seen:
                    yield inside, "the same key twice"
                seen.add(key)
                yield from _faults(value, inside)
        case list():
            for place, value in enumerate(tree):
                yield from _faults(value, f"{path}[{place}]")


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return "\\u0000"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "a lone surrogate"
    return None
