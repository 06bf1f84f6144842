"""The outside world, simulated: three marketplaces with limits, bad days and a book of calls.

All processes of the demo run in one folder. ``cornershop.down`` there: that marketplace is down;
``bazaar-expired.expired``: that shop's credentials are. ``book``: what was done, line by line.
"""

import asyncio
import os
import random
import time
from functools import cache
from pathlib import Path

import msgspec

from attention_queue import Resource

LIMITS = {"northbay": 6_000, "bazaar": 2_000, "cornershop": 100}  # calls a second


async def call(shop: Resource, task: str) -> int:
    """A status as of HTTP. Takes 2 to 5 ms; after a 200 the task stands in the book."""
    started = time.time()
    if (status := faults(shop)) == 200:
        await asyncio.sleep(random.uniform(0.002, 0.005))
        write("call", shop.id, task, started)
    return status


def faults(shop: Resource) -> int:
    if Path(f"{shop.id}.expired").exists():
        return 401
    if Path(f"{marketplace_of(shop)}.down").exists():
        return 503
    return 500 if marketplace_of(shop) == "cornershop" and random.random() < 0.05 else 200


def marketplace_of(shop: Resource) -> str:
    return shop.id.partition("-")[0]


def write(*entry: object) -> None:
    """Add a line to the book; it is there when this returns, whoever is killed then."""
    os.write(book(), msgspec.json.encode(entry) + b"\n")


@cache
def book() -> int:
    return os.open("book", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
