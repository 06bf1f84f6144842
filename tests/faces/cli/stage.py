"""A shop whose work failed: dead letters with an error, others that were refused, and a backlog."""

from __future__ import annotations

from datetime import timedelta

from attention_queue import AttentionQueue, Plan, Policy, Reject
from attention_queue.contract import Backoff
from faces.cli.conftest import Cli

LATE = "eu-1/store-873"


async def with_dead_letters(queue: AttentionQueue) -> None:
    """Five that failed and three that were refused of two shops, and six messages waiting."""

    @queue.handler("stock.updated")
    async def failing(payload: dict[str, int]) -> None:
        raise ValueError("the marketplace says 422: no such sku [bold]7[/bold]")

    @queue.handler("price.changed")
    async def refusing(payload: dict[str, int]) -> Reject:
        return Reject("bad_price")

    await queue.set_plan(Plan("basic", Policy(max_messages=50, retry=Backoff(attempts=1))))
    failing_work = [(LATE, "stock.updated", n, f"s-{n}") for n in range(5)]
    refused_work = [("us/store-1", "price.changed", n, f"p-{n}") for n in range(3)]
    await queue.publish_many(
        queue.message(shop, type, {"sku": n}, id=id)
        for shop, type, n, id in (*failing_work, *refused_work)
    )
    await served(queue)
    await queue.publish_many(
        queue.message(LATE, "stock.updated", {"sku": n}, id=f"w-{n}") for n in range(6)
    )


async def with_backlog(queue: AttentionQueue) -> None:
    """One shop with 150 messages, three with a few, one whose work is delayed."""
    work = [queue.message(LATE, "stock.updated", {"sku": n}) for n in range(150)]
    for shop in range(1, 4):
        work += [queue.message(f"us/store-{shop}", "price.changed", {"n": n}) for n in range(shop)]
    work.append(queue.message("us/later", "price.changed", {}, delay=timedelta(hours=1)))
    await queue.publish_many(work)


async def served(queue: AttentionQueue) -> None:
    """Until nothing more is due."""
    worker = queue.worker(slots=2)
    async with worker.attending() as keeper:
        while await worker.turn(keeper):
            await worker.idle()


def numbers(cli: Cli, *words: str) -> list[int]:
    return [row["number"] for row in cli("dlq", "ls", *words, "-o", "json").data]


def by_text(cli: Cli) -> dict[str, int]:
    """The number of each dead letter by its message's id."""
    return {row["id"]: row["number"] for row in cli("dlq", "ls", "-o", "json").data}
