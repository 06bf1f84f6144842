"""Metrics: what each event counts, which names and labels there are, and how many series."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry

from attention_queue import AttentionQueue, Retry
from attention_queue.contract import CycleEnd, Hold, Resource
from attention_queue.contract import events as e
from attention_queue.contract.bus import Bus
from attention_queue.observe import labels
from attention_queue.observe.logs import LEVEL_OF, NOT_LOGGED
from attention_queue.observe.metrics import Metrics
from attention_queue.testkit import Attn
from docs import pages
from unit.observe.observing import (
    ONE_OF_EACH,
    PLANS,
    SHOP,
    UNTIL,
    Slots,
    changed,
    exported_names,
    samples,
)

LABELS = {"group", "plan", "outcome", "reason", "end", "engine", "class", "state", "limit"}


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def registry(bus: Bus) -> CollectorRegistry:
    registry = CollectorRegistry()
    Metrics(bus, registry, served=PLANS, serving=Slots()).attach()
    return registry


def test_every_kind_of_event_is_sampled_here() -> None:
    assert {type(event) for event in ONE_OF_EACH} == set(get_args(e.Event))


def test_every_kind_of_event_is_counted_or_logged_or_left_out_for_a_reason() -> None:
    bus = Bus()
    Metrics(bus, CollectorRegistry()).attach()
    counted = {kind for kind in get_args(e.Event) if bus.wants(kind)}

    assert counted | set(LEVEL_OF) | set(NOT_LOGGED) == set(get_args(e.Event))
    assert not set(LEVEL_OF) & set(NOT_LOGGED)
    assert set(NOT_LOGGED) - counted == {
        e.CycleStarted, e.HandlerStarted, e.MessagesTaken, e.TokensRenewed,
    }  # fmt: skip
    assert all(NOT_LOGGED.values())


def test_each_event_moves_its_counts_and_no_others(bus: Bus, registry: CollectorRegistry) -> None:
    before = samples(registry)

    for event in ONE_OF_EACH:
        bus.emit(event)

    moved = {
        name.replace("group=marketplace", "*").replace("marketplace,", "*,"): value - before[name]
        for name, value in samples(registry).items()
        if value != before.get(name) and "_bucket" not in name and "_sum" not in name
    }
    assert moved == {
        "attn_messages_published_total{*}": 5,
        "attn_messages_handled_total{*,outcome=done}": 4,
        "attn_messages_handled_total{*,outcome=retried}": 3,
        "attn_messages_handled_total{*,outcome=dead}": 2,
        "attn_messages_handled_total{*,outcome=deferred}": 1,
        "attn_retries_total{*}": 3,
        "attn_messages_rescued_total{*}": 4,
        "attn_dead_lettered_total{*,reason=poison}": 1,
        "attn_redriven_total{*}": 40,
        "attn_cycles_total{end=messages,*}": 1,
        "attn_cycles_total{end=token_lost,*}": 1,
        "attn_requests_published_total{reason=publish}": 2,
        "attn_requests_published_total{reason=more}": 1,
        "attn_requests_published_total{reason=blocked}": 1,
        "attn_requests_published_total{reason=sweep}": 2,
        "attn_requests_coalesced_total{*}": 3,
        "attn_requests_wasted_total{*}": 1,
        "attn_requests_discarded_total{*,reason=paused}": 1,
        "attn_blocked_total{*,limit=consumers}": 1,
        "attn_leases_lost_total{*}": 1,
        "attn_sweep_repairs_total{reason=work_without_request}": 2,
        "attn_loop_failures_total{reason=dispatch}": 1,
        "attn_message_wait_seconds_count{*,plan=pro}": 2,
        "attn_message_latency_seconds_count{*,plan=pro}": 1,
        "attn_handler_duration_seconds_count{*}": 1,
        "attn_cycle_duration_seconds_count{*}": 1,
    }


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        ("redrive", "attn_redriven_total"),
        ("discard", "attn_messages_discarded_total"),
        ("discard_dead", "attn_dead_letters_discarded_total"),
        ("retire", None),
    ],
)
def test_a_step_of_an_operation_is_counted_by_what_it_does(
    bus: Bus, registry: CollectorRegistry, kind: str, counted: str | None
) -> None:
    before = samples(registry)

    bus.emit(e.OperationAdvanced("marketplace", 1, kind, 25, 3, "running"))

    moved = {name: v for name, v in samples(registry).items() if v != before[name]}
    assert moved == ({f"{counted}{{group=marketplace}}": 25} if counted else {})


def test_dead_letters_of_expiry_and_of_retirement_are_told_apart(
    bus: Bus, registry: CollectorRegistry
) -> None:
    for reason in ("expired", "retired", "retired"):
        bus.emit(e.DeadLettered("marketplace", SHOP, "m", "order", reason, 0))

    seen, group = samples(registry), "group=marketplace"
    assert seen[f"attn_dead_lettered_total{{{group},reason=expired}}"] == 1
    assert seen[f"attn_dead_lettered_total{{{group},reason=retired}}"] == 2


def test_a_count_that_is_mended_asks_for_nothing(bus: Bus, registry: CollectorRegistry) -> None:
    bus.emit(e.SweepFinished({"counter_drift": 2, "request_without_work": 1, "ended_token": 1}))

    seen = samples(registry)
    assert seen["attn_requests_published_total{reason=sweep}"] == 1
    assert seen["attn_sweep_repairs_total{reason=counter_drift}"] == 2
    assert seen["attn_sweep_repairs_total{reason=request_without_work}"] == 1


def test_latency_is_the_wait_and_the_handlers_time_of_what_was_done(
    bus: Bus, registry: CollectorRegistry
) -> None:
    ended = next(event for event in ONE_OF_EACH if isinstance(event, e.HandlerEnded))

    bus.emit(ended)

    seen, pro = samples(registry), "group=marketplace,plan=pro"
    assert seen[f"attn_message_latency_seconds_sum{{{pro}}}"] == pytest.approx(0.23)
    assert seen[f"attn_message_wait_seconds_sum{{{pro}}}"] == pytest.approx(0.4)
    assert seen["attn_message_wait_seconds_bucket{group=marketplace,le=0.1,plan=pro}"] == 0
    assert seen["attn_message_wait_seconds_bucket{group=marketplace,le=0.25,plan=pro}"] == 2
    assert seen["attn_message_wait_seconds_bucket{group=marketplace,le=+Inf,plan=pro}"] == 2


def test_a_type_that_nobody_handles_is_no_call(bus: Bus, registry: CollectorRegistry) -> None:
    before = samples(registry)

    bus.emit(e.HandlerEnded("marketplace", SHOP, "order", ("m",), ("unknown",), 0.0))

    assert samples(registry) == before


def test_what_will_be_counted_is_zero_from_the_start(bus: Bus, registry: CollectorRegistry) -> None:
    before = set(samples(registry))

    for event in ONE_OF_EACH:
        bus.emit(event)

    assert set(samples(registry)) == before


def test_labels_are_from_closed_sets(bus: Bus, registry: CollectorRegistry) -> None:
    for event in ONE_OF_EACH:
        bus.emit(event)
    for end in CycleEnd:
        bus.emit(e.CycleFinished("marketplace", SHOP, "pro", end, 1, 0.1, 0, False))
    for hold in Hold:
        bus.emit(e.RequestBlocked("marketplace", SHOP, hold, UNTIL))
    bus.emit(e.DeadLettered("marketplace", SHOP, "m", "order", "SKU 4711 of Anna", 1))
    bus.emit(e.LoopFailed("one of tomorrow's", "x"))
    bus.emit(e.SweepFinished({"one of tomorrow's": 1}))

    found = [s for f in registry.collect() if f.name != "attn_build" for s in f.samples]

    names = {name for sample in found for name in sample.labels}
    assert names <= LABELS | {"le", "version"}
    text = " ".join(str(sample.labels) for sample in found)
    assert "Anna" not in text and "tomorrow" not in text
    assert SHOP.tenant not in text and SHOP.id not in text


def test_plans_and_groups_beyond_number_are_other() -> None:
    bus, registry = Bus(), CollectorRegistry()
    metrics = Metrics(bus, registry, served=PLANS, serving=Slots())
    metrics.attach()

    for n in range(2_000):
        for event in ONE_OF_EACH:
            bus.emit(changed(event, group=f"group-{n % 100}", plan=f"plan-{n}"))

    seen = samples(registry)
    assert len(seen) < 700
    assert "attn_messages_published_total{group=other}" in seen
    assert len(metrics.names.groups) == labels.MOST_GROUPS
    assert len(metrics.names.plans) == labels.MOST_PLANS


def test_what_is_detached_hears_and_shows_no_more(bus: Bus) -> None:
    registry = CollectorRegistry()
    detach = Metrics(bus, registry).attach()

    detach()

    assert not samples(registry)
    assert not any(bus.wants(kind) for kind in get_args(e.Event))


async def test_what_a_real_worker_has_done_is_what_is_counted(attn: Attn) -> None:
    registry = CollectorRegistry()
    Metrics(attn.bus, registry, served={"marketplace": ("basic",)}).attach()
    queue = AttentionQueue("marketplace")

    @queue.handler("order")
    async def order(payload: int) -> Retry | None:
        return Retry() if payload == 3 else None

    await attn.open(queue)
    for n in range(120):
        await attn.publish(Resource("a", f"s{n % 2}"), "order", n)
    await attn.drain()

    seen, group = samples(registry), "group=marketplace"
    assert seen[f"attn_messages_published_total{{{group}}}"] == 120
    assert seen[f"attn_messages_handled_total{{{group},outcome=done}}"] == 119
    assert seen[f"attn_messages_handled_total{{{group},outcome=retried}}"] == 1
    assert seen[f"attn_message_latency_seconds_count{{{group},plan=basic}}"] == 119
    assert seen[f"attn_handler_duration_seconds_count{{{group}}}"] == 120
    cycles = [v for name, v in seen.items() if name.startswith("attn_cycles_total")]
    assert sum(cycles) == len([c for c in attn.events if isinstance(c, e.CycleFinished)])
    assert seen["attn_workers"] == 0


def test_the_page_has_the_names_that_are_exported_and_no_others() -> None:
    text = (pages.ROOT / "docs" / "operations" / "metrics.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| `attn_")]

    documented = {re.findall(r"`(attn_\w+)", row)[0] for row in rows}

    assert documented == exported_names()
