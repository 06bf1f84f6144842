"""How fast, how long, what holds it back: figures in, numbers and words out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from attention_queue.contract import CycleEnd, Hold, Order, Policy, ResourceState, State
from attention_queue.contract.figures import CycleFigures, PaceFigures, ResourceFigures
from attention_queue.core.insight import explain
from attention_queue.core.outlook import Forecast, Limit, forecast
from unit.core.test_insight import (
    ABANDONED,
    DELAYED,
    HEAD,
    IDLE,
    LONG_IN_LINE,
    NOW,
    PARKED,
    SECOND,
    SILENT,
    TOKEN,
    WORK,
)


def cycles(*ends: CycleEnd, handled: int = 100, took: float = 0.5) -> Sequence[CycleFigures]:
    return tuple(
        CycleFigures(
            at=NOW - n * SECOND,
            end=end.value,
            handled=handled,
            duration=timedelta(seconds=took),
        )
        for n, end in enumerate(ends)
    )


def at(arrival: float, service: float, *ends: CycleEnd) -> PaceFigures:
    return PaceFigures(arrival=arrival, service=service, cycles=tuple(cycles(*ends)))


MUCH = replace(WORK, backlog=1_200, request=PARKED, tokens=(TOKEN,))
DRIVEN = replace(MUCH, pace=at(2.0, 12.0, CycleEnd.MESSAGES))


def test_the_time_to_clear_is_the_backlog_over_what_goes_faster_than_it_comes() -> None:
    assert forecast(DRIVEN) == Forecast(timedelta(minutes=2), "clear in 2m at this rate")


@pytest.mark.parametrize(
    ("seen", "because"),
    [
        (replace(MUCH, pace=at(12.0, 12.0, CycleEnd.MESSAGES)), "not at this rate: no less comes"),
        (replace(MUCH, pace=at(15.0, 12.0, CycleEnd.MESSAGES)), "not at this rate: no less comes"),
        (replace(MUCH, backlog=10**12, pace=at(0, 1.0)), "not at this rate"),
        (replace(MUCH, pace=None), "it was never served"),
        (replace(MUCH, pace=at(5.0, 0.0)), "it was never served"),
        (
            replace(MUCH, pace=at(0.0, 0.0, CycleEnd.MESSAGES)),
            "not served in the last minutes; 6.0s of one consumer's work",
        ),
        (
            replace(MUCH, pace=PaceFigures(arrival=0, service=0, cycles=tuple(
                cycles(CycleEnd.STOPPED, handled=0)))),
            "not served in the last minutes",
        ),
        (replace(DRIVEN, state=ResourceState(State.PAUSED)), "not while it is paused"),
    ],
)  # fmt: skip
def test_where_nobody_can_say_it_says_why(seen: ResourceFigures, because: str) -> None:
    found = forecast(seen)

    assert found.clear is None
    assert found.because.startswith(because)
    assert explain(seen).numbers["clear_seconds"] is None


def test_a_pause_that_is_over_hinders_no_forecast() -> None:
    assert forecast(replace(DRIVEN, state=ResourceState(State.PAUSED, until=NOW))).clear


def test_nothing_left_is_clear_now() -> None:
    assert forecast(replace(IDLE, pace=at(0, 3.0))) == Forecast(timedelta(0), "no work is left")


def test_the_measured_service_is_what_one_consumer_does_while_it_is_at_work() -> None:
    twice = at(0, 1, CycleEnd.MESSAGES, CycleEnd.MESSAGES)

    assert twice.measured == 200
    assert at(0, 1).measured is None
    assert PaceFigures(arrival=0, service=0, cycles=tuple(
        cycles(CycleEnd.DRAINED, took=0))).measured is None  # fmt: skip


FAILED = replace(DELAYED, failed=2)
LIMITS = [
    ("as many at work as may be", DRIVEN, Limit.CONSUMERS),
    ("more might work than do", replace(DRIVEN, policy=Policy(max_consumers=3)), Limit.SLOTS),
    (
        "a strict order",
        replace(DRIVEN, policy=Policy(order=Order.STRICT)),
        Limit.CONSUMERS,
    ),
    ("no more than one slice is left", replace(DRIVEN, backlog=100), None),
    (
        "cycles that end by a rate",
        replace(DRIVEN, pace=at(1, 1, CycleEnd.RATE, CycleEnd.RATE, CycleEnd.MESSAGES)),
        Limit.RATE,
    ),
    ("a turn", WORK, Limit.SLOTS),
    ("a holder that does not renew", replace(MUCH, tokens=(SILENT,)), Limit.CONSUMERS),
    ("a rate", replace(WORK, request=replace(PARKED, hold=Hold.RATE)), Limit.RATE),
    ("a stop", replace(WORK, request=replace(PARKED, hold=Hold.STOP)), Limit.OUTSIDE),
    ("a pause", replace(WORK, state=ResourceState(State.PAUSED)), Limit.STATE),
    ("credentials", replace(WORK, state=ResourceState(State.CREDENTIALS_ERROR)), Limit.OUTSIDE),
    ("a retry", replace(WORK, request=PARKED, next=FAILED), Limit.HEAD),
    ("poison", replace(WORK, next=replace(HEAD, crashes=1)), Limit.HEAD),
    ("nobody at work", replace(WORK, request=LONG_IN_LINE, line=ABANDONED), Limit.WORKERS),
    (
        "nobody with a handler",
        replace(WORK, request=PARKED, next=replace(DELAYED, unknown_since=NOW)),
        Limit.WORKERS,
    ),
    ("only delayed work", replace(WORK, request=PARKED, next=DELAYED), None),
    ("no work", IDLE, None),
]


@pytest.mark.parametrize(("seen", "limit"), [v[1:] for v in LIMITS], ids=[v[0] for v in LIMITS])
def test_one_limit_holds_it_back(seen: ResourceFigures, limit: Limit | None) -> None:
    assert explain(seen).limit is limit


def test_every_limit_can_be_reached() -> None:
    assert {limit for *_, limit in LIMITS} == {None, *Limit}


def test_who_is_held_back_by_a_rate_while_at_work_is_told_where_it_is_set() -> None:
    seen = replace(DRIVEN, pace=at(1, 1, CycleEnd.RATE))

    assert explain(seen).try_this == (
        "raise rates if the outside service allows more: attn plan show basic",
    )


@pytest.mark.parametrize(
    ("seen", "hint"),
    [
        (
            replace(WORK, expired=3, policy=Policy(ttl=timedelta(minutes=5))),
            "3 dead letters expired before a turn (ttl 5m): attn dlq ls eu/s-1",
        ),
        (
            replace(WORK, expired=1),
            "1 dead letter expired before a turn: attn dlq ls eu/s-1",
        ),
        (
            replace(WORK, next=replace(HEAD, redriven=2)),
            "the next message was a dead letter 2 times before: attn peek eu/s-1",
        ),
        (
            replace(WORK, policy=Policy(max_backlog=40)),
            "publishes are refused: max_backlog is 40",
        ),
    ],
)
def test_what_stands_out_is_said_whatever_the_verdict(seen: ResourceFigures, hint: str) -> None:
    paused = replace(seen, state=ResourceState(State.PAUSED))

    assert explain(seen).try_this == (hint,)
    assert explain(paused).try_this[-1] == hint
