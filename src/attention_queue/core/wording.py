"""Figures as people read them: rounded, short, in whole words."""

from __future__ import annotations

from datetime import datetime, timedelta

from attention_queue.clock import FOREVER_MS, from_ms
from attention_queue.contract.units import write_duration

END_OF_TIME = from_ms(FOREVER_MS)


def duration(value: timedelta) -> str:
    """Short and rounded, for people: ``0.4s``, ``12s``, ``3m 20s``, ``5h 10m``, ``2d 4h``."""
    seconds = max(value.total_seconds(), 0.0)
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for big, small, names in ((86400, 3600, "dh"), (3600, 60, "hm"), (60, 1, "ms")):
        if whole >= big:
            rest = whole % big // small
            return f"{whole // big}{names[0]}" + (f" {rest}{names[1]}" if rest else "")
    return write_duration(timedelta(seconds=whole))


def moment(value: datetime | None) -> str:
    if value is None or value >= END_OF_TIME:
        return "somebody changes it"
    return f"{value:%Y-%m-%d %H:%M:%S} UTC"


def messages(count: int) -> str:
    return f"{count:,} {plural(count, 'message')}"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"


def plain(text: str) -> str:
    """What cannot be shown is escaped, so that no message says anything to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
