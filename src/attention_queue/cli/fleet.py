"""The parent of several worker processes: it starts them, restarts them, and takes them along."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence

from attention_queue.cli.exits import Exit
from attention_queue.cli.output import talk

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds before a restart
_STEADY = 60.0  # seconds alive after which the next restart waits no longer than the first
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_HOPELESS = (Exit.USAGE, Exit.NOT_FOUND)  # another start would end in the same way


class Fleet:
    """``count`` processes, each by its number. A child ends with its stdin, which we hold."""

    def __init__(self, command: Callable[[int], Sequence[str]], count: int) -> None:
        self._command, self._count = command, count
        self._children: set[Process] = set()
        self._code = 0

    def run(self) -> int:
        """Until told to leave; the exit code is the worst of the children's."""
        return asyncio.run(self._run())

    async def _run(self) -> int:
        self._leaving = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._pass_on, number)
        async with asyncio.TaskGroup() as tasks:
            for place in range(self._count):
                tasks.create_task(self._attend(place))
        return self._code

    def _pass_on(self, number: int) -> None:
        self._leaving.set()
        for child in tuple(self._children):
            _send(child, number)

    async def _attend(self, place: int) -> None:
        """Keep one process alive."""
        loop = asyncio.get_running_loop()
        wait = _FIRST_WAIT
        while not self._leaving.is_set():
            started = loop.time()
            code, pid = await self._child(place)
            if self._leaving.is_set():
                told = code in (-signal.SIGTERM, -signal.SIGINT)  # before it could listen
                self._code = max(self._code, 0 if told else _shell(code))
            elif code in _HOPELESS:
                self._code = max(self._code, code)
                self._pass_on(signal.SIGTERM)
            else:
                wait = _FIRST_WAIT if loop.time() - started > _STEADY else wait
                how = f"signal {-code}" if code < 0 else f"code {code}"
                talk(f"process {pid} ended with {how}; another starts in {wait:g} s")
                await self._pause(wait)
                wait = min(wait * 2, _LONGEST_WAIT)

    async def _child(self, place: int) -> tuple[int, int]:
        """Run one to its end; its exit code and process id.

        It has a session of its own: Ctrl-C in a terminal goes to us, and reaches it once.
        """
        child = await asyncio.create_subprocess_exec(
            *self._command(place), stdin=PIPE, start_new_session=True
        )
        self._children.add(child)
        if self._leaving.is_set():  # we were told while it started
            _send(child, signal.SIGTERM)
        try:
            return await child.wait(), child.pid
        finally:
            self._children.discard(child)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._leaving.wait()
        except TimeoutError:
            return


def _send(child: Process, number: int) -> None:
    if child.returncode is None:
        child.send_signal(number)


def _shell(code: int) -> int:
    return 128 - code if code < 0 else code
