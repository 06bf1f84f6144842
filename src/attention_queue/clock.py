"""Time, as something handed in rather than reached for."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the rest of the package may know about time."""

    def now(self) -> datetime: ...

    def now_ms(self) -> int:
        """``now`` as whole milliseconds since 1970, for what is stored or sent."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The wall clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_LEAST = 1e-6  # seconds; a timedelta knows no less, so nobody can move a clock by less


class ManualClock:
    """A clock that a test moves by hand; sleepers wake when ``advance`` passes their moment."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def now_ms(self) -> int:
        return to_ms(self._now)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        sleeper = (self._elapsed + seconds, woken)
        self._sleepers.append(sleeper)
        try:
            await woken
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def next_wake(self) -> float | None:
        """Seconds until the first sleeper is to wake; None if nobody sleeps."""
        moments = [moment for moment, woken in self._sleepers if not woken.done()]
        return max(min(moments) - self._elapsed, 0.0) if moments else None

    def advance(self, by: timedelta) -> None:
        """Move on; wall time may also be moved back, monotonic time then stands still."""
        self._now += by
        self._elapsed += max(by.total_seconds(), 0.0)
        for moment, woken in list(self._sleepers):
            if moment <= self._elapsed + _LEAST and not woken.done():
                woken.set_result(None)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // MS


def from_ms(ms: int) -> datetime:
    """The moment of a stored figure; figures beyond year 9999 (``FOREVER_MS``) become its end."""
    return _EPOCH + min(ms, FOREVER_MS) * MS


FOREVER_MS = to_ms(datetime(9999, 12, 31, tzinfo=UTC))
LAST = from_ms(FOREVER_MS)


def moment_in(now: datetime, wait: timedelta) -> datetime:
    """``wait`` from now; what is beyond the calendar becomes its end."""
    try:
        return min(now + wait, LAST)
    except OverflowError:
        return LAST if wait > timedelta(0) else _EPOCH
