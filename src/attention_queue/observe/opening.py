"""Everything that watches one worker, opened together and closed together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager

from prometheus_client import CollectorRegistry

from attention_queue.observe.feed import Feed
from attention_queue.observe.health import Health
from attention_queue.observe.metrics import Metrics, Serving
from attention_queue.observe.server import ObserveServer
from attention_queue.observe.store import StoreGauges
from attention_queue.ports import Engine, Insight


@asynccontextmanager
async def metrics_port(
    engine: Engine,
    serving: Serving,
    *,
    port: int,
    served: Mapping[str, Iterable[str]],
    insight: Insight | None,
) -> AsyncIterator[ObserveServer]:
    """Serve the metrics of what happens on the engine's bus; enter it before the worker runs.

    Without ``insight`` there are no gauges of the store.

    Raises:
        InvalidConfig: The port is taken.
    """
    registry = CollectorRegistry(auto_describe=True)
    with ExitStack() as stack:
        metrics = Metrics(engine.bus, registry, engine=engine.name, served=served, serving=serving)
        stack.callback(metrics.attach())
        health = Health(engine.bus, engine.clock, serving)
        stack.callback(health.close)
        gauges = None
        if insight is not None:
            gauges = StoreGauges(insight, registry, clock=engine.clock, names=metrics.names)
        refresh = gauges.refresh if gauges else None
        feed = Feed(engine.bus, engine.clock)
        stack.callback(feed.close)
        server = ObserveServer(registry, health, port=port, refresh=refresh, feed=feed)
        async with server:
            yield server
