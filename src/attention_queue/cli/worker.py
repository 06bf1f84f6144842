"""``attn worker``: one process that serves, or a parent of several that do."""

from __future__ import annotations

import sys
from typing import Annotated

import uvloop
from cyclopts import Parameter

from attention_queue import app, config
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.fleet import Fleet
from attention_queue.cli.leaving import Leaving
from attention_queue.cli.observed import Level, Shown, observed
from attention_queue.cli.output import Url, talk
from attention_queue.config import Config
from attention_queue.contract.events import WorkerStopped
from attention_queue.contract.units import write_duration
from attention_queue.errors import InvalidApp
from attention_queue.ports import Engine
from attention_queue.queue import AttentionQueue

# The writer is a thread beside the handlers. With Python's 5 ms it waits that long for the
# interpreter whenever a handler computes, and every commit with it.
_SWITCH_INTERVAL = 0.0005  # seconds

Apps = Annotated[str, Parameter(help="package.module:queue; several share the slots.")]
Slots = Annotated[int | None, Parameter(help="Resources served at once by one process (16).")]
Processes = Annotated[int | None, Parameter(help="Processes, each with its own slots (1).")]
Grace = Annotated[str | None, Parameter(help="How long handlers may finish at the end (25s).")]
Log = Annotated[Level, Parameter(help="The least that is logged; info: a line per cycle.")]
Port = Annotated[int | None, Parameter(help="Metrics and health on 127.0.0.1, at this port.")]
Watched = Annotated[bool, Parameter(name="--parent-on-stdin", show=False)]


def worker(
    *app: Apps,
    slots: Slots = None,
    processes: Processes = None,
    grace: Grace = None,
    url: Url = None,
    log: Log = "warning",
    metrics_port: Port = None,
    parent_on_stdin: Watched = False,
) -> int:
    """Serve the queues of an application until told to leave.

    SIGTERM or Ctrl-C drains: nothing new begins, running handlers may finish within the grace. A
    second one leaves at once; what was not finished is done again by others.
    """
    if not app:
        raise Leave(Exit.USAGE, "which application? attn worker package.module:queue")
    flags = {"url": url, "slots": slots, "processes": processes, "grace": grace}
    settings, shown = config.load(flags), Shown(log, metrics_port)
    if settings.processes > 1:
        command = _child(app, settings, url)
        return Fleet(lambda n: [*command, *shown.flags(n)], settings.processes).run()
    queues = _load(app)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    return uvloop.run(_serve(queues, settings, url, shown, parent_on_stdin))


def _child(targets: tuple[str, ...], settings: Config, url: str | None) -> list[str]:
    command = [sys.executable, "-m", "attention_queue", "worker", *targets, "--processes", "1"]
    command += ["--slots", str(settings.slots), "--grace", write_duration(settings.grace)]
    return [*command, *(["--url", url] if url else []), "--parent-on-stdin"]


def _load(targets: tuple[str, ...]) -> list[AttentionQueue]:
    queues = [app.load_queue(target, AttentionQueue) for target in targets]
    names = [queue.name for queue in queues]
    for target, name in zip(targets, names, strict=True):
        if names.count(name) > 1:
            raise InvalidApp(target, f"group {name!r} is there twice")
    return queues


async def _serve(
    queues: list[AttentionQueue],
    settings: Config,
    url: str | None,
    shown: Shown,
    watched: bool,
) -> int:
    first, *others = queues
    address = url or first.url or settings.url
    engine = app.open_engine(address, first.clock, first.bus)
    abandoned = 0

    def stopped(event: WorkerStopped) -> None:
        nonlocal abandoned
        abandoned = event.abandoned

    first.bus.on(WorkerStopped, stopped)
    try:
        for queue in queues:
            await queue.open(engine)
        served = first.worker(*others, slots=settings.slots, grace=settings.grace)
        with Leaving(served.drain, grace=settings.grace, watched=watched):
            async with observed(served, engine, address, queues=queues, shown=shown):
                names = ", ".join(queue.name for queue in queues)
                talk(f"serving {names}: {settings.slots} slots on {address}")
                await served.run()
    finally:
        await _close(queues, engine)
    return _ended(abandoned, settings)


def _ended(abandoned: int, settings: Config) -> int:
    if not abandoned:
        talk("drained")
        return Exit.OK
    grace = write_duration(settings.grace)
    talk(f"{abandoned} handlers were not done after {grace}; their messages come again")
    return Leaving.at_once(Exit.FAILED)


async def _close(queues: list[AttentionQueue], engine: Engine) -> None:
    for queue in queues:
        await queue.close()
    await engine.close()
