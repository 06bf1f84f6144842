"""The integrator: who sends what, by plain HTTP calls. It knows of no queue."""

import asyncio
import random
import time
from typing import NamedTuple

import msgspec

from markethub.hub import OrderPlaced, PriceChanged, StockUpdated, Task

NOISY, MOVING, EXPIRED = "northbay-noisy", "bazaar-moving", "bazaar-expired"
CONNECTIONS = 8
Call = tuple[float, str, list[Task]]  # seconds after the start, shop, what it sends


class Shop(NamedTuple):
    id: str
    kind: str  # noisy | quiet | failing | held
    plan: str = "basic"
    tasks: int = 4
    at_once: bool = False  # in one call at the start; else one by one, all through the run

    def calls(self, seconds: float) -> list[Call]:
        tasks = [make_task(f"{self.id}:{n:05}", n) for n in range(self.tasks)]
        if self.at_once:
            return [(0, self.id, tasks)]
        chance = random.Random(self.id)
        moments = sorted(chance.uniform(0, seconds) for _ in tasks)
        return [(at, self.id, [task]) for at, task in zip(moments, tasks, strict=True)]


def make_task(id: str, n: int) -> Task:
    return (PriceChanged(id, "A-1", n), OrderPlaced(id, n), StockUpdated(id, "A-1", n))[n % 3]


def make_shops(quiet: int, upload: int) -> dict[str, Shop]:
    """By id: the special ones, and as many quiet ones as that."""
    shops = [Shop(NOISY, "noisy", "enterprise", upload, at_once=True)]
    shops += [Shop("cornershop-sale", "failing", "pro", upload // 40, at_once=True)]
    shops += [Shop(f"cornershop-{n}", "failing") for n in range(10)]
    shops += [Shop(MOVING, "held", "pro", 20), Shop(EXPIRED, "held", "basic", 20)]
    for n in range(quiet):
        plan = "enterprise" if n % 100 == 0 else "pro" if n % 10 == 0 else "basic"
        shops.append(Shop(f"{'bazaar' if n % 3 else 'northbay'}-{n}", "quiet", plan))
    return {shop.id: shop for shop in shops}


class Integrator:
    """``sent``: when the call of a task was made. ``accepted``: tasks that were answered 202."""

    def __init__(self, quiet: int, upload: int, seconds: float) -> None:
        self.shops, self._seconds = make_shops(quiet, upload), seconds
        self.sent: dict[str, float] = {}
        self.accepted: set[str] = set()
        self.finished = False

    async def run(self, port: int) -> None:
        """The calls of a shop go one after the other, over one of a few connections."""
        lines: list[list[Call]] = [[] for _ in range(CONNECTIONS)]
        for n, shop in enumerate(self.shops.values()):
            lines[n % CONNECTIONS] += shop.calls(self._seconds)
        async with asyncio.TaskGroup() as group:
            for line in lines:
                group.create_task(self._send(sorted(line, key=lambda call: call[0]), port))
        self.finished = True

    async def _send(self, line: list[Call], port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        begin = time.time()
        for at, shop, tasks in line:
            await asyncio.sleep(max(begin + at - time.time(), 0))
            body = msgspec.json.encode(tasks)
            self.sent |= dict.fromkeys((task.id for task in tasks), time.time())
            head = f"POST /shops/acme/{shop}/tasks HTTP/1.1\r\nHost: markethub\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(answer.split(b"content-length: ")[1].split()[0]))
            if answer.startswith(b"http/1.1 202 "):
                self.accepted |= {task.id for task in tasks}
        writer.close()
        await writer.wait_closed()
