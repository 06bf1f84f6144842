"""Loans as ranges: exact, whatever others hold, return or add meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from attention_queue.contract import Delivery, Resource
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


@dataclass
class Token:
    """A token as it was lent: what it took, the ranges that cover it, the deliveries."""

    keys: list[Key]
    loan: list[tuple[int, int, int]]
    deliveries: list[Delivery]


KEYS = st.tuples(st.sampled_from((0, 0, 0, 1_000, 2_000)), st.integers(1, 200))


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Key], list[Token]]:
    """All rows of a queue, and the tokens that are out after some were lent and some returned.

    Each takes a prefix of what is free, in the order of taking.
    """
    keys = draw(st.lists(KEYS, unique_by=lambda key: key[1], min_size=1, max_size=40))
    tokens: list[Token] = []
    for _ in range(draw(st.integers(1, 6))):
        if tokens and draw(st.booleans()):
            tokens.pop(draw(st.integers(0, len(tokens) - 1)))
        held = {key for token in tokens for key in token.keys}
        free = order_of_taking([key for key in keys if key not in held])
        mine = free[: draw(st.integers(0, len(free)))]
        others = [r for token in tokens for r in token.loan]
        tokens.append(Token(mine, *lend([row(key) for key in mine], others, SHOP)))
    return keys, tokens


@given(queues())
def test_a_loan_covers_what_was_taken_and_nothing_else(
    queue: tuple[list[Key], list[Token]],
) -> None:
    keys, tokens = queue

    for token in tokens:
        mine = set(covered(token.loan, keys))
        theirs = {key for other in tokens if other is not token for key in other.keys}
        assert set(token.keys) <= mine
        assert not mine & theirs


@given(queues(), st.data())
def test_a_run_never_covers_a_row_of_another_tokens_loan(
    queue: tuple[list[Key], list[Token]], data: st.DataObject
) -> None:
    keys, tokens = queue
    token = data.draw(st.sampled_from(tokens))
    first = data.draw(st.integers(0, len(token.deliveries)))
    settled = token.deliveries[first : data.draw(st.integers(first, len(token.deliveries)))]

    found = runs(delivery.receipt for delivery in settled)

    assert sorted(covered(found, keys)) == sorted(d.receipt[:2] for d in settled)


@given(queues())
def test_what_has_a_due_time_is_settled_one_by_one(
    queue: tuple[list[Key], list[Token]],
) -> None:
    _, tokens = queue

    found = [r for token in tokens for r in runs(d.receipt for d in token.deliveries)]

    assert all(first == last for due, first, last in found if due)


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
