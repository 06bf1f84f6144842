"""The changes that people make: each one transaction, with its request and its audit entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attention_queue.clock import from_ms
from attention_queue.contract import Hold, Override, Plan, Resource, State, effective
from attention_queue.contract.codec import (
    overrides_to_json,
    policy_from_json,
    policy_to_json,
)
from attention_queue.contract.events import Event, PlanChanged, StateChanged
from attention_queue.engines.sqlite.directory import (
    Directory,
    StoredGroup,
    ask_now,
    encode_map,
    make_ready,
    plan_changed,
    state_at,
    store_state,
)
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.errors import Conflict, ContractError, UnknownPlan, UnknownResource
from attention_queue.ports import Change, Nudge, Register, ReleaseToken, SetPlan, SetState

_GONE = (State.RETIRING, State.REMOVED)


class Changing:
    """One change by one actor; executed in a transaction."""

    def __init__(self, directory: Directory, change: Change, actor: str) -> None:
        self._directory, self._change, self._actor = directory, change, actor

    def __call__(self, tx: Transaction) -> list[Event]:
        """Make the change and ask for attention if it makes work ready.

        Raises:
            UnknownResource, UnknownPlan: Nothing was changed.
            Conflict: Somebody else has changed it since, or it is being retired.
            ContractError: A state that only a retirement brings about.
        """
        tx.directory_changed = True
        group = self._directory.group(tx, self._change.group)
        match self._change:
            case SetState():
                return self._set_state(tx, group, self._change)
            case Register():
                return self._register(tx, group, self._change)
            case SetPlan():
                return self._set_plan(tx, group, self._change)
            case ReleaseToken():
                return self._release(tx, group, self._change)
            case Nudge():
                rid = self._find(tx, group, self._change.resource)[0]
                ask_now(tx, rid, group.gid)
                self._audit(tx, group, rid, "nudge", self._change.reason, {})
                return []

    def _set_state(self, tx: Transaction, group: StoredGroup, change: SetState) -> list[Event]:
        row = self._find(tx, group, change.resource, change.expect)
        rid, was, state = row[0], state_at(row[3], row[4], tx.now_ms), change.state
        if was in _GONE:
            raise Conflict(
                f"{change.resource} is {was.value}", "its state does not change any more"
            )
        if state.state in _GONE:
            raise ContractError(
                f"{change.resource}: {state.state.value}: nobody sets it by hand: "
                f"retire the resource: attn retire {change.resource}"
            )
        store_state(tx, rid, replace(state, actor=state.actor or self._actor))
        if change.stop_now:
            tx.run("stop_now", rid)
        request = tx.first("request", rid)
        # One that is held by the old state is looked at again: the new one may end sooner.
        # Said again it moves nothing: who is ready keeps its place.
        resumed = state.state is State.ACTIVE and was is not State.ACTIVE
        if resumed or (request and request[2] == Hold.STATE.value):
            ask_now(tx, rid, group.gid)
        until = state.until.isoformat() if state.until else None
        detail = {"was": was.value, "is": state.state.value, "until": until}
        self._audit(tx, group, rid, "state", state.reason, detail)
        return [StateChanged(change.group, change.resource, state.state, state.reason, self._actor)]

    def _register(self, tx: Transaction, group: StoredGroup, change: Register) -> list[Event]:
        if change.plan is not None:
            self._check_plan(tx, group, change.plan)
        routing = encode_map(change.routing) if change.routing is not None else None
        overrides = overrides_to_json(change.overrides) if change.overrides is not None else None
        names = (change.resource.tenant, change.resource.id)
        row = tx.first("find", group.gid, *names)
        plan = change.plan or (row[1] if row else group.default_plan)
        self._check_overrides(tx, group.gid, plan, change.overrides or ())
        if row is None:
            if change.expect:
                raise UnknownResource(group.name, change.resource)
            made = tx.first("register", group.gid, *names, plan, routing, overrides)
            assert made is not None
            rid, was = made[0], None
        else:
            rid, was = self._find(tx, group, change.resource, change.expect)[0], row[1]
            tx.run("move", change.plan, routing, overrides, rid)
            self._limits_changed(tx, group, rid)
        detail = {"was": was, "is": plan, "routing": routing, "overrides": overrides}
        self._audit(tx, group, rid, "register" if was is None else "plan", change.reason, detail)
        return [PlanChanged(change.group, plan, change.resource)]

    def _set_plan(self, tx: Transaction, group: StoredGroup, change: SetPlan) -> list[Event]:
        name, policy = change.plan.name, change.plan.policy
        text, lane = policy_to_json(policy), int(policy.priority)
        row = tx.first("plan", group.gid, name)
        version = row[0] if row else 0
        if change.expect not in (None, version):
            raise Conflict(
                f"plan {name} has version {version}, not {change.expect}",
                "somebody has changed it since you read it: look again",
            )
        cap = policy.max_backlog
        if not tx.run("set_plan", text, lane, cap, group.gid, name):
            tx.run("store_plan", group.gid, name, text, text, lane, cap)
        plan_changed(tx, group.gid, name, lane)
        detail = {"plan": name, "was": row[1] if row else None, "is": text}
        self._audit(tx, group, None, "set_plan", change.reason, detail)
        return [PlanChanged(change.group, name)]

    def _release(self, tx: Transaction, group: StoredGroup, change: ReleaseToken) -> list[Event]:
        """The lease ends now, and a claim comes to look: it takes the token as a dead holder's."""
        rid = self._find(tx, group, change.resource)[0]
        if not tx.run("end_lease", tx.now_ms, rid, change.slot, change.fence):
            raise Conflict(
                f"slot {change.slot} of {change.resource} is not held with fence {change.fence}",
                "it was given back or taken over since: look again",
            )
        make_ready(tx, rid)
        detail = {"slot": change.slot, "fence": change.fence}
        self._audit(tx, group, rid, "release_token", change.reason, detail)
        return []

    def _limits_changed(self, tx: Transaction, group: StoredGroup, rid: int) -> None:
        request = tx.first("request", rid)
        if request:
            policy = self._directory.record(tx, rid, group.gid, group.name).policy
            if request[2] in ("busy", "rate"):
                make_ready(tx, rid)
            tx.run("relane", int(policy.priority), rid)

    def _check_plan(self, tx: Transaction, group: StoredGroup, plan: str) -> None:
        names = tuple(name for (name,) in tx.all("plan_names", group.gid))
        if plan not in names:
            raise UnknownPlan(group.name, plan, names)

    def _check_overrides(
        self, tx: Transaction, gid: int, plan: str, overrides: Sequence[Override]
    ) -> None:
        """They have to go together at each moment at which one of them begins or ends."""
        now, row = from_ms(tx.now_ms), tx.first("plan", gid, plan)
        assert row is not None
        ends = {m for o in overrides for m in (o.since, o.until) if m is not None and m > now}
        for moment in (now, *ends):
            effective(Plan(plan, policy_from_json(row[1])), overrides, moment)

    def _find(
        self, tx: Transaction, group: StoredGroup, resource: Resource, expect: int | None = None
    ) -> Row:
        row = tx.first("find", group.gid, resource.tenant, resource.id)
        if row is None:
            raise UnknownResource(group.name, resource)
        if expect not in (None, row[2]):
            raise Conflict(
                f"{resource} has version {row[2]}, not {expect}",
                "somebody has changed it since you read it: look again",
            )
        return row

    def _audit(
        self,
        tx: Transaction,
        group: StoredGroup,
        rid: int | None,
        verb: str,
        reason: str,
        detail: object,
    ) -> None:
        text = encode_map(detail)
        tx.run("audit", tx.now_ms, group.gid, rid, self._actor, verb, reason, text)
