"""How fast a resource goes, what holds it back and when its work will be done. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from attention_queue.contract import CycleEnd, Order, State
from attention_queue.contract.figures import PaceFigures, ResourceFigures, TokenFigures
from attention_queue.contract.policy import FOREVER
from attention_queue.core.wording import END_OF_TIME, duration, plural, times

_NOTHING = 0.005  # messages per second that are shown as 0.0, and taken as none
_LONGEST = timedelta(days=365).total_seconds()


class Limit(Enum):
    """What keeps a resource from going faster."""

    CONSUMERS = "consumers"  # of its plan, or its strict order
    RATE = "rate"
    SLOTS = "slots"  # of the workers: it waits for its turn
    STATE = "state"
    HEAD = "head"  # one message that fails or kills
    OUTSIDE = "outside"  # an outside service that is down
    WORKERS = "workers"  # none, or none with a handler for it


@dataclass(frozen=True, slots=True)
class Forecast:
    """``clear`` is the time until no work is left, None if it will not be or nobody can say."""

    clear: timedelta | None
    because: str


def forecast(seen: ResourceFigures) -> Forecast:
    state = seen.state.at(seen.at)
    if not seen.backlog:
        return Forecast(timedelta(0), "no work is left")
    if state is not State.ACTIVE:
        return Forecast(None, f"not while it is {state.value}")
    pace = seen.pace
    if pace is None or pace.service < _NOTHING:
        return _unserved(seen)
    fewer = pace.service - pace.arrival  # per second
    if fewer * _LONGEST <= seen.backlog:
        return Forecast(None, "not at this rate: no less comes in than goes out")
    clear = timedelta(seconds=seen.backlog / fewer)
    return Forecast(clear, f"clear in {duration(clear)} at this rate")


def _unserved(seen: ResourceFigures) -> Forecast:
    measured = seen.pace.measured if seen.pace else None
    if seen.pace is None or not seen.pace.cycles:
        return Forecast(None, "it was never served")
    if measured is None or seen.backlog / measured > _LONGEST:
        return Forecast(None, "not served in the last minutes")
    takes = duration(timedelta(seconds=seen.backlog / measured))
    return Forecast(None, f"not served in the last minutes; {takes} of one consumer's work")


def limit_at_work(seen: ResourceFigures, live: int, loaned: int) -> Limit | None:
    """Of a resource that is being served; None: it keeps up."""
    cycles = seen.pace.cycles if seen.pace else ()
    if sum(each.end == CycleEnd.RATE.value for each in cycles) * 2 > len(cycles):
        return Limit.RATE
    if seen.backlog <= loaned + seen.policy.max_messages:
        return None
    most = 1 if seen.policy.order is Order.STRICT else seen.policy.max_consumers
    return Limit.CONSUMERS if live >= most else Limit.SLOTS


def hints(seen: ResourceFigures, name: str) -> Iterator[str]:
    """What stands out whatever the verdict; ``name`` as it is typed at a shell."""
    if seen.backlog >= seen.policy.max_backlog:
        yield f"publishes are refused: max_backlog is {seen.policy.max_backlog:,}"
    if seen.expired:
        ttl = f" (ttl {duration(seen.policy.ttl)})" if seen.policy.ttl < FOREVER else ""
        letters = f"dead {plural(seen.expired, 'letter')}"
        yield f"{seen.expired:,} {letters} expired before a turn{ttl}: attn dlq ls {name}"
    if seen.next and seen.next.redriven:
        again = times(seen.next.redriven)
        yield f"the next message was a dead letter {again} before: attn peek {name}"


def numbers(seen: ResourceFigures) -> dict[str, object]:
    """The figures behind a verdict; times as seconds, moments as ISO 8601."""
    request, clear = seen.request, forecast(seen).clear
    in_line = request is not None and request.due is None
    live = alive(seen)
    return {
        "backlog": seen.backlog,
        "oldest_seconds": _seconds(seen.at, seen.oldest),
        "dead_letters": seen.dead,
        "expired": seen.expired,
        "tokens": len(live),
        "max_consumers": seen.policy.max_consumers,
        "max_messages": seen.policy.max_messages,
        "in_hand": sum(token.loaned for token in live),
        "ahead": request.ahead if request and in_line else None,
        "waited_seconds": _seconds(seen.at, request.since) if request and in_line else None,
        "next_look": request.due.isoformat()
        if request and request.due and request.due < END_OF_TIME
        else None,
        **rates(seen.pace),
        "clear_seconds": None if clear is None else round(clear.total_seconds(), 3),
    }


def rates(pace: PaceFigures | None) -> dict[str, object]:
    """Messages per second: that come, that go, and that one consumer at work gets through."""
    return {
        "arrival_per_second": _rounded(pace.arrival if pace else None),
        "service_per_second": _rounded(pace.service if pace else None),
        "consumer_per_second": _rounded(pace.measured if pace else None),
    }


def alive(seen: ResourceFigures) -> list[TokenFigures]:
    return [token for token in seen.tokens if token.until > seen.at]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _seconds(now: datetime, then: datetime | None) -> float | None:
    return None if then is None else round((now - then).total_seconds(), 3)
