"""Events as they happen, for whoever listens on a worker's port."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from attention_queue.clock import Clock
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import Event
from attention_queue.observe.logs import LEVEL_OF, entry_of

BEHIND = 1_000  # events that a slow listener may be behind; later ones are left out
HEARTBEAT = 1.0  # seconds after which an empty line shows that somebody is there


class Feed:
    """Hands each event that is worth a log line to all listeners. Costs nothing while none listens.

    Events are not kept: who comes late has missed them. No payload is ever in one.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._clock = clock
        self._listeners: set[queue.SimpleQueue[bytes | None]] = set()
        self._ends: list[Callable[[], None]] = [bus.on(kind, self._tell) for kind in LEVEL_OF]

    def close(self) -> None:
        for end in self._ends:
            end()
        for listener in tuple(self._listeners):
            listener.put(None)

    @contextmanager
    def lines(self) -> Iterator[Iterator[bytes]]:
        """Lines of JSON as they come, and empty ones as heartbeats; from any thread."""
        listener: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listeners.add(listener)
        try:
            yield _read(listener)
        finally:
            self._listeners.discard(listener)

    def _tell(self, event: Event) -> None:
        if not self._listeners:
            return
        at = self._clock.now().isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"at": at, "event": event.name, **entry_of(event)}) + b"\n"
        for listener in tuple(self._listeners):
            if listener.qsize() < BEHIND:
                listener.put(line)


def _read(listener: queue.SimpleQueue[bytes | None]) -> Iterator[bytes]:
    while True:
        try:
            line = listener.get(timeout=HEARTBEAT)
        except queue.Empty:
            line = b"\n"
        if line is None:
            return
        yield line
