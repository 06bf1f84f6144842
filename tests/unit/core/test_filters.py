"""The filter language of lists, and figures as people read them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue.contract import State
from attention_queue.contract.figures import ResourceFilter
from attention_queue.core.filters import read_filter
from attention_queue.core.wording import duration
from attention_queue.errors import ContractError


def test_each_word_narrows_the_list() -> None:
    words = ["plan:pro", "state:paused", "tenant:eu-*", "backlog:>1000", "store-8*"]
    wanted = read_filter([*words, "oldest:>5m", "error:TimeoutError"])

    assert wanted == ResourceFilter(
        tenant="eu-*",
        id="store-8*",
        plan="pro",
        state=State.PAUSED,
        more_than=1000,
        older_than=timedelta(minutes=5),
        error="TimeoutError",
    )


def test_no_word_shows_all() -> None:
    assert read_filter([]) == ResourceFilter()


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("colour:red", "want one of plan:, state:, tenant:, id:, backlog:"),
        ("plan:", "with a value"),
        ("state:sleepy", "want one of active, paused"),
        ("backlog:1000", "want backlog:>1000"),
        ("backlog:>many", "want backlog:>1000"),
        ("oldest:5m", "want oldest:>5m"),
        ("oldest:>soon", "want seconds, or a text such as 30s"),
        ("backlog:>²", "want backlog:>1000"),
    ],
)
def test_a_word_that_means_nothing_is_refused_with_what_would(word: str, hint: str) -> None:
    with pytest.raises(ContractError) as refused:
        read_filter([word])

    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0.0s"), (0.42, "0.4s"), (12.4, "12s"), (59.6, "1m"), (200, "3m 20s"), (18_600, "5h 10m"),
     (187_200, "2d 4h"), (86_400, "1d")],
)  # fmt: skip
def test_a_duration_is_short_and_rounded(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text
