"""A command in a process of its own: what it says is awaited by its words."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PATIENCE = 30.0  # seconds


class Running:
    """``attn`` with these arguments; its stdout and stderr are read as one."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attention_queue", *arguments],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reader.start()

    def until(self, words: str, times: int = 1) -> str:
        """Wait for lines with these words; the last of them."""
        deadline = time.monotonic() + PATIENCE
        while times:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"waited for {words!r}; it said {self.said}")
            times -= words in line
        return line

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end; its exit code."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _read(self, pipe: IO[str]) -> None:
        for line in pipe:
            self.said.append(line.rstrip())
            self._lines.put(line)
        self._lines.put(None)

    def close(self) -> None:
        """End it and what it started, whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Running]:
    started = Running(folder, *arguments)
    try:
        yield started
    finally:
        started.close()
