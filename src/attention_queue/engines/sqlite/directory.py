"""Groups, plans, resources and their states; and the changes that people make to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import msgspec

from attention_queue.clock import FOREVER_MS, from_ms, to_ms
from attention_queue.contract import (
    Plan,
    Policy,
    Resource,
    ResourceState,
    State,
    effective,
)
from attention_queue.contract.codec import (
    overrides_from_json,
    policy_from_json,
    policy_to_json,
)
from attention_queue.engines.sqlite.transaction import Transaction
from attention_queue.errors import ContractError, UnknownPlan
from attention_queue.ports import Group


@dataclass(frozen=True, slots=True)
class StoredGroup:
    gid: int
    name: str
    default_plan: str
    register_unknown: bool
    refuse_in_maintenance: bool
    max_tenant_backlog: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One resource as a claim sees it."""

    rid: int
    group: str
    gid: int
    resource: Resource
    plan: str
    policy: Policy
    routing: dict[str, str]
    state: State
    state_until_ms: int
    backlog: int
    stop_now: bool


class Directory:
    """Reads and changes the directory inside a transaction. Caches only what cannot change under
    a version: policies by (group, plan, version)."""

    def __init__(self) -> None:
        self._policies: dict[tuple[int, str], tuple[int, Policy]] = {}

    def open_group(self, tx: Transaction, group: Group) -> None:
        """Store what an application declares; what a person has set since stays in force."""
        settings = (
            group.name,
            group.type,
            group.default_plan,
            group.register_unknown,
            group.refuse_in_maintenance,
            group.max_tenant_backlog,
        )
        if group.default_plan not in (names := tuple(plan.name for plan in group.plans)):
            raise UnknownPlan(group.name, group.default_plan, names)
        if not tx.first("group_stored", *settings):
            tx.run("store_group", *settings)
            tx.run("forget_loads", self.group(tx, group.name).gid)
        gid = self.group(tx, group.name).gid
        for plan in group.plans:
            declared = policy_to_json(plan.policy)
            row = tx.first("plan", gid, plan.name)
            if row is None or row[2] != declared:
                lane = int(plan.policy.priority)
                cap = plan.policy.max_backlog
                tx.run("store_plan", gid, plan.name, declared, declared, lane, cap)
                plan_changed(tx, gid, plan.name, lane)
                tx.directory_changed = True

    def group(self, tx: Transaction, name: str) -> StoredGroup:
        row = tx.first("group", name)
        if row is None:
            raise ContractError(f"no group {name!r}: open it before publishing or serving")
        return StoredGroup(row[0], name, row[1], bool(row[2]), bool(row[3]), row[4])

    def policy(self, tx: Transaction, gid: int, plan: str, version: int) -> Policy:
        cached = self._policies.get((gid, plan))
        if cached and cached[0] == version:
            return cached[1]
        row = tx.first("plan", gid, plan)
        assert row is not None
        policy = policy_from_json(row[1])
        self._policies[gid, plan] = (row[0], policy)
        return policy

    def record(self, tx: Transaction, rid: int, gid: int, group: str) -> Record:
        row = tx.first("record", rid)
        assert row is not None
        tenant, id, plan, version, overrides, routing, state, until_ms, stop_now, backlog = row
        policy = self.policy(tx, gid, plan, version)
        if overrides:
            with suppress(ContractError):  # they no longer fit the plan: one resource's trouble
                now = from_ms(tx.now_ms)
                policy = effective(Plan(plan, policy), overrides_from_json(overrides), now)
        return Record(
            rid=rid,
            group=group,
            gid=gid,
            resource=Resource(tenant, id),
            plan=plan,
            policy=policy,
            routing=msgspec.json.decode(routing) if routing else {},
            state=state_at(state, until_ms, tx.now_ms),
            state_until_ms=until_ms or FOREVER_MS,
            backlog=backlog,
            stop_now=bool(stop_now),
        )


def plan_changed(tx: Transaction, gid: int, plan: str, lane: int) -> None:
    """Requests that wait take the plan's lane; those that its limits held are looked at again."""
    tx.run("replan", lane, gid, plan)
    for (rid,) in tx.all("limit_raised", gid, plan):
        make_ready(tx, rid)


def state_at(state: str, until_ms: int | None, now_ms: int) -> State:
    return State.ACTIVE if until_ms is not None and until_ms <= now_ms else State(state)


def is_active(tx: Transaction, rid: int) -> bool:
    row = tx.first("state", rid)
    assert row is not None
    return state_at(row[0], row[1], tx.now_ms) is State.ACTIVE


def store_state(tx: Transaction, rid: int, state: ResourceState) -> None:
    until_ms = to_ms(state.until) if state.until else None
    tx.run("set_state", state.state.value, state.reason, state.actor, until_ms, rid)
    tx.directory_changed = True


def ask_now(tx: Transaction, rid: int, gid: int) -> None:
    """Whatever the request waits for, it waits no more; without work there is nothing to ask."""
    if make_ready(tx, rid) or not tx.first("has_work", rid):
        return
    lane, count = tx.first("lane_of", rid), tx.first("count_work", rid)
    assert lane is not None and count is not None
    tx.run("ask", rid, gid, lane[0], 0, tx.next(), tx.now_ms, count[0])


def make_ready(tx: Transaction, rid: int) -> int:
    return tx.run("release_hold", tx.next(), tx.now_ms, rid)


def encode_map(values: object) -> str:
    return msgspec.json.encode(values).decode()
