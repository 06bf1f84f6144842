"""The pytest plugin: the fixture ``attn``, a real engine in memory on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from attention_queue.testkit import Attn


@pytest.fixture
def attn() -> Iterator[Attn]:
    """See ``attention_queue.testkit.Attn``; what it opened is closed after the test.

    The kit is loaded with the first test that asks for it: a plugin is imported by every run of
    pytest, and those that do not use it are not to wait for an engine.
    """
    kit = import_module("attention_queue.testkit").Attn()
    try:
        yield kit
    finally:
        kit.close()
