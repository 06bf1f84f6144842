"""Policies check themselves, and overrides hold in their window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_queue.contract import (
    PLANS,
    Backoff,
    Order,
    Override,
    Plan,
    Policy,
    Priority,
    Rate,
    effective,
)
from attention_queue.errors import ContractError
from unit.contract import values

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PRO = Plan("pro", Policy(max_messages=200, max_consumers=3))


def test_the_plans_are_consumers_times_messages_per_cycle() -> None:
    assert {p.name: (p.policy.max_consumers, p.policy.max_messages) for p in PLANS} == {
        "basic": (1, 50),
        "pro": (3, 200),
        "enterprise": (10, 1000),
    }


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert Policy() == Policy(
        max_messages=100,
        max_seconds=timedelta(seconds=20),
        max_consumers=1,
        handler_timeout=timedelta(seconds=60),
        priority=Priority.NORMAL,
        order=Order.RELAXED,
        rates={},
        retry=Backoff(attempts=10, first=timedelta(seconds=1), factor=2, cap=timedelta(minutes=5)),
        lease=timedelta(seconds=30),
        max_crashes=3,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"max_messages": 0},
        {"max_messages": 1.5},
        {"max_messages": "5"},
        {"max_consumers": 0},
        {"max_crashes": 0},
        {"max_seconds": timedelta(0)},
        {"handler_timeout": timedelta(seconds=-1)},
        {"lease": timedelta(microseconds=999)},
        {"order": Order.STRICT, "max_consumers": 2},
        {"rates": {"tenant": Rate(5)}},
    ],
)
def test_a_policy_that_cannot_work_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        Policy(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"attempts": 0},
        {"first": timedelta(seconds=-1)},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"factor": float("inf")},
        {"first": timedelta(minutes=6)},
    ],
)
def test_a_back_off_that_cannot_work_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        Backoff(**fields)


@pytest.mark.parametrize(("messages", "per"), [(0, timedelta(seconds=1)), (5, timedelta(0))])
def test_a_rate_that_cannot_work_is_refused(messages: int, per: timedelta) -> None:
    with pytest.raises(ContractError):
        Rate(messages, per)


def test_a_rate_is_messages_per_millisecond() -> None:
    assert Rate(100, timedelta(minutes=1)).per_ms == pytest.approx(100 / 60_000)


def test_priorities_are_taken_8_to_4_to_1() -> None:
    assert [p.weight for p in (Priority.HIGH, Priority.NORMAL, Priority.LOW)] == [8, 4, 1]


@given(values.backoffs(), st.integers(1, 10**4), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_never_negative_and_never_over_the_cap(
    backoff: Backoff, attempt: int, chance: float
) -> None:
    assert timedelta(0) <= backoff.wait(attempt, chance) <= backoff.cap


@given(values.backoffs(), st.integers(1, 10**4))
def test_waits_grow(backoff: Backoff, attempt: int) -> None:
    assert backoff.wait(attempt, 0.9) <= backoff.wait(attempt + 1, 0.9)


def test_waits_double_from_the_first_up_to_the_cap() -> None:
    waits = [Backoff().wait(attempt, 0.5).total_seconds() * 2 for attempt in range(1, 11)]

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


def test_the_wait_after_very_many_attempts_is_the_cap() -> None:
    backoff = Backoff(attempts=10**6)

    assert backoff.wait(10**6, 0.5) == backoff.cap / 2


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (NOON - timedelta(microseconds=1), False),
        (NOON, True),
        (NOON + HOUR - timedelta(microseconds=1), True),
        (NOON + HOUR, False),
    ],
)
def test_an_override_holds_from_its_start_to_before_its_end(now: datetime, holds: bool) -> None:
    campaign = Override(changes={"max_messages": 500}, since=NOON, until=NOON + HOUR)

    assert campaign.holds(now) is holds
    assert effective(PRO, [campaign], now).max_messages == (500 if holds else 200)


def test_an_override_without_a_window_always_holds() -> None:
    override = Override(changes={"max_messages": 500})

    assert override.holds(datetime.min.replace(tzinfo=UTC))
    assert override.holds(datetime.max.replace(tzinfo=UTC))


def test_the_last_override_that_holds_wins_field_by_field() -> None:
    overrides = [
        Override(changes={"max_messages": 1, "max_consumers": 5}),
        Override(changes={"max_messages": 2}),
        Override(changes={"max_messages": 3}, until=NOON),
    ]

    policy = effective(PRO, overrides, NOON)

    assert (policy.max_messages, policy.max_consumers) == (2, 5)


def test_without_overrides_the_policy_is_the_plans() -> None:
    assert effective(PRO, [], NOON) is PRO.policy


@given(values.plans, st.lists(values.overrides(), max_size=3), values.moments)
def test_only_fields_of_overrides_that_hold_are_changed(
    plan: Plan, overrides: list[Override], now: datetime
) -> None:
    want = {name: v for o in overrides if o.holds(now) for name, v in o.changes.items()}
    strict = want.get("order", plan.policy.order) is Order.STRICT

    if strict and want.get("max_consumers", plan.policy.max_consumers) != 1:
        with pytest.raises(ContractError, match="strict"):
            effective(plan, overrides, now)
        return
    policy = effective(plan, overrides, now)

    for name in values.POLICY_FIELDS:
        assert getattr(policy, name) == want.get(name, getattr(plan.policy, name))


@pytest.mark.parametrize(
    "fields",
    [
        {"changes": {}},
        {"changes": {"max_mesages": 5}},
        {"changes": {"max_messages": 5}, "since": NOON, "until": NOON},
        {"changes": {"max_messages": 5}, "since": NOON, "until": NOON - HOUR},
        {"changes": {"max_messages": 5}, "since": NOON.replace(tzinfo=None)},
        {"changes": {"max_messages": 5}, "until": NOON.replace(tzinfo=None)},
    ],
)
def test_an_override_that_cannot_hold_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match="override: "):
        Override(**fields)


@pytest.mark.parametrize("name", ["", "pro plan", "x" * 65, "a/b", None])
def test_a_plan_with_an_impossible_name_is_refused(name: Any) -> None:
    with pytest.raises(ContractError, match="1-64 characters"):
        Plan(name)
