"""Fences that are not asked for, or that do not grow."""

from __future__ import annotations

from attention_queue.engines.sqlite.transaction import STATEMENTS
from simulation.scenario import Profile
from simulation.world import Mutant

PAUSES = Profile(faults=("pause", "kill"), faultless=0.0, slow=0.3)
FENCING = (
    Mutant(
        name="no fence at settle",
        kinds=frozenset({"settled_by_stale_holder"}),
        swaps=((STATEMENTS, "holds_token", "SELECT ?1, ?2, ?3"),),
        profile=PAUSES,
    ),
    Mutant(
        name="no fence at release",
        kinds=frozenset({"released_anothers_token"}),
        swaps=(
            (
                STATEMENTS,
                "take_token",
                "DELETE FROM token WHERE rid = ?1 AND slot = ?2 AND ?3 IS NOT NULL",
            ),
        ),
        profile=PAUSES,
    ),
    Mutant(
        name="fences begin again (H17)",
        kinds=frozenset({"fence_went_back", "backlog_miscounted"}),
        swaps=((STATEMENTS, "save_ticket", "SELECT ?1"),),
    ),
)
