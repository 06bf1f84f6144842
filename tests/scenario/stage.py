"""One scenario: a database file, a witness, and processes that are gone afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attention_queue import AttentionQueue
from scenario import processes
from scenario.processes import Running
from scenario.victim import queue_for
from scenario.witness import Witness


class Stage:
    """One scenario's file, witness and processes."""

    def __init__(self, folder: Path, witness: Witness) -> None:
        self.path, self.witness = folder / "attention.db", witness
        self._options: dict[str, Any] = {
            "url": f"sqlite:///{self.path}",
            "witness": str(witness.path),
        }
        self._running: list[Running] = []

    def queue(self, **options: Any) -> AttentionQueue:
        return queue_for({**self._options, **options})

    async def start(self, role: str, **options: Any) -> Running:
        running = await processes.start(role, **{**self._options, **options})
        self._running.append(running)
        return running

    async def clear(self) -> None:
        for running in self._running:
            await running.kill()
