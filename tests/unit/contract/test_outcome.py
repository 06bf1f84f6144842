"""What a handler may say, and which state counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_queue.contract import DONE, Done, ResourceState, Retry, State, Stop
from attention_queue.errors import ContractError
from unit.contract import values

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_done_is_done() -> None:
    assert Done() == DONE


@pytest.mark.parametrize("after", [None, timedelta(0), timedelta(days=7)])
def test_a_retry_or_a_stop_may_wait(after: timedelta | None) -> None:
    assert Retry(after).after == after
    assert Stop("down", after=after).after == after


def test_nothing_waits_a_negative_time() -> None:
    with pytest.raises(ContractError, match="negative"):
        Retry(timedelta(microseconds=-1))
    with pytest.raises(ContractError, match="negative"):
        Stop("down", after=timedelta(microseconds=-1))


@pytest.mark.parametrize(
    "state", [State.PAUSED, State.MAINTENANCE, State.DISABLED, State.CREDENTIALS_ERROR]
)
def test_a_stop_may_move_to_a_state_that_can_be_cleared(state: State) -> None:
    assert Stop("expired", state=state).state is state


@pytest.mark.parametrize(
    "fields",
    [
        {"state": State.ACTIVE},
        {"state": State.RETIRING},
        {"state": State.REMOVED},
        {"scope": "marketplace"},
        {"scope": "resource"},
    ],
)
def test_a_stop_that_cannot_be_carried_out_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match="Stop: "):
        Stop("down", **fields)


def test_a_stop_may_hold_all_of_a_routing_value() -> None:
    assert Stop("down", scope="routing.marketplace").scope == "routing.marketplace"


@given(st.sampled_from(State), values.moments)
def test_a_state_without_an_end_counts_for_ever(state: State, now: datetime) -> None:
    assert ResourceState(state).at(now) is state


@given(st.sampled_from(State), values.moments, values.moments)
def test_a_state_counts_until_its_end_and_then_the_resource_is_active(
    state: State, until: datetime, now: datetime
) -> None:
    want = state if now < until else State.ACTIVE

    assert ResourceState(state, until=until).at(now) is want


def test_the_end_itself_is_over() -> None:
    paused = ResourceState(State.PAUSED, reason="deploy", actor="ana", until=NOON)

    assert paused.at(NOON - timedelta(microseconds=1)) is State.PAUSED
    assert paused.at(NOON) is State.ACTIVE


def test_a_state_ends_at_a_moment_with_its_zone() -> None:
    with pytest.raises(ContractError, match="a time with its zone"):
        ResourceState(State.PAUSED, until=NOON.replace(tzinfo=None))


@pytest.mark.parametrize("text", ["\0", "\ud800"])
def test_a_state_has_a_reason_that_every_store_takes(text: str) -> None:
    with pytest.raises(ContractError, match="NUL or a lone surrogate"):
        ResourceState(State.PAUSED, reason=text)
