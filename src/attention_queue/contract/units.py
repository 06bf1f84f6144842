"""Single values as people write them: ``30s``, ``250ms``, ``5/s``, ``high``, a moment, a count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from attention_queue.contract.policy import Expired, Order, Priority, Rate
from attention_queue.errors import ContractError

T = TypeVar("T")
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {  # largest first, because a text is written in the largest that divides
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": _MICROSECOND,
}
_NAMES = _UNITS | {
    "day": _UNITS["d"],
    "hour": _UNITS["h"],
    "min": _UNITS["m"],
    "minute": _UNITS["m"],
    "sec": _UNITS["s"],
    "second": _UNITS["s"],
}
_PART = r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(d|h|min|ms|m|us|s)"
_parts = re.compile(_PART)
_duration = re.compile(f"(?:{_PART} ?)+")
_rate = re.compile(r"([0-9]{1,18}) ?/ ?(.+)")


def read_duration(value: object) -> timedelta:
    """A number of seconds, or a text such as ``30s``, ``1.5h``, ``250ms``, ``1h 30m``.

    Raises:
        ContractError: Neither, not finite, or longer than the calendar.
    """
    try:
        match value:
            case timedelta():
                return value
            case bool():
                pass
            case int() | float():
                return timedelta(seconds=value)
            case str() if _duration.fullmatch(value):
                parts = _parts.findall(value)
                return sum((_times(n, _UNITS.get(u, _NAMES[u])) for n, u in parts), timedelta())
    except (OverflowError, ValueError):
        raise ContractError(f"want a finite duration, got {str(value)[:40]!r}") from None
    raise ContractError(
        f"want seconds, or a text such as 30s, 5m or 250ms; got {str(value)[:40]!r}"
    )


def write_duration(value: timedelta) -> str:
    """The shortest exact text, in the largest unit that divides it: ``90s``, ``5m``, ``250ms``."""
    for name, unit in _UNITS.items():
        if not value % unit:
            return f"{value // unit}{name}"
    raise AssertionError("a microsecond divides every timedelta")


def read_rate(value: object) -> Rate:
    """A text such as ``5/s``, ``100/min``, ``1000/day`` or ``30/10s``.

    Raises:
        ContractError: It is no such text.
    """
    if isinstance(value, Rate):
        return value
    found = _rate.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ContractError(f"want a rate such as 5/s or 100/min, got {str(value)[:40]!r}")
    per = _NAMES.get(found[2])
    return Rate(int(found[1]), read_duration(found[2]) if per is None else per)


def write_rate(rate: Rate) -> str:
    """The text that `read_rate` reads as the same rate."""
    if rate.messages >= 10**18:
        raise ContractError(f"rate: want fewer than 10^18 messages, got {rate.messages}")
    for name in ("s", "min", "h", "d"):
        if rate.per == _NAMES[name]:
            return f"{rate.messages}/{name}"
    return f"{rate.messages}/{write_duration(rate.per)}"


def read_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ContractError(f"want a whole number of at least 1, got {value!r:.40}")
    return value


def read_factor(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ContractError(f"want a number, got {value!r:.40}")
    return float(value)


def read_order(value: object) -> Order:
    return _word(value, {order.value: order for order in Order})


def read_expired(value: object) -> Expired:
    return _word(value, {expired.value: expired for expired in Expired})


def read_priority(value: object) -> Priority:
    return _word(value, {priority.name.lower(): priority for priority in Priority})


def _word(value: object, words: Mapping[str, T]) -> T:
    if isinstance(value, str) and value in words:
        return words[value]
    raise ContractError(f"want {' or '.join(words)}, got {value!r:.40}")


def read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ContractError(f"want a text, got {value!r:.40}")
    return value


def read_moment(value: object) -> datetime:
    """A time with its zone, or the text of one in ISO 8601."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ContractError(
            f"want a time with its zone, such as 2026-12-01T00:00Z; got {value!s:.40}"
        )
    return moment


def write_moment(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ContractError(
            f"override: want a time with its zone (datetime.now(UTC)), got {moment}"
        )
    return moment.isoformat()


def write_seconds(value: timedelta) -> float | str:
    seconds = value.total_seconds()
    return seconds if timedelta(seconds=seconds) == value else write_duration(value)


def _times(number: str, unit: timedelta) -> timedelta:
    return unit * (float(number) if "." in number else int(number))
