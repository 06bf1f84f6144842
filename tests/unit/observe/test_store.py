"""Gauges of what is stored: how they are counted, how often, and how many series they make."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from attention_queue import AttentionQueue, Reject, app
from attention_queue.clock import SystemClock
from attention_queue.contract import ResourceState, State
from attention_queue.contract.bus import Bus
from attention_queue.contract.messages import WorkMessage, new_id
from attention_queue.contract.policy import PLANS as THREE_PLANS
from attention_queue.contract.policy import Plan, Policy
from attention_queue.contract.resource import Resource
from attention_queue.observe.metrics import Metrics
from attention_queue.observe.store import FRESH, StoreGauges
from attention_queue.ports import Group, Register, SetState
from attention_queue.testkit import Attn
from unit.observe.observing import ONE_OF_EACH, PLANS, Slots, changed, samples


class Watched:
    """Metrics and gauges of one engine in memory."""

    def __init__(self, attn: Attn) -> None:
        self.registry = CollectorRegistry()
        metrics = Metrics(attn.bus, self.registry, served=PLANS, serving=Slots())
        metrics.attach()
        self.gauges = StoreGauges(
            attn.insight, self.registry, clock=attn.clock, names=metrics.names
        )

    async def look(self) -> dict[str, float]:
        await self.gauges.refresh()
        return dict(samples(self.registry))


@pytest.fixture
def watched(attn: Attn) -> Iterator[Watched]:
    yield Watched(attn)


@pytest.fixture
async def queue(attn: Attn) -> AttentionQueue:
    queue = AttentionQueue("marketplace")

    @queue.handler("order")
    async def order(payload: str) -> Reject | None:
        return Reject("no such item") if payload == "bad" else None

    await attn.open(queue)
    return queue


async def test_a_store_that_was_not_asked_yet_is_not_up(watched: Watched) -> None:
    assert samples(watched.registry)["attn_store_up"] == 0


async def test_plans_that_have_no_work_are_zero(watched: Watched, queue: AttentionQueue) -> None:
    seen = await watched.look()

    assert seen["attn_store_up"] == 1
    assert seen["attn_backlog_messages{group=marketplace,plan=pro}"] == 0
    assert seen["attn_backlog_resources{class=noisy,group=marketplace,plan=pro}"] == 0
    assert (
        "attn_oldest_message_timestamp_seconds{class=quiet,group=marketplace,plan=pro}" not in seen
    )


async def test_work_is_counted_by_plan_and_by_who_is_noisy(
    attn: Attn, watched: Watched, queue: AttentionQueue
) -> None:
    at = attn.clock.now().timestamp()
    shop = Resource("a", "pro-shop")
    await attn.engine.change(Register(group="marketplace", resource=shop, plan="pro"), actor="t")
    await attn.publish(shop, "order", "x")
    for _ in range(51):
        await attn.publish("a/noisy", "order", "x")
    await attn.advance(timedelta(seconds=5))
    await attn.publish("a/quiet", "order", "x")
    await attn.publish("a/later", "order", "x", delay=timedelta(hours=1))

    seen = await watched.look()

    basic = "group=marketplace,plan=basic"
    assert seen[f"attn_backlog_messages{{{basic}}}"] == 53
    assert seen["attn_backlog_messages{group=marketplace,plan=pro}"] == 1
    assert seen[f"attn_backlog_resources{{class=noisy,{basic}}}"] == 1
    assert seen[f"attn_backlog_resources{{class=quiet,{basic}}}"] == 2
    assert seen[f"attn_oldest_message_timestamp_seconds{{class=noisy,{basic}}}"] == at
    assert seen[f"attn_oldest_message_timestamp_seconds{{class=quiet,{basic}}}"] == at + 5
    assert seen["attn_requests{group=marketplace,state=ready}"] == 3
    assert seen["attn_requests{group=marketplace,state=parked}"] == 1
    assert seen["attn_request_oldest_timestamp_seconds{group=marketplace}"] == at
    assert seen["attn_unattended_resources"] == 0


async def test_tokens_and_requests_of_what_is_served(
    attn: Attn, watched: Watched, queue: AttentionQueue
) -> None:
    await attn.publish("a/s", "order", "x")
    await attn.crash()

    seen = await watched.look()

    assert seen["attn_tokens_in_use{group=marketplace}"] == 1
    assert seen["attn_requests{group=marketplace,state=begun}"] == 1
    assert seen["attn_requests{group=marketplace,state=parked}"] == 0


async def test_dead_letters_and_paused_work(
    attn: Attn, watched: Watched, queue: AttentionQueue
) -> None:
    await attn.publish("a/s", "order", "bad")
    await attn.drain()
    await attn.publish("a/p", "order", "x")
    paused = SetState(
        group="marketplace", resource=Resource("a", "p"), state=ResourceState(State.PAUSED)
    )
    await attn.engine.change(paused, actor="t")
    await attn.drain()

    seen = await watched.look()

    assert seen["attn_dead_letters{group=marketplace}"] == 1
    assert seen["attn_requests{group=marketplace,state=parked}"] == 1
    assert seen["attn_backlog_messages{group=marketplace,plan=basic}"] == 1


async def test_a_count_is_shown_again_while_it_is_fresh(
    attn: Attn, watched: Watched, queue: AttentionQueue
) -> None:
    backlog = "attn_backlog_messages{group=marketplace,plan=basic}"
    await watched.look()
    await attn.publish("a/s", "order", "x")

    at_once = await watched.look()
    await attn.advance(timedelta(seconds=FRESH))
    later = await watched.look()

    assert (at_once[backlog], later[backlog]) == (0, 1)


async def test_a_store_that_does_not_answer_leaves_its_gauges_out(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    engine = app.open_engine(url)
    insight = app.open_insight(url)
    registry = CollectorRegistry()
    metrics = Metrics(Bus(), registry)
    gauges = StoreGauges(insight, registry, clock=SystemClock(), names=metrics.names)
    await engine.close()
    await insight.close()

    await gauges.refresh()

    assert samples(registry) == {"attn_store_up": 0}


async def test_whatever_people_call_their_plans_the_series_stay_under_eight_hundred(
    attn: Attn,
) -> None:
    watched = Watched(attn)
    small = Policy(max_messages=1)
    plans = tuple(Plan(f"plan-{n}", small) for n in range(9))
    for group in ("a", "b", "c", "d", "e", "f"):
        await attn.engine.open_group(Group(name=group, plans=plans, default_plan="plan-0"))
        for plan in plans:
            for n in (1, 2):
                shop = Resource(plan.name, f"s{n}")
                await attn.engine.change(
                    Register(group=group, resource=shop, plan=plan.name), actor="t"
                )
                await attn.engine.put(group, [_message(0, shop) for _ in range(n)])
            for event in ONE_OF_EACH:
                changes = {"group": group, "plan": plan.name}
                attn.bus.emit(changed(event, **changes))

    seen = await watched.look()

    assert 600 < len(seen) < 800
    assert seen["attn_backlog_messages{group=other,plan=other}"] == 3 * 9 * 3


async def test_fifty_thousand_resources_make_no_more_series_than_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    engine = app.open_engine(url)
    await engine.open_group(Group(name="marketplace", plans=THREE_PLANS, default_plan="basic"))
    insight = app.open_insight(url)
    registry = CollectorRegistry()
    metrics = Metrics(engine.bus, registry, served=PLANS, serving=Slots())
    metrics.attach()
    gauges = StoreGauges(insight, registry, clock=SystemClock(), names=metrics.names)
    await engine.put("marketplace", [_message(0)])
    await gauges.refresh()
    one = set(samples(registry))

    await engine.put("marketplace", [_message(n) for n in range(1, 50_000)])
    many = StoreGauges(insight, CollectorRegistry(), clock=SystemClock(), names=metrics.names)
    await many.refresh()
    registry.unregister(gauges)
    registry.register(many)

    seen = samples(registry)
    assert seen["attn_backlog_resources{class=quiet,group=marketplace,plan=basic}"] == 50_000
    assert set(seen) == one
    assert len(seen) < 250
    await insight.close()
    await engine.close()


def _message(n: int, shop: Resource | None = None) -> WorkMessage:
    shop = shop or Resource("a", f"s{n}")
    return WorkMessage(id=new_id(), resource=shop, type="order", payload=b"{}")
