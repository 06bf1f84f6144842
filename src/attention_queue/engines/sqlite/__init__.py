"""The engine for one machine: a SQLite file, or ``:memory:`` as the test double."""

from attention_queue.engines.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
