"""The stage of a scenario."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scenario.stage import Stage
from scenario.witness import Witness


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Witness(tmp_path / "w.sock") as witness:
        stage = Stage(tmp_path, witness)
        yield stage
        await stage.clear()
