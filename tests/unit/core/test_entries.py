"""What a person sees of a payload, and how dead letters are selected by words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from attention_queue.contract.operation import Selection
from attention_queue.core.entries import preview
from attention_queue.core.filters import read_selection
from attention_queue.errors import ContractError


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (b'{"a": 1}', '{"a": 1}'),
        ("ä\nß".encode(), "ä\nß"),
        (b"\x1b[2J\xff", "\\x1b[2J\\xff"),
        (b"0123456789abc", "0123456789…"),
        (b"", ""),
    ],
)
def test_a_preview_is_text_and_short(payload: bytes, shown: str) -> None:
    assert preview(payload, 10) == shown


@pytest.mark.parametrize(
    ("words", "selection", "resource"),
    [
        ([], Selection(), None),
        (["eu/a"], Selection(), "eu/a"),
        (["resource:eu/a:b"], Selection(), "eu/a:b"),
        (["id:3", "id:4"], Selection(ids=(3, 4)), None),
        (["type:a.b", "error:E", "reason:r"], Selection(type="a.b", error="E", reason="r"), None),
        (["older:>1h"], Selection(older_than=timedelta(hours=1)), None),
        (["error:asyncio:Timeout"], Selection(error="asyncio:Timeout"), None),
    ],
)
def test_words_select_dead_letters(
    words: list[str], selection: Selection, resource: str | None
) -> None:
    assert read_selection(words) == (selection, resource)


@pytest.mark.parametrize(
    "words",
    [
        ["x:y"],
        ["type:"],
        ["id:-1"],
        ["id:x"],
        ["older:1h"],
        ["older:>x"],
        ["tenant:a*"],
        ["a", "b"],
    ],
)
def test_words_that_mean_nothing_are_refused(words: list[str]) -> None:
    with pytest.raises(ContractError):
        read_selection(words)
