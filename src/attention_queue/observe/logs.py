"""Structured logs from the events: one line per cycle, none per message, and whatever is wrong.

Nothing global is configured: an application keeps its own logging. No event holds a payload; text
from outside is shortened, robbed of control characters and of what looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TextIO

import msgspec
import structlog

from attention_queue.clock import Clock
from attention_queue.contract import Resource
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    CycleFinished,
    CycleStarted,
    DeadLettered,
    Event,
    HandlerEnded,
    HandlerStarted,
    HandlerStuck,
    LoansRescued,
    LoopFailed,
    MessagesSettled,
    MessagesTaken,
    OperationAdvanced,
    OperationStarted,
    PlanChanged,
    Published,
    RequestBlocked,
    RequestDiscarded,
    RequestWasted,
    ScopeStopped,
    StateChanged,
    SweepFinished,
    TokensRenewed,
    TokenWasLost,
    WorkerDraining,
    WorkerStarted,
    WorkerStopped,
)
from attention_queue.contract.operation import Progress

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"
LEVELS: tuple[str, ...] = (DEBUG, INFO, WARNING, ERROR)

LEVEL_OF: Mapping[type[Event], str] = {
    CycleFinished: INFO,
    WorkerStarted: INFO,
    WorkerDraining: INFO,
    WorkerStopped: INFO,
    StateChanged: INFO,
    PlanChanged: INFO,
    OperationStarted: INFO,
    TokenWasLost: WARNING,
    HandlerStuck: WARNING,
    DeadLettered: WARNING,  # by a retirement: only at debug
    LoansRescued: WARNING,
    ScopeStopped: WARNING,
    LoopFailed: ERROR,
    SweepFinished: DEBUG,  # a warning if it had anything to repair
    OperationAdvanced: DEBUG,  # its last step: info
    RequestBlocked: DEBUG,
    RequestDiscarded: DEBUG,
    RequestWasted: DEBUG,
}
NOT_LOGGED: Mapping[type[Event], str] = {
    Published: "comes with every publish",
    CycleStarted: "its cycle has a line when it ends",
    HandlerStarted: "comes with every message",
    HandlerEnded: "comes with every message",
    MessagesTaken: "part of a cycle",
    MessagesSettled: "part of a cycle; the line of its end has the count",
    TokensRenewed: "comes all the time and means that all is well",
}

_LONGEST = 500  # characters of one value
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SECRETS = (
    (re.compile(r"(://[^/@\s:]*:)[^/@\s]*@"), r"\1***@"),
    (re.compile(r"\b(attn_[A-Za-z0-9-]+_)[A-Za-z0-9+/=_-]{16,}"), r"\1***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)\b(password|passwd|secret|api[_-]?key|token)(\s*[=:]\s*)\S+"), r"\1\2***"),
)


def logger_to(stream: TextIO, *, clock: Clock, colors: bool = False) -> Any:
    """A structlog logger: one JSON object a line, or coloured text if ``stream`` is a terminal."""
    renderer: Any = structlog.processors.JSONRenderer(serializer=_json)
    if stream.isatty():
        renderer = structlog.dev.ConsoleRenderer(colors=colors)

    def stamp(_: Any, level: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        now = clock.now().isoformat(timespec="milliseconds")
        return {"timestamp": now, "level": level, "event": entry.pop("event"), **entry}

    return structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[stamp, renderer],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )


class Logs:
    """Writes the events of a bus that are worth a line at ``level`` or above."""

    def __init__(self, bus: Bus, logger: Any, *, level: str = INFO) -> None:
        """``level`` is one of ``LEVELS``."""
        self._bus, self._logger = bus, logger
        self._floor = LEVELS.index(level)

    def attach(self) -> Callable[[], None]:
        """Begin to write; the answer ends it. An event below the level costs nothing."""
        ends = [
            self._bus.on(kind, self._sink(level))
            for kind, level in LEVEL_OF.items()
            if LEVELS.index(level) >= self._floor and kind not in (SweepFinished, OperationAdvanced)
        ]
        ends.append(self._bus.on(SweepFinished, self._swept))
        ends.append(self._bus.on(OperationAdvanced, self._advanced))

        def detach() -> None:
            for end in ends:
                end()

        return detach

    def _sink(self, level: str) -> Callable[[Event], None]:
        write = getattr(self._logger, level)
        all_of_it = self._floor == 0

        def sink(event: Event) -> None:
            if not all_of_it and isinstance(event, DeadLettered) and event.reason == "retired":
                return
            with suppress(OSError, ValueError):  # a full disk or a closed pipe stops no work
                write(event.name, **entry_of(event))

        return sink

    def _swept(self, event: SweepFinished) -> None:
        self._write(WARNING if event.repairs else LEVEL_OF[SweepFinished], event)

    def _advanced(self, event: OperationAdvanced) -> None:
        running = event.progress == Progress.RUNNING.value
        self._write(LEVEL_OF[OperationAdvanced] if running else INFO, event)

    def _write(self, level: str, event: Event) -> None:
        if LEVELS.index(level) >= self._floor:
            self._sink(level)(event)


def entry_of(event: Event) -> dict[str, object]:
    """The fields of an event as plain values that are safe to print."""
    names = [f.name for f in fields(event)] if is_dataclass(event) else event.__struct_fields__
    return {name: _plain(getattr(event, name)) for name in names}


def _plain(value: object) -> object:
    match value:
        case Resource() | str():
            return _shown(str(value))
        case Enum():
            return value.value
        case datetime():
            return value.isoformat(timespec="milliseconds")
        case float():
            return round(value, 6)
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _shown(text: str) -> str:
    text = text[: 8 * _LONGEST]  # masked before it is cut: half a secret looks like none
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    text = text[:_LONGEST].encode("utf-8", "backslashreplace").decode()  # no lone surrogate
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _json(entry: object, **_: object) -> str:
    return msgspec.json.encode(entry).decode()
