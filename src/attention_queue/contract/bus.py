"""Who hears which event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attention_queue.contract.events import Event

E = TypeVar("E", bound=Event)


class Bus:
    """Hands each event to those that asked for its type, in the order in which they asked.

    A sink must not block and must not raise: it runs between two effects.
    """

    def __init__(self) -> None:
        self._sinks: dict[type[Any], list[Callable[..., object]]] = {}

    def on(self, kind: type[E], sink: Callable[[E], object]) -> Callable[[], None]:
        """Call ``sink`` with every later event of ``kind``; the answer ends that."""
        sinks = self._sinks.setdefault(kind, [])
        sinks.append(sink)
        return lambda: sinks.remove(sink)

    def wants(self, kind: type[Event]) -> bool:
        """Whether making an event of ``kind`` is worth the trouble."""
        return bool(self._sinks.get(kind))

    def emit(self, event: Event) -> None:
        for sink in self._sinks.get(type(event), ()):
            sink(event)
