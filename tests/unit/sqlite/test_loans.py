"""Loans as ranges: exact, whatever others hold, return or add meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attention_queue.contract import Resource
from attention_queue.engines.sqlite.loans import lend, read_ranges, runs, write_ranges

SHOP = Resource("acme", "a")
Key = tuple[int, int]


def row(key: Key) -> tuple[object, ...]:
    return (*key, f"id-{key}", "order", 0, 0, 0, None, None, None, b"{}", None, 0)


def covered(ranges: list[tuple[int, int, int]], keys: list[Key]) -> list[Key]:
    return [
        (due, seq) for due, seq in keys if any(d == due and f <= seq <= t for d, f, t in ranges)
    ]


def order_of_taking(keys: list[Key]) -> list[Key]:
    return sorted(keys, key=lambda key: (key[0] == 0, key))


def lent(holders: list[list[Key]]) -> list[list[tuple[int, int, int]]]:
    """The ranges of each token, lent one after the other, each around those before it.

    A token takes a prefix of what is free, so what a later token takes lies behind or between.
    """
    ranges: list[list[tuple[int, int, int]]] = []
    for keys in holders:
        others = [r for given in ranges for r in given]
        ranges.append(lend([row(k) for k in order_of_taking(keys)], others, SHOP)[0])
    return ranges


@st.composite
def takings(draw: st.DrawFn) -> tuple[list[Key], list[list[Key]]]:
    """All rows, and what tokens have taken: each a prefix of what was free at that moment."""
    seqs = draw(st.lists(st.integers(1, 200), unique=True, min_size=1, max_size=40))
    keys = [(draw(st.sampled_from((0, 0, 0, 1_000, 2_000))), seq) for seq in seqs]
    free, taken = order_of_taking(keys), []
    for _ in range(draw(st.integers(1, 5))):
        count = draw(st.integers(0, len(free)))
        mine, free = free[:count], free[count:]
        if taken and draw(st.booleans()):  # an earlier token ends and returns what it had
            free = order_of_taking(free + taken.pop(draw(st.integers(0, len(taken) - 1))))
        taken.append(mine)
    return keys, taken


@given(takings())
def test_a_loan_covers_what_was_taken_and_nothing_else(
    case: tuple[list[Key], list[list[Key]]],
) -> None:
    keys, taken = case

    ranges = lent(taken)

    for mine, loan in zip(taken, ranges, strict=True):
        assert sorted(covered(loan, keys)) == sorted(mine)


@given(takings(), st.data())
def test_a_run_never_covers_a_row_of_another_tokens_loan(
    case: tuple[list[Key], list[list[Key]]], data: st.DataObject
) -> None:
    keys, taken = case
    others: list[tuple[int, int, int]] = []

    for mine in taken:
        loan, deliveries = lend([row(k) for k in order_of_taking(mine)], others, SHOP)
        first = data.draw(st.integers(0, len(deliveries)))
        settled = deliveries[first : data.draw(st.integers(first, len(deliveries)))]
        found = runs(d.receipt for d in settled)
        assert sorted(covered(found, keys)) == sorted(d.receipt[:2] for d in settled)
        others += loan


@given(takings())
def test_what_has_a_due_time_is_settled_one_by_one(
    case: tuple[list[Key], list[list[Key]]],
) -> None:
    _, taken = case

    found = [r for mine in taken for r in runs(_receipts(mine))]

    assert all(first == last for due, first, last in found if due)


def _receipts(keys: list[Key]) -> list[tuple[int, ...]]:
    return [d.receipt for d in lend([row(k) for k in order_of_taking(keys)], [], SHOP)[1]]


def test_a_loan_in_one_piece_is_one_range_and_one_run() -> None:
    loan, deliveries = lend([row((0, seq)) for seq in (3, 5, 9)], [], SHOP)

    assert loan == [(0, 3, 9)]
    assert runs(d.receipt for d in deliveries) == [(0, 3, 9)]


def test_a_loan_is_cut_where_anothers_lies_between() -> None:
    loan, deliveries = lend([row((0, seq)) for seq in (3, 5, 9)], [(0, 4, 4), (0, 6, 8)], SHOP)

    assert loan == [(0, 3, 3), (0, 5, 5), (0, 9, 9)]
    assert runs(d.receipt for d in deliveries) == loan


@given(st.lists(st.tuples(st.integers(0), st.integers(0), st.integers(0)), max_size=5))
def test_ranges_are_read_as_they_were_written(ranges: list[tuple[int, int, int]]) -> None:
    small = [tuple(min(n, 2**63 - 1) for n in r) for r in ranges]

    assert read_ranges(write_ranges(small).decode()) == small
