"""Prometheus metrics of one process, fed from the events and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from attention_queue.contract import CycleEnd
from attention_queue.contract.bus import Bus
from attention_queue.contract.events import (
    CycleFinished,
    DeadLettered,
    Event,
    HandlerEnded,
    LoansRescued,
    LoopFailed,
    MessagesSettled,
    OperationAdvanced,
    Published,
    RequestBlocked,
    RequestDiscarded,
    RequestWasted,
    SweepFinished,
    TokenWasLost,
    WorkerStarted,
    WorkerStopped,
)
from attention_queue.contract.operation import Kind
from attention_queue.observe import labels
from attention_queue.observe.families import Cell, Counter, Histogram
from attention_queue.observe.labels import Names

WAITS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0)  # seconds
CALLS = (0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
SLICES = (0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)

_REMEMBERED = 100  # pairs of group and plan of which the cells are looked up once


class Serving(Protocol):
    """What is asked of the worker at each scrape, because no event says when a slot is free."""

    @property
    def slots(self) -> int: ...

    @property
    def busy(self) -> int: ...
    @property
    def stuck(self) -> int: ...


class Metrics:
    """Counts what happens on a bus from ``attach`` on, and shows it in a registry.

    The number of series has a bound that no name of a tenant, resource, plan or group can move.
    Only ``HandlerEnded`` comes once per call of a handler; all else comes per slice or settling.
    """

    def __init__(
        self,
        bus: Bus,
        registry: CollectorRegistry,
        *,
        engine: str = "sqlite",
        served: Mapping[str, Iterable[str]] | None = None,
        serving: Serving | None = None,
    ) -> None:
        """``served`` are the groups and their plans, for zeros from the start."""
        self.names = Names(served or {})
        self._bus, self._registry = bus, registry
        self._engine, self._serving = engine, serving
        self._workers = 0
        self._cells: dict[tuple[str, str], tuple[Cell, Cell, Cell]] = {}
        self._make_counters()
        self._make_histograms()
        self._start()

    def attach(self) -> Callable[[], None]:
        """Hear and show; the answer ends both."""
        ends = [self._bus.on(kind, sink) for kind, sink in self._sinks().items()]
        self._registry.register(self)

        def detach() -> None:
            self._registry.unregister(self)
            for end in ends:
                end()

        return detach

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, on any thread."""
        for counter in self._counters:
            yield counter.family()
        for histogram in self._histograms:
            yield histogram.family()
        yield from self._gauges()

    def _make_counters(self) -> None:
        group = ("group",)
        new = Counter
        self.published = new("attn_messages_published", "Messages stored.", group)
        self.handled = new("attn_messages_handled", "Messages settled.", ("group", "outcome"))
        self.retries = new("attn_retries", "Failed attempts that come again.", group)
        self.rescued = new(
            "attn_messages_rescued", "Messages taken back from a holder that died.", group
        )
        self.dead = new("attn_dead_lettered", "New dead letters.", ("group", "reason"))
        self.redriven = new("attn_redriven", "Dead letters sent back to work.", group)
        self.deleted = new("attn_messages_discarded", "Messages deleted by a person.", group)
        self.forgotten = new("attn_dead_letters_discarded", "Dead letters deleted.", group)
        self.cycles = new("attn_cycles", "Cycles that ended.", ("group", "end"))
        self.asked = new("attn_requests_published", "Requests asked for.", ("reason",))
        self.coalesced = new("attn_requests_coalesced", "Requests that were there already.", group)
        self.wasted = new("attn_requests_wasted", "Requests that found no work.", group)
        self.discarded = new(
            "attn_requests_discarded", "Requests of resources not active.", ("group", "reason")
        )
        self.blocked = new("attn_blocked", "Requests parked by a limit.", ("group", "limit"))
        self.lost = new("attn_leases_lost", "Tokens whose lease ended under us.", group)
        self.repairs = new("attn_sweep_repairs", "What reconciliation had to mend.", ("reason",))
        self.failures = new("attn_loop_failures", "Errors in loops of ours.", ("reason",))
        self._counters: Sequence[Counter] = [
            each for each in vars(self).values() if isinstance(each, Counter)
        ]

    def _make_histograms(self) -> None:
        plan = ("group", "plan")
        self.wait = Histogram(
            "attn_message_wait_seconds", "Publish to start of the handler.", plan, bounds=WAITS
        )
        self.latency = Histogram(
            "attn_message_latency_seconds", "First publish to success.", plan, bounds=WAITS
        )
        self.call = Histogram(
            "attn_handler_duration_seconds", "Calls of handlers.", ("group",), bounds=CALLS
        )
        self.slice = Histogram(
            "attn_cycle_duration_seconds", "Begin to finish.", ("group",), bounds=SLICES
        )
        self._histograms = (self.wait, self.latency, self.call, self.slice)

    def _start(self) -> None:
        """Zeros for every combination that can be told now."""
        values = {
            self.handled: labels.OUTCOMES,
            self.dead: labels.DEAD,
            self.cycles: labels.ENDS,
            self.discarded: labels.NOT_SERVED,
            self.blocked: tuple(labels.LIMITS.values()),
        }
        for counter in self._counters:
            if counter in values:
                words = values[counter]
                counter.start((*group, word) for group in self.names.groups for word in words)
            elif counter.labels == ("group",):
                counter.start(self.names.groups)
        for counter, known in (
            (self.asked, labels.ASKED),
            (self.repairs, labels.REPAIRS),
            (self.failures, labels.LOOPS),
        ):
            counter.start((word,) for word in known)
        for histogram in self._histograms:
            by_plan = "plan" in histogram.labels
            for row in self.names.plans if by_plan else self.names.groups:
                histogram.cell(row)

    def _sinks(self) -> Mapping[type[Event], Callable[[Any], None]]:
        return {
            Published: self._on_published,
            HandlerEnded: self._on_handler_ended,
            MessagesSettled: self._on_settled,
            DeadLettered: self._on_dead,
            OperationAdvanced: self._on_operation,
            CycleFinished: self._on_cycle,
            TokenWasLost: self._on_lost,
            LoansRescued: self._on_rescued,
            RequestDiscarded: self._on_discarded,
            RequestBlocked: self._on_blocked,
            RequestWasted: self._on_wasted,
            SweepFinished: self._on_sweep,
            LoopFailed: self._on_failure,
            WorkerStarted: self._on_started,
            WorkerStopped: self._on_stopped,
        }

    def _on_published(self, event: Published) -> None:
        group = self.names.group(event.group)
        self.published.add(group, event.stored)
        self.asked.add(("publish",), event.requests)
        self.coalesced.add(group, event.coalesced)

    def _on_handler_ended(self, event: HandlerEnded) -> None:
        """The one sink that runs for every message, so it looks labels up once."""
        outcomes = event.outcomes
        if outcomes[0] == "unknown":  # there is no handler, so none has run
            return
        waited, duration = event.waited, event.duration
        call, wait, latency = self._cells_of(event.group, event.plan)
        call.observe(duration)
        wait.observe(waited, len(outcomes))
        if done := outcomes.count("done"):
            latency.observe(waited + duration, done)

    def _cells_of(self, group: str, plan: str) -> tuple[Cell, Cell, Cell]:
        cells = self._cells.get((group, plan))
        if cells is None:
            shown = self.names.plan(group, plan)
            cells = self.call.cell(shown[:1]), self.wait.cell(shown), self.latency.cell(shown)
            if len(self._cells) < _REMEMBERED:
                self._cells[group, plan] = cells
        return cells

    def _on_settled(self, event: MessagesSettled) -> None:
        group = self.names.group(event.group)
        self.handled.add((*group, "done"), event.done)
        if event.retried:
            self.handled.add((*group, "retried"), event.retried)
            self.retries.add(group, event.retried)
        if event.dead:
            self.handled.add((*group, "dead"), event.dead)
        if event.deferred:
            self.handled.add((*group, "deferred"), event.deferred)

    def _on_dead(self, event: DeadLettered) -> None:
        reason = labels.one_of(labels.DEAD, event.reason, "rejected")  # a handler's own words
        self.dead.add((*self.names.group(event.group), reason))

    def _on_operation(self, event: OperationAdvanced) -> None:
        """A retirement has no count of its own: what it takes out are dead letters, ``retired``."""
        counters = {
            Kind.REDRIVE.value: self.redriven,
            Kind.DISCARD.value: self.deleted,
            Kind.DISCARD_DEAD.value: self.forgotten,
        }
        if counter := counters.get(event.kind):
            counter.add(self.names.group(event.group), event.done)

    def _on_cycle(self, event: CycleFinished) -> None:
        group = self.names.group(event.group)
        self.cycles.add((*group, event.end.value))
        self.slice.cell(group).observe(event.duration)
        if event.republished:
            self.asked.add(("more",))

    def _on_lost(self, event: TokenWasLost) -> None:
        group = self.names.group(event.group)
        self.lost.add(group)
        self.cycles.add((*group, CycleEnd.TOKEN_LOST.value))  # it has no finish

    def _on_rescued(self, event: LoansRescued) -> None:
        self.rescued.add(self.names.group(event.group), event.messages)

    def _on_discarded(self, event: RequestDiscarded) -> None:
        self.discarded.add((*self.names.group(event.group), event.state.value))

    def _on_blocked(self, event: RequestBlocked) -> None:
        limit = labels.LIMITS.get(event.why, labels.OTHER)
        self.blocked.add((*self.names.group(event.group), limit))
        self.asked.add(("blocked",))

    def _on_wasted(self, event: RequestWasted) -> None:
        self.wasted.add(self.names.group(event.group))

    def _on_sweep(self, event: SweepFinished) -> None:
        for reason, count in event.repairs.items():
            self.repairs.add((labels.one_of(labels.REPAIRS, reason),), count)
            if reason in labels.ASKS:
                self.asked.add(("sweep",), count)

    def _on_failure(self, event: LoopFailed) -> None:
        self.failures.add((labels.one_of(labels.LOOPS, event.loop),))

    def _on_started(self, _: WorkerStarted) -> None:
        self._workers += 1

    def _on_stopped(self, _: WorkerStopped) -> None:
        self._workers -= 1

    def _gauges(self) -> Iterator[Metric]:
        info = {"version": version("attention-queue"), "engine": self._engine}
        build = GaugeMetricFamily("attn_build_info", "Always 1.", labels=list(info))
        build.add_metric(list(info.values()), 1)
        yield build
        yield GaugeMetricFamily("attn_workers", "Workers in this process.", self._workers)
        if (serving := self._serving) is None:
            return
        slots = GaugeMetricFamily("attn_slots", "Slots by what they do.", labels=["state"])
        busy = serving.busy
        for state, count in zip(labels.SLOTS, (busy, serving.slots - busy), strict=True):
            slots.add_metric([state], count)
        yield slots
        yield GaugeMetricFamily(
            "attn_stuck_handlers", "Handlers let go that still run.", serving.stuck
        )
