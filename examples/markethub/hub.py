"""The application: its tasks, its plans, its one queue, and what is done with each task."""

from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct

from attention_queue import (
    AttentionQueue,
    Context,
    Order,
    Override,
    Plan,
    Policy,
    Rate,
    Resource,
    Retry,
    State,
    Stop,
)
from markethub.outside import LIMITS, call, marketplace_of

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class OrderPlaced(Struct, tag_field="type", tag="order.placed"):
    id: Text
    lines: Count


class StockUpdated(Struct, tag_field="type", tag="stock.updated"):
    id: Text
    sku: Text
    quantity: Count


class PriceChanged(Struct, tag_field="type", tag="price.changed"):
    id: Text
    sku: Text
    cents: Count


Task = OrderPlaced | StockUpdated | PriceChanged
LEASE = timedelta(seconds=3)  # short, so that a killed worker is not waited for long
PLANS = (
    Plan("basic", Policy(max_consumers=1, max_messages=50, lease=LEASE, order=Order.STRICT)),
    Plan("pro", Policy(max_consumers=3, max_messages=200, lease=LEASE)),
    Plan("enterprise", Policy(max_consumers=10, max_messages=1000, lease=LEASE)),
)
queue = AttentionQueue("marketplace", type="shop", plans=PLANS)


async def onboard(shop: str, plan: str) -> None:
    """A shop's plan, and its marketplace's limit: all shops there draw from one bucket."""
    name = marketplace_of(Resource.parse(shop))
    limit = Override(changes={"rates": {"routing.marketplace": Rate(LIMITS[name])}}, reason=name)
    await queue.register(shop, plan=plan, routing={"marketplace": name}, overrides=[limit])


@queue.handler("order.placed")
async def order_placed(task: OrderPlaced, context: Context) -> Retry | Stop | None:
    return outcome(await call(context.resource, task.id))


@queue.handler("stock.updated")
async def stock_updated(task: StockUpdated, context: Context) -> Retry | Stop | None:
    return outcome(await call(context.resource, task.id))


@queue.handler("price.changed")
async def price_changed(task: PriceChanged, context: Context) -> Retry | Stop | None:
    return outcome(await call(context.resource, task.id))


def outcome(status: int) -> Retry | Stop | None:
    """Whose fault it is decides who has to wait."""
    match status:
        case 401:  # the shop's: it waits until its credentials are renewed
            return Stop("credentials expired", state=State.CREDENTIALS_ERROR)
        case 503:  # the marketplace's: all its shops wait, and one of them tries
            return Stop("it is down", scope="routing.marketplace", after=timedelta(seconds=0.5))
        case 500:  # nobody's: the task comes again
            return Retry(after=timedelta(milliseconds=200))
    return None
