"""The engine for one machine: a SQLite file, or ``:memory:`` as the test double.

The engine itself loads on first use: a command that only looks has no need of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_queue.engines.sqlite.engine import SqliteEngine
    from attention_queue.engines.sqlite.memory import open_in_memory

__all__ = ["SqliteEngine", "open_in_memory"]

_HOMES = {"SqliteEngine": "engine", "open_in_memory": "memory"}


def __getattr__(name: str) -> object:
    if home := _HOMES.get(name):
        return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
