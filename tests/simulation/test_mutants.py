"""The simulation has teeth: every broken product is caught, by the rule that it breaks."""

from __future__ import annotations

from itertools import islice

import pytest

from simulation.mutants import MUTANTS
from simulation.world import Mutant, play

SEEDS = range(1_000_000, 2_000_000)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_the_simulation_catches(mutant: Mutant) -> None:
    verdicts = (play(seed, mutant=mutant) for seed in islice(SEEDS, mutant.within))

    caught = next((verdict.fault for verdict in verdicts if verdict.fault is not None), None)

    assert caught is not None, f"not within {mutant.within} schedules"
    assert caught[0] in mutant.kinds, caught
