"""Broken products, by name: each must be caught."""

from __future__ import annotations

from simulation.world import Mutant

MUTANTS: dict[str, Mutant] = {}
