"""Breadth-first search of all that a small model can do; the shortest way to a fault is found."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol


class Model(Protocol):
    """A finite world. A step's label that begins with ``timer`` is the passing of time."""

    def start(self) -> Hashable: ...
    def steps(self, state: Hashable) -> Iterable[tuple[str, Hashable]]: ...
    def fault(self, state: Hashable, *, ended: bool, waits: bool) -> str | None:
        """What is wrong; ``ended``: no step is left; ``waits``: only time can go on."""


@dataclass(frozen=True, slots=True)
class Exploration:
    states: int
    fault: str | None
    way: tuple[str, ...]  # labels from the start to the fault


def explore(model: Model, *, limit: int) -> Exploration:
    """Search until a fault is found or all states are seen.

    Raises:
        RuntimeError: There are more than ``limit`` states.
    """
    start = model.start()
    came: dict[Hashable, tuple[Hashable, str] | None] = {start: None}
    line = deque([start])
    while line:
        state = line.popleft()
        steps = list(model.steps(state))
        waits = all(label.startswith("timer") for label, _ in steps)
        if fault := model.fault(state, ended=not steps, waits=waits):
            return Exploration(len(came), fault, _way(came, state))
        for label, after in steps:
            if after not in came:
                came[after] = state, label
                line.append(after)
        if len(came) > limit:
            raise RuntimeError(f"more than {limit} states")
    return Exploration(len(came), None, ())


def _way(came: dict[Hashable, tuple[Hashable, str] | None], state: Hashable) -> tuple[str, ...]:
    labels = []
    while (step := came[state]) is not None:
        state, label = step
        labels.append(label)
    return tuple(reversed(labels))
