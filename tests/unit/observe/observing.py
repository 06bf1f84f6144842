"""What the tests of metrics and logs share: one event of every kind, and a scrape read back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
from prometheus_client import CollectorRegistry

from attention_queue import app
from attention_queue.clock import ManualClock
from attention_queue.contract import CycleEnd, Failure, Hold, Resource, State
from attention_queue.contract import events as e
from attention_queue.contract.bus import Bus
from attention_queue.observe.metrics import Metrics
from attention_queue.observe.store import StoreGauges

SHOP = Resource("seller-group-a", "store-873")
UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
PLANS = {"marketplace": ("basic", "pro", "enterprise")}

ONE_OF_EACH: tuple[e.Event, ...] = (
    e.Published("marketplace", stored=5, duplicates=1, requests=2, coalesced=3),
    e.CycleStarted("marketplace", SHOP, "pro", slot=0, fence=7, loaned=4, waited=0.1),
    e.RequestDiscarded("marketplace", SHOP, State.PAUSED),
    e.RequestBlocked("marketplace", SHOP, Hold.BUSY, UNTIL),
    e.RequestWasted("marketplace", SHOP),
    e.HandlerStarted("marketplace", SHOP, "order", ("m1",), 1, 0.2),
    e.HandlerEnded(
        "marketplace", SHOP, "order", ("m1", "m2"), ("done", "retry"), 0.03,
        Failure("Timeout", "no answer"), "pro", 0.2,
    ),
    e.HandlerStuck("marketplace", SHOP, "order"),
    e.MessagesTaken("marketplace", SHOP, 10),
    e.MessagesSettled("marketplace", SHOP, done=4, retried=3, dead=2, deferred=1),
    e.DeadLettered("marketplace", SHOP, "m3", "order", "poison", 3),
    e.CycleFinished("marketplace", SHOP, "pro", CycleEnd.MESSAGES, 10, 0.4, 6, True),
    e.TokensRenewed(3),
    e.TokenWasLost("marketplace", SHOP, 7),
    e.LoansRescued("marketplace", SHOP, 4, 1),
    e.StateChanged("marketplace", SHOP, State.PAUSED, "holiday", "anna"),
    e.PlanChanged("marketplace", "pro", SHOP),
    e.ScopeStopped("marketplace", "routing.marketplace=amazon", "503", UNTIL),
    e.OperationStarted("marketplace", 7, "redrive", "anna", "feed mended"),
    e.OperationAdvanced("marketplace", 7, "redrive", 40, 2, "running"),
    e.SweepFinished({"work_without_request": 2}),
    e.LoopFailed("dispatch", "EngineUnavailable: gone"),
    e.WorkerStarted("worker-1", 16),
    e.WorkerDraining("worker-1"),
    e.WorkerStopped("worker-1", 0),
)  # fmt: skip


def changed(event: e.Event, **changes: str) -> e.Event:
    """The same event with other values for those of the fields that it has."""
    there = {name: value for name, value in changes.items() if hasattr(event, name)}
    if isinstance(event, e.HandlerEnded):
        return msgspec.structs.replace(event, **there)
    return replace(event, **there)


def samples(registry: CollectorRegistry) -> Mapping[str, float]:
    """Every series by its written name, labels in order: ``attn_x{a=b}``."""
    found: dict[str, float] = {}
    for family in registry.collect():
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            name = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert name not in found, f"{name} is there twice"
            found[name] = sample.value
    return found


def exported_names() -> set[str]:
    """Of every family that a worker shows."""
    clock, bus, registry = ManualClock(), Bus(), CollectorRegistry()
    engine, insight = app.open_in_memory(clock, bus)
    metrics = Metrics(bus, registry, serving=Slots())
    metrics.attach()
    StoreGauges(insight, registry, clock=clock, names=metrics.names)
    asyncio.run(engine.close())
    asyncio.run(insight.close())
    return {
        family.name + ("_total" if family.type == "counter" else "")
        for family in registry.collect()
    }


class Slots:
    """What a worker says of itself."""

    slots, busy, stuck = 16, 3, 0
