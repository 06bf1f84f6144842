"""Gauges of what is stored: asked of the store when it is looked at, and not too often."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from attention_queue.clock import Clock
from attention_queue.contract.figures import Census
from attention_queue.errors import AttentionQueueError
from attention_queue.observe.labels import CLASSES, REQUESTS, Labels, Names
from attention_queue.ports import Insight

FRESH = 2.0  # seconds that a count is shown before the next is made
SHARE = 20  # and at least so many times as long as the count took: 5 % of one core at most


class StoreGauges:
    """Shows the last count in a registry; ``refresh`` before a scrape makes a new one if due.

    A store that does not answer leaves its gauges out, and ``attn_store_up`` says so.
    """

    def __init__(
        self, insight: Insight, registry: CollectorRegistry, *, clock: Clock, names: Names
    ) -> None:
        self._insight, self._clock, self._names = insight, clock, names
        self._census: Census | None = None
        self._good_until = float("-inf")  # monotonic
        self._turn = asyncio.Lock()
        registry.register(self)

    async def refresh(self) -> None:
        """Count again unless the last count is fresh. Raises nothing of the store's."""
        async with self._turn:
            started = self._clock.monotonic()
            if started < self._good_until:
                return
            try:
                self._census = await self._insight.census()
            except AttentionQueueError:
                self._census = None
            ended = self._clock.monotonic()
            self._good_until = ended + max(FRESH, SHARE * (ended - started))

    def collect(self) -> Iterator[Metric]:
        census = self._census
        yield GaugeMetricFamily("attn_store_up", "Whether it answered.", int(census is not None))
        families = _Families()
        if census is not None:
            families.fill(census, self._names)
        yield from families.all


class _Families:
    """The families of one scrape, filled from one count."""

    def __init__(self) -> None:
        group, plan, each = ["group"], ["group", "plan"], ["group", "plan", "class"]
        new = GaugeMetricFamily
        self.backlog = new("attn_backlog_messages", "Unfinished messages.", labels=plan)
        self.resources = new("attn_backlog_resources", "Resources with work.", labels=each)
        self.oldest = new(
            "attn_oldest_message_timestamp_seconds",
            "Publish of the oldest message that could be taken now.",
            labels=each,
        )
        self.requests = new("attn_requests", "Requests by state.", labels=["group", "state"])
        self.oldest_request = new(
            "attn_request_oldest_timestamp_seconds", "Since when the first waits.", labels=group
        )
        self.tokens = new("attn_tokens_in_use", "Tokens held.", labels=group)
        self.dead = new("attn_dead_letters", "Dead letters kept.", labels=group)
        self.unattended = new(
            "attn_unattended_resources", "Resources with work that nobody will look at: want 0."
        )
        self.counted = new("attn_store_timestamp_seconds", "When this was counted.")
        self.all: list[Metric] = list(vars(self).values())

    def fill(self, census: Census, names: Names) -> None:
        self.unattended.add_metric([], census.unattended)
        self.counted.add_metric([], census.at.timestamp())
        self._fill_groups(census, names)
        self._fill_plans(census, names)

    def _fill_groups(self, census: Census, names: Names) -> None:
        states: Counter[Labels] = Counter()
        tokens: Counter[Labels] = Counter()
        dead: Counter[Labels] = Counter()
        waiting: dict[Labels, datetime] = {}
        for each in census.groups:
            group = names.group(each.name)
            tokens[group] += each.tokens
            dead[group] += each.dead
            for state in REQUESTS:
                states[*group, state] += each.requests.get(state, 0)
            _earliest(waiting, group, each.waiting_since)
        _add(self.requests, states.items())
        _add(self.tokens, tokens.items())
        _add(self.dead, dead.items())
        _add(self.oldest_request, _seconds(waiting))

    def _fill_plans(self, census: Census, names: Names) -> None:
        backlog: Counter[Labels] = Counter({plan: 0 for plan in names.plans})
        resources: Counter[Labels] = Counter(
            {(*plan, word): 0 for plan in names.plans for word in CLASSES}
        )
        oldest: dict[Labels, datetime] = {}
        for group in census.groups:
            for each in group.plans:
                plan = names.plan(group.name, each.plan)
                labels = (*plan, CLASSES[each.noisy])
                backlog[plan] += each.backlog
                resources[labels] += each.resources
                _earliest(oldest, labels, each.oldest)
        _add(self.backlog, backlog.items())
        _add(self.resources, resources.items())
        _add(self.oldest, _seconds(oldest))


def _earliest(found: dict[Labels, datetime], labels: Labels, moment: datetime | None) -> None:
    if moment is not None:
        found[labels] = min(moment, found.get(labels, moment))


def _seconds(moments: dict[Labels, datetime]) -> Iterable[tuple[Labels, float]]:
    return [(labels, moment.timestamp()) for labels, moment in moments.items()]


def _add(family: GaugeMetricFamily, samples: Iterable[tuple[Labels, float]]) -> None:
    for labels, value in samples:
        family.add_metric(labels, value)
