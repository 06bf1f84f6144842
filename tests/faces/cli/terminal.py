"""A command on a terminal of its own, as a person sees it and types to it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds
ALTERNATE, NORMAL = "\x1b[?1049h", "\x1b[?1049l"  # which of its two screens is shown


class Terminal:
    """``attn`` with these arguments on a pseudo-terminal of 100 x 30."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.shown = ""
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = self.settings()
        environment = {n: v for n, v in os.environ.items() if n not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attention_queue", *arguments],
            cwd=folder,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environment | {"TERM": "xterm"},
            start_new_session=True,
        )

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    def until(self, words: str, times: int = 1) -> None:
        """Wait until these words have been shown so many times."""
        deadline = time.monotonic() + PATIENCE
        while self.shown.count(words) < times:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"waited for {words!r}; it showed {self.shown!r}")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ended(self) -> int:
        """Wait for the end, and read what it still says; its exit code."""
        code = self.process.wait(PATIENCE)
        while self._read(0.0):
            pass
        return code

    def _read(self, seconds: float) -> bool:
        readable, _, _ = select.select([self._ours], [], [], max(seconds, 0.0))
        if readable:
            self.shown += os.read(self._ours, 65536).decode(errors="replace")
        return bool(readable)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        os.close(self._ours)
        os.close(self._theirs)


@contextmanager
def terminal(folder: Path, *arguments: str) -> Iterator[Terminal]:
    opened = Terminal(folder, *arguments)
    try:
        yield opened
    finally:
        opened.close()
