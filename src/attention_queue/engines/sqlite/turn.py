"""A fair turn between the processes that write one file.

SQLite's lock is not fair: with ``synchronous=FULL`` a process that commits in a tight loop was seen
to push another down to eight rows a second, because a waiter polls while the owner is already back.
Two file locks make a queue of it. Who waits for its turn holds the door; the owner, on coming back,
finds the door held and has to let the other one through first. The kernel frees the locks of a dead
process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager


class Turn:
    """Use ``with turn.taken():`` around a write transaction; from one thread only."""

    def __init__(self, path: str) -> None:
        self._door = os.open(path + "-door", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._desk = os.open(path + "-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def taken(self) -> Iterator[None]:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._desk, fcntl.LOCK_EX)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._desk, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._door)
        os.close(self._desk)
