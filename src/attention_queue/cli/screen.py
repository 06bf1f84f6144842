"""A live picture on the terminal's alternate screen, until a key says to leave."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import RenderableType
from rich.live import Live

from attention_queue.cli.output import console

LEAVE = frozenset({b"q", b"Q", b"\x1b", b"\x04"})  # q, Escape, Ctrl-D
Drawing = Callable[[int], RenderableType]  # the height in, a picture out


def is_possible() -> bool:
    """Whether there is a terminal to draw on and to read keys from."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def show(draw: Drawing, every: float) -> None:
    """Draw every so many seconds, and at any key; whatever happens, the terminal is put back."""
    out = console()
    with _keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(draw(out.size.height), refresh=True)
            if pressed(every) in LEAVE:
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], bytes]]:
    """Keys one by one and unseen: a function that waits for the next, so many seconds at most."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    ended = signal.signal(signal.SIGTERM, _leave)

    def pressed(seconds: float) -> bytes:
        readable, _, _ = select.select([terminal], [], [], seconds)
        return os.read(terminal, 1) or b"q" if readable else b""

    try:
        tty.setcbreak(terminal)
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, ended)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
