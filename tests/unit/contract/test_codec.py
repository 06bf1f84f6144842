"""Plans, policies and overrides go to storage and to files and come back as they were."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

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
)
from attention_queue.contract.codec import (
    override_from_table,
    override_to_table,
    overrides_from_json,
    overrides_to_json,
    plan_from_table,
    plan_to_table,
    policy_from_json,
    policy_to_json,
)
from attention_queue.contract.policy import POLICY_FIELDS
from attention_queue.errors import ContractError, InvalidConfig
from unit.contract import values


@given(values.policies)
def test_a_stored_policy_comes_back_equal(policy: Policy) -> None:
    assert policy_from_json(policy_to_json(policy)) == policy


@given(st.lists(values.overrides(), max_size=3).map(tuple))
def test_stored_overrides_come_back_equal_and_with_their_types(
    overrides: tuple[Override, ...],
) -> None:
    back = overrides_from_json(overrides_to_json(overrides))

    assert back == overrides
    for ours, theirs in zip(overrides, back, strict=True):
        for name, value in ours.changes.items():
            assert type(theirs.changes[name]) is type(value)


@given(values.plans)
def test_a_plan_written_as_a_table_reads_back_in_the_strict_way(plan: Plan) -> None:
    assert plan_from_table(plan.name, plan_to_table(plan)) == plan


@given(values.overrides())
def test_an_override_written_as_a_table_reads_back_in_the_strict_way(override: Override) -> None:
    assert override_from_table(override_to_table(override)) == override


def test_every_policy_field_has_a_written_form() -> None:
    assert json.loads(policy_to_json(Policy())).keys() == POLICY_FIELDS


def test_the_stored_form_is_stable() -> None:
    policy = Policy(
        max_messages=5,
        max_seconds=timedelta(milliseconds=1500),
        priority=Priority.HIGH,
        order=Order.STRICT,
        rates={"resource": Rate(5), "routing.marketplace": Rate(100, timedelta(minutes=1))},
        retry=Backoff(attempts=3, first=timedelta(milliseconds=250)),
    )

    assert json.loads(policy_to_json(policy)) == {
        "max_messages": 5,
        "max_seconds": 1.5,
        "max_consumers": 1,
        "handler_timeout": 60.0,
        "priority": "high",
        "order": "strict",
        "rates": {"resource": "5/s", "routing.marketplace": "100/min"},
        "retry": {"attempts": 3, "first": 0.25, "factor": 2.0, "cap": 300.0},
        "lease": 30.0,
        "max_crashes": 3,
        "max_backlog": 1_000_000_000,
        "ttl": 3_153_600_000.0,
        "expired": "dead_letter",
    }


def test_what_an_older_version_stored_gets_defaults_for_the_rest() -> None:
    assert policy_from_json('{"max_messages": 7}') == Policy(max_messages=7)


def test_fields_that_a_newer_version_stored_are_left_out() -> None:
    text = (
        '{"max_messages": 7, "colour": "red", "retry": {"attempts": 2, "shape": 1},'
        ' "rates": {"resource": "5/s", "tenant": "1/s"}}'
    )

    policy = policy_from_json(text)

    assert policy == Policy(max_messages=7, retry=Backoff(attempts=2), rates={"resource": Rate(5)})


def test_an_override_that_only_a_newer_version_understands_is_left_out() -> None:
    text = '[{"changes": {"colour": "red"}}, {"changes": {"max_messages": 7}, "who": "me"}]'

    assert overrides_from_json(text) == (Override(changes={"max_messages": 7}),)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"order": "sideways"}', '{"lease": "soon"}', "[" * 9999, '"\\ud800"'],
)
def test_what_is_no_stored_policy_is_a_contract_error(text: str) -> None:
    with pytest.raises(ContractError):
        policy_from_json(text)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "null", "[1]", '[{"changes": 1}]', '[{"changes": {"lease": -1}, "since": 3}]'],
)
def test_what_are_no_stored_overrides_is_a_contract_error(text: str) -> None:
    with pytest.raises(ContractError):
        overrides_from_json(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_messages", "many"),
        ("max_messages", True),
        ("max_seconds", 20),
        ("priority", 1),
        ("order", "strict"),
        ("rates", {"resource": "5/s"}),
        ("retry", {"attempts": 3}),
    ],
)
def test_an_override_of_the_wrong_type_is_not_stored(name: str, value: object) -> None:
    with pytest.raises(ContractError):
        overrides_to_json((Override(changes={name: value}),))


def test_a_reason_that_is_no_text_in_any_encoding_is_not_stored() -> None:
    with pytest.raises(ContractError):
        overrides_to_json((Override(changes={"max_messages": 1}, reason="\ud800"),))


def test_a_plan_is_read_with_human_units() -> None:
    table = {
        "max_messages": 200,
        "max_seconds": "5m",
        "handler_timeout": 2.5,
        "lease": "250ms",
        "priority": "low",
        "rates": {"resource": "5/s", "routing.marketplace": "1000/day"},
        "retry": {"first": "1m 30s", "cap": "1h"},
    }

    assert plan_from_table("pro", table) == Plan(
        "pro",
        Policy(
            max_messages=200,
            max_seconds=timedelta(minutes=5),
            handler_timeout=timedelta(seconds=2.5),
            lease=timedelta(milliseconds=250),
            priority=Priority.LOW,
            rates={"resource": Rate(5), "routing.marketplace": Rate(1000, timedelta(days=1))},
            retry=Backoff(first=timedelta(seconds=90), cap=timedelta(hours=1)),
        ),
    )


def test_an_unknown_key_is_a_fault_with_its_path_and_a_suggestion() -> None:
    with pytest.raises(InvalidConfig) as caught:
        plan_from_table("pro", {"max_mesages": 5})

    assert str(caught.value) == "plans.pro.max_mesages: unknown; did you mean max_messages?"


def test_a_key_like_no_other_is_answered_with_the_list() -> None:
    with pytest.raises(
        InvalidConfig, match=r"plans\.pro\.zzz: unknown; there are expired, handler_timeout,"
    ):
        plan_from_table("pro", {"zzz": 5})


def test_all_faults_of_a_plan_are_told_at_once() -> None:
    table = {
        "max_messages": 0,
        "order": "sideways",
        "retry": {"frist": "1s", "factor": "two"},
        "rates": {"resource": "often", "resourse": "5/s", "routing.x": "5/0s"},
        "lease": "soon",
    }

    with pytest.raises(InvalidConfig) as caught:
        plan_from_table("pro", table)

    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        "plans.pro.max_messages",
        "plans.pro.order",
        "plans.pro.retry.frist",
        "plans.pro.retry.factor",
        "plans.pro.rates.resource",
        "plans.pro.rates.resourse",
        "plans.pro.rates.routing.x",
        "plans.pro.lease",
    ]


def test_values_that_do_not_go_together_are_a_fault_of_the_plan() -> None:
    with pytest.raises(InvalidConfig, match=r'plans\.pro: policy: order "strict" needs'):
        plan_from_table("pro", {"order": "strict", "max_consumers": 2})


@pytest.mark.parametrize("table", [5, "pro", None, ["max_messages"]])
def test_a_plan_that_is_no_table_is_a_fault(table: object) -> None:
    with pytest.raises(InvalidConfig, match=r"plans\.pro: want a table"):
        plan_from_table("pro", table)  # type: ignore[arg-type]


def test_a_plan_of_an_impossible_name_is_a_fault() -> None:
    with pytest.raises(InvalidConfig, match="1-64 characters"):
        plan_from_table("pro plan", {})


def test_an_override_is_read_with_a_window() -> None:
    table = {"changes": {"max_messages": 500}, "until": "2026-12-01T00:00Z", "reason": "sale"}

    assert override_from_table(table) == Override(
        changes={"max_messages": 500}, until=datetime(2026, 12, 1, tzinfo=UTC), reason="sale"
    )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({}, "override: override: it changes nothing"),
        ({"changes": {"max_mesages": 5}}, "override.changes.max_mesages: unknown"),
        ({"changes": {"lease": 5}, "untill": "x"}, "override.untill: unknown; did you mean until?"),
        ({"changes": {"lease": 5}, "until": "2026-12-01"}, "override.until: want a time with its"),
        ({"changes": {"lease": 5}, "since": datetime(2026, 1, 1)}, "override.since: want a time"),  # noqa: DTZ001 - the fault
        ({"changes": {"lease": 5}, "reason": 5}, "override.reason: want a text"),
    ],
)
def test_a_wrong_override_is_a_fault_with_its_path(table: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        override_from_table(table)

    assert caught.value.problems[0].startswith(problem)


_json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2)
    ),
    max_leaves=4,
)
_tables = st.dictionaries(
    st.sampled_from(sorted(POLICY_FIELDS)) | st.text(max_size=8), _json_like, max_size=4
)


@given(_tables)
def test_any_table_is_a_plan_or_a_list_of_faults(table: dict[str, object]) -> None:
    try:
        plan = plan_from_table("pro", table)
    except InvalidConfig as error:
        assert error.problems
    else:
        assert plan_from_table("pro", plan_to_table(plan)) == plan


@given(_tables)
def test_any_stored_object_is_a_policy_or_a_contract_error(table: dict[str, object]) -> None:
    try:
        policy = policy_from_json(json.dumps(table))
    except ContractError:
        return
    assert policy_from_json(policy_to_json(policy)) == policy


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_the_plans_that_come_with_the_product_survive_both_ways(plan: Plan) -> None:
    assert policy_from_json(policy_to_json(plan.policy)) == plan.policy
    assert plan_from_table(plan.name, plan_to_table(plan)) == plan
