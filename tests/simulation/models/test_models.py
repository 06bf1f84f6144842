"""The protocols hold in every order of their steps; each mistake has a way to a fault."""

from __future__ import annotations

import pytest

from simulation.models.explorer import explore
from simulation.models.loans import Loans
from simulation.models.protocol import Attention, Variant

LIMIT = 400_000  # states
LOST = "work is lost from sight"
BOTH = pytest.mark.parametrize("variant", Variant)


@BOTH
@pytest.mark.parametrize(
    "setting",
    [
        dict(publishers=3, person=True),
        dict(publishers=2, faults=1, person=True),
        dict(limit=2, workers=3, publishers=3, person=True),
        dict(limit=2, workers=3, publishers=2, faults=1, person=True),
        dict(publishers=3, delayed=1, faults=1),
        dict(limit=2, workers=3, publishers=3, delayed=1, faults=1),
        dict(limit=1, new_limit=2, workers=3, publishers=2, faults=1),
        dict(limit=2, new_limit=1, workers=3, publishers=2, faults=1),
        dict(limit=1, new_limit=2, workers=3, publishers=3, faults=1, person=True),
    ],
    ids=str,
)
def test_no_order_of_statements_loses_work(variant: Variant, setting: dict[str, int]) -> None:
    found = explore(Attention(variant=variant, **setting), limit=LIMIT)

    assert found.fault is None, found.way
    assert found.states > 400


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        (dict(broken="one statement"), LOST),
        (dict(broken="one statement", publishers=1, person=True), LOST),
        (dict(broken="drops beside another slot", limit=2, faults=1), LOST),
        (dict(broken="no resource lock", variant=Variant.INSERT), LOST),
        (dict(broken="resumes in two", publishers=1, person=True, faults=1), LOST),
        (
            dict(broken="never pulls forward", variant=Variant.INSERT, delayed=1),
            "ready work waits for time, though a slot is free",
        ),
    ],
    ids=str,
)
def test_a_mistake_in_the_protocol_is_found(setting: dict[str, object], fault: str) -> None:
    found = explore(Attention(**setting), limit=LIMIT)

    assert found.fault == fault
    assert found.way


@pytest.mark.parametrize(
    "setting",
    [
        dict(),
        dict(faults=2, retries=0),
        dict(person=True, delayed=1),
        dict(limit=1, delayed=1, person=True),
        dict(messages=4, delayed=2, faults=0, retries=2),
        dict(messages=4, delayed=1, workers=3),
    ],
    ids=str,
)
def test_ranges_on_the_token_lose_and_double_nothing(setting: dict[str, int]) -> None:
    found = explore(Loans(**setting), limit=LIMIT)

    assert found.fault is None, found.way
    assert found.states > 400


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("take ignores loans", "one message in two hands"),
        ("a range spans another's", "a message is hidden by a loan that does not have it"),
        ("no fence", "one message in two hands"),
        ("drops beside another slot", "work, a token or a request is left for ever"),
        ("ended tokens stay", "work, a token or a request is left for ever"),
        ("never pulls forward", "ready work waits for time, though a slot is free"),
    ],
)
def test_a_mistake_with_ranges_is_found(broken: str, fault: str) -> None:
    delayed = 2 if broken == "never pulls forward" else 0

    found = explore(Loans(messages=4, delayed=delayed, broken=broken), limit=LIMIT)

    assert found.fault == fault
    assert found.way
