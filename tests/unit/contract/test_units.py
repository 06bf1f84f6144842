"""Durations and rates are read from what people write, and written as people read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from attention_queue.contract import Rate
from attention_queue.contract.units import (
    read_duration,
    read_rate,
    write_duration,
    write_rate,
    write_seconds,
)
from attention_queue.errors import ContractError
from unit.contract import values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("5min", 300),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        ("10 s", 10),
        ("7us", 0.000007),
        (20, 20),
        (0.25, 0.25),
        (0, 0),
    ],
)
def test_a_duration_is_read(text: object, seconds: float) -> None:
    assert read_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    ["", "30", "s", "5 parsecs", "-5s", "1e3s", "٣s", True, None, [], float("nan"), float("inf"),
     10**400, "9" * 18 + "d", 1e300, "5s\n"],
)  # fmt: skip
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ContractError):
        read_duration(value)


@given(values.durations)
def test_a_written_duration_is_exact(duration: timedelta) -> None:
    assert read_duration(write_duration(duration)) == duration
    assert read_duration(write_seconds(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90s"), (300, "5m"), (0.25, "250ms"), (86_400, "1d"), (0, "0d")]
)
def test_a_duration_is_written_in_the_largest_unit_that_divides_it(
    seconds: float, text: str
) -> None:
    assert write_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5/s", Rate(5)),
        ("100/min", Rate(100, timedelta(minutes=1))),
        ("100 / minute", Rate(100, timedelta(minutes=1))),
        ("1000/day", Rate(1000, timedelta(days=1))),
        ("30/10s", Rate(30, timedelta(seconds=10))),
    ],
)
def test_a_rate_is_read(text: str, rate: Rate) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize("value", ["", "5", "/s", "0/s", "5/", "5/0s", "5/1us", "-5/s", 5, None])
def test_what_is_no_rate_is_refused(value: object) -> None:
    with pytest.raises(ContractError):
        read_rate(value)


@given(values.rates)
def test_a_written_rate_is_exact(rate: Rate) -> None:
    assert read_rate(write_rate(rate)) == rate
