"""``attn demo``: the same load through the attention queue, then through one shared queue."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from attention_queue import ResourceState, State
from attention_queue.contract.events import Published
from markethub.api import Publish, serving
from markethub.claims import Tally
from markethub.hub import onboard, queue
from markethub.integrator import EXPIRED, MOVING, NOISY, Integrator
from markethub.screen import Screen, report
from markethub.shared_queue import SharedQueue

PATIENCE = 50  # seconds; a run that takes longer is ended, and its claims fail


class Run:
    """One load through one queue; every process of it runs in ``folder``."""

    def __init__(self, folder: Path, integrator: Integrator, screen: Screen) -> None:
        folder.mkdir()
        self.folder, self.integrator, self.screen = folder, integrator, screen
        self.tally, self.workers = Tally(folder / "book", integrator), list[Process]()
        self._ends = time.monotonic() + PATIENCE

    async def start(self, module: str, *arguments: str) -> None:
        """A worker process, and wait until it serves."""
        started = self.tally.counts["workers started"]
        program = (sys.executable, "-m", f"markethub.{module}", *arguments)
        execute = asyncio.create_subprocess_exec
        self.workers.append(
            await execute(*program, cwd=self.folder, stdin=PIPE, start_new_session=True)
        )
        await self.until(lambda: self.tally.counts["workers started"] > started)

    @asynccontextmanager
    async def sending(self, publish: Publish) -> AsyncIterator[None]:
        """The API and its integrator; at the end the workers drain and the book is read out."""
        async with serving(publish) as port, asyncio.TaskGroup() as group:
            group.create_task(self.integrator.run(port))
            yield
        for worker in self.workers:
            await worker.communicate(b"")  # closes its stdin
        self.tally.read()
        self.tally.close()
        self.screen.end()

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened() and time.monotonic() < self._ends:
            await asyncio.sleep(0.2)
            self.tally.read()
            self.screen.show(self.tally)

    async def until_uploaded(self, part: float) -> None:
        tasks = part * self.integrator.shops[NOISY].tasks
        await self.until(lambda: len(self.tally.waits[NOISY]) >= tasks)

    async def until_done(self, but: str = "") -> None:
        await self.until(lambda: self.integrator.finished)
        shops, undone = self.integrator.shops, self.tally.undone
        await self.until(lambda: all(shops[id.partition(":")[0]].kind == but for id in undone()))


async def attention(run: Run, db: Path) -> None:
    def count(event: Published) -> None:
        run.tally.counts["requests published"] += event.requests
        run.tally.counts["requests coalesced"] += event.coalesced

    queue.url = f"sqlite:///{db}"
    stop_counting = queue.bus.on(Published, count)
    async with queue:
        shops = run.integrator.shops.values()
        await asyncio.gather(*(onboard(f"acme/{shop.id}", shop.plan) for shop in shops))
        moves = ResourceState(State.MAINTENANCE, "moves to another server", "demo")
        await queue.set_state(f"acme/{MOVING}", moves)
        for _ in range(2):
            await run.start("worker", queue.url, "8")
        async with run.sending(queue.publish_many):
            await story(run)
    stop_counting()


async def story(run: Run) -> None:
    """What goes wrong, and right again, while the noisy shop's upload goes on."""
    down, expired = run.folder / "cornershop.down", run.folder / f"{EXPIRED}.expired"
    expired.touch()
    await run.until_uploaded(0.3)
    down.touch()
    run.screen.news("cornershop is down: its shops are held, and one of them tries")
    await run.until_uploaded(0.5)
    victim = run.workers.pop(0)
    victim.kill()
    run.screen.news("a worker was killed (SIGKILL), and another one starts")
    await victim.wait()
    await run.start("worker", str(queue.url), "8")
    await run.until_uploaded(0.7)
    down.unlink()
    run.screen.news("cornershop is back")
    await run.until_done(but="held")
    expired.unlink()
    for shop in (EXPIRED, MOVING):
        await queue.resume(f"acme/{shop}")
    run.screen.news("the maintenance is over, the credentials are renewed")
    await run.until_done()


async def shared(run: Run, db: Path) -> None:
    """Spared all that goes wrong above: the kill, the outage, the credentials."""
    other = SharedQueue(str(db))
    await run.start("shared_queue", str(db), "16")
    async with run.sending(other.publish):
        await run.until_done()
    other.close()


def main(*, db: Path | None = None, quick: bool = False, json: bool = False) -> int:
    """Run it all; 0 only if every claim held. ``db``: where to keep the database."""
    console = Console(stderr=json)
    size = (300, 10_000, 4) if quick else (1_000, 20_000, 12)
    with TemporaryDirectory(prefix="markethub-") as temporary:
        folder = Path(temporary)
        screen = Screen(console, "Attention queue on SQLite: 2 workers with 8 slots each")
        ours = Run(folder / "ours", Integrator(*size), screen)
        asyncio.run(attention(ours, (db or folder / "ours.db").resolve()))
        screen = Screen(console, "The same load in one shared queue: 1 worker with 16 slots")
        theirs = Run(folder / "theirs", Integrator(*size), screen)
        asyncio.run(shared(theirs, folder / "theirs.db"))
    return report(ours.tally, theirs.tally, console, json=json)
