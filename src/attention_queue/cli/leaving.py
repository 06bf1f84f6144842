"""How a worker process is told to leave: by a signal, or by the end of its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import NoReturn

from attention_queue.cli.output import talk
from attention_queue.contract.units import write_duration

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SAME = 0.1  # seconds: timeout and npm tell a process and its group, which is one telling
_AFTER_GRACE = 5.0  # seconds that an orphan may take longer than its grace


class Leaving:
    """Within it the first SIGTERM or SIGINT calls ``drain`` and the second ends the process.

    ``watched``: stdin is a pipe that nobody writes to; its end is the parent's, and counts as the
    first signal, so that no child outlives its parent for longer than its grace.
    """

    def __init__(self, drain: Callable[[], None], *, grace: timedelta, watched: bool) -> None:
        self._drain, self._grace, self._watched = drain, grace, watched
        self._told: float | None = None  # when

    def __enter__(self) -> Leaving:
        loop = asyncio.get_running_loop()
        self._loop = loop
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        if self._watched:
            Thread(target=self._watch_parent, name="attn-parent", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in _SIGNALS:
            self._loop.remove_signal_handler(number)

    @staticmethod
    def at_once(code: int) -> NoReturn:
        """End the process without waiting for threads or tasks that do not end."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _signalled(self, number: int) -> None:
        now = self._loop.time()
        if self._told is not None:
            if now - self._told < _SAME:
                return
            talk("leaving at once")
            self.at_once(128 + number)
        self._told = now
        grace = write_duration(self._grace)
        talk(f"draining: running handlers have {grace}; a second signal leaves at once")
        self._drain()

    def _watch_parent(self) -> None:
        while os.read(0, 1024):
            pass
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._orphaned)
        Event().wait(self._grace.total_seconds() + _AFTER_GRACE)
        self.at_once(1)

    def _orphaned(self) -> None:
        if self._told is None:
            self._signalled(signal.SIGTERM)
