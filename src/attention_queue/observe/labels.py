"""Label values from closed sets: whatever is not in them, or one too many, is ``other``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attention_queue.contract import CycleEnd, Hold, State

Labels = tuple[str, ...]
OTHER = "other"
OUTCOMES = ("done", "retried", "dead", "deferred")
ENDS = tuple(end.value for end in CycleEnd if end not in (CycleEnd.BUSY, CycleEnd.NO_QUEUE))
ASKED = ("publish", "more", "blocked", "sweep")
NOT_SERVED = tuple(state.value for state in State if state is not State.ACTIVE)
LIMITS: Mapping[Hold, str] = {Hold.BUSY: "consumers", Hold.RATE: "rate", Hold.STOP: "stop"}
DEAD = (
    "attempts_exhausted", "undecodable", "poison", "unknown_type", "expired", "retired", "rejected",
)  # fmt: skip
ASKS = ("ended_token", "work_without_request", "held_though_active", "request_too_late")
REPAIRS = (*ASKS, "request_without_work", "counter_drift", OTHER)  # of these, ASKS make a request
LOOPS = ("dispatch", "watch", "sweep", "cycle", "admit", "cycle_scope", "drain", OTHER)
REQUESTS = ("ready", "begun", "parked")
CLASSES = ("quiet", "noisy")
SLOTS = ("busy", "free")

MOST_GROUPS = 4
MOST_PLANS = 7  # of all groups together


def one_of(known: Sequence[str], word: str, otherwise: str = OTHER) -> str:
    return word if word in known else otherwise


class Names:
    """Groups and plans that are shown by name; first come, first named, then ``other``.

    Their number is what bounds the number of series, whatever people call their plans.
    """

    def __init__(self, served: Mapping[str, Iterable[str]]) -> None:
        """``served`` is named first: each group with its plans."""
        self._groups: dict[str, tuple[str]] = {}
        self._plans: dict[tuple[str, str], tuple[str, str]] = {}
        self._shown = {OTHER}
        for group, plans in served.items():
            self.group(group)
            for plan in plans:
                self.plan(group, plan)

    @property
    def groups(self) -> list[tuple[str]]:
        return list(dict.fromkeys(self._groups.values()))

    @property
    def plans(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys(self._plans.values()))

    def group(self, name: str) -> tuple[str]:
        known = self._groups.get(name)
        if known is None:
            full = len(self._groups) >= MOST_GROUPS
            known = (OTHER,) if full else (name,)
            if not full:
                self._groups[name] = known
        return known

    def plan(self, group: str, plan: str) -> tuple[str, str]:
        known = self._plans.get((group, plan))
        if known is None:
            shown = self.group(group)[0]
            full = shown == OTHER or len(self._plans) >= MOST_PLANS
            known = (shown, OTHER) if full else (shown, plan)
            if not full:
                self._plans[group, plan] = known
        return known
