"""Whether this process should get work, and whether all is well with it."""

from __future__ import annotations

from dataclasses import dataclass

from attention_queue.clock import Clock
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    LoopFailed,
    WorkerDraining,
    WorkerStarted,
    WorkerStopped,
)
from attention_queue.observe.metrics import Serving

FAILED_FOR = 15.0  # seconds that a failure counts; a loop that fails tries again within 5
_LOOPS = ("dispatch", "watch")  # without these nothing is served


@dataclass(frozen=True, slots=True)
class Answer:
    """``status`` is ``ok``, ``degraded`` (it serves, and somebody should look) or ``unready``."""

    status: str
    because: str = ""


class Health:
    """Heard from the events of a bus, from its making on."""

    def __init__(self, bus: Bus, clock: Clock, serving: Serving) -> None:
        self._clock, self._serving = clock, serving
        self._phase = "it has not started"
        self._failed: tuple[float, str] | None = None
        self._ends = (
            bus.on(WorkerStarted, self._on_started),
            bus.on(WorkerDraining, self._on_draining),
            bus.on(WorkerStopped, self._on_stopped),
            bus.on(LoopFailed, self._on_failure),
        )

    def ready(self) -> Answer:
        """May be asked on any thread."""
        failed = self._failed
        if self._phase:
            return Answer("unready", self._phase)
        if failed and self._clock.monotonic() - failed[0] < FAILED_FOR:
            return Answer("unready", f"the loop {failed[1]} fails")
        if stuck := self._serving.stuck:
            return Answer("degraded", f"stuck handlers: {stuck}")
        return Answer("ok")

    def close(self) -> None:
        for end in self._ends:
            end()

    def _on_started(self, _: WorkerStarted) -> None:
        self._phase = ""

    def _on_draining(self, _: WorkerDraining) -> None:
        self._phase = "it drains"

    def _on_stopped(self, _: WorkerStopped) -> None:
        self._phase = "it has stopped"

    def _on_failure(self, event: LoopFailed) -> None:
        if event.loop in _LOOPS:
            self._failed = self._clock.monotonic(), event.loop
