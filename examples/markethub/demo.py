"""``attn demo``: the same load through the attention queue, then through one shared queue."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.live import Live

from attention_queue import ResourceState, State
from attention_queue.contract.events import Published
from markethub.api import Publish, serving
from markethub.claims import Tally, report, table
from markethub.hub import onboard, queue
from markethub.integrator import EXPIRED, MOVING, NOISY, Integrator
from markethub.shared_queue import SharedQueue


class Run:
    """One load through one queue; every process of it runs in ``folder``."""

    def __init__(self, title: str, folder: Path, integrator: Integrator, console: Console) -> None:
        console.print(f"[bold]{title}[/]")
        folder.mkdir()
        self.folder, self.integrator = folder, integrator
        self.tally, self.workers = Tally(folder / "book", integrator), list[Process]()
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._begin = time.monotonic()

    def news(self, text: str) -> None:
        self._live.console.print(f"[dim]{time.monotonic() - self._begin:5.1f} s[/]  {text}")

    async def start(self, module: str, *arguments: str) -> None:
        """A worker process, and wait until it serves."""
        started = self.tally.counts["workers started"]
        program = (sys.executable, "-m", f"markethub.{module}", *arguments)
        worker = await asyncio.create_subprocess_exec(
            *program, cwd=self.folder, stdin=PIPE, start_new_session=True
        )
        self.workers.append(worker)
        await self.until(lambda: self.tally.counts["workers started"] > started)

    async def play(self, publish: Publish, story: Coroutine[None, None, None]) -> None:
        """The API and its integrator, for as long as the story goes on."""
        async with serving(publish) as port, asyncio.TaskGroup() as group:
            group.create_task(self.integrator.run(port))
            await story

    async def __aenter__(self) -> None:
        self._live.start()

    async def __aexit__(self, *exc: object) -> None:
        """However it ends, the workers drain, and then the book is read out."""
        for worker in self.workers:
            await worker.communicate(b"")  # closes its stdin
        self.tally.read()
        self.tally.file.close()
        self._live.stop()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Or until the run has taken 50 s: then its claims will fail."""
        while not happened() and time.monotonic() < self._begin + 50:
            await asyncio.sleep(0.2)
            self.tally.read()
            if self._live.console.is_terminal:
                self._live.update(table(self.tally), refresh=True)

    async def until_uploaded(self, part: float) -> None:
        tasks = part * self.integrator.shops[NOISY].tasks
        await self.until(lambda: len(self.tally.waits[NOISY]) >= tasks)

    async def until_done(self, but: str = "") -> None:
        shops = [shop for shop in self.integrator.shops.values() if shop.kind != but]
        await self.until(lambda: all(len(self.tally.waits[s.id]) == s.tasks for s in shops))


async def attention(run: Run, db: Path) -> None:
    add = run.tally.counts.update
    queue.bus.on(Published, lambda e: add({"requests published": e.requests}))
    queue.bus.on(Published, lambda e: add({"requests coalesced": e.coalesced}))
    queue.url = f"sqlite:///{db}"
    async with queue, run:
        shops = run.integrator.shops.values()
        await asyncio.gather(*(onboard(f"acme/{shop.id}", shop.plan) for shop in shops))
        moves = ResourceState(State.MAINTENANCE, "moves to another server", "demo")
        await queue.set_state(f"acme/{MOVING}", moves)
        for _ in range(2):
            await run.start("worker", queue.url, "8")
        await run.play(queue.publish_many, story(run))


async def story(run: Run) -> None:
    """What goes wrong, and right again, while the noisy shop's upload goes on."""
    down, expired = run.folder / "cornershop.down", run.folder / f"{EXPIRED}.expired"
    expired.touch()
    run.news("a shop is in maintenance, the credentials of another have expired")
    await run.until_uploaded(0.3)
    down.touch()
    run.news("cornershop is down: its shops are held, and one of them tries")
    await run.until_uploaded(0.5)
    victim = run.workers.pop(0)
    victim.kill()
    run.news("a worker was killed (SIGKILL), and another one starts")
    await victim.wait()
    await run.start("worker", str(queue.url), "8")
    await run.until_uploaded(0.7)
    down.unlink()
    run.news("cornershop is back")
    await run.until_done(but="held")
    expired.unlink()
    for shop in (EXPIRED, MOVING):
        await queue.resume(f"acme/{shop}")
    run.news("the maintenance is over, the credentials are renewed")
    await run.until_done()


async def shared(run: Run, db: Path) -> None:
    """Spared all that goes wrong above: the kill, the outage, the credentials."""
    other = SharedQueue(str(db))
    async with run:
        await run.start("shared_queue", str(db), "16")
        await run.play(other.publish, run.until_done())
    other.db.close()


def main(*, db: Path | None = None, quick: bool = False, json: bool = False) -> int:
    """Run it all; 0 only if every claim held. ``db``: where to keep the database."""
    console = Console(stderr=json)
    if db and db.exists():
        console.print(f"{db} is there already: give the path of a new database")
        return 2
    size = (400, 16_000, 7) if quick else (1_000, 20_000, 15)
    with TemporaryDirectory(prefix="markethub-") as temporary:
        here = Path(temporary)
        title = "Attention queue on SQLite: 2 workers with 8 slots each"
        ours = Run(title, here / "ours", Integrator(*size), console)
        asyncio.run(attention(ours, (db or here / "ours.db").resolve()))
        title = "The same load in one shared queue: 1 worker with 16 slots"
        theirs = Run(title, here / "theirs", Integrator(*size), console)
        asyncio.run(shared(theirs, here / "theirs.db"))
    return report(ours.tally, theirs.tally, console, json=json)
