"""What all commands share that change something: who acts, on what, until when, and how sure."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from cyclopts import Parameter

from attention_queue import app, config
from attention_queue.cli.exits import Exit, Leave
from attention_queue.clock import Clock, SystemClock, moment_in
from attention_queue.contract.units import read_duration, read_moment
from attention_queue.errors import ContractError
from attention_queue.ports import Engine, Insight

FEW = 100  # up to so many y is enough; for more the name is typed

Reason = Annotated[str | None, Parameter(help="Why; it is kept and shown with who and when.")]
Actor = Annotated[str | None, Parameter(help="Who does it; else the user that is logged in.")]
Expect = Annotated[int | None, Parameter(help="Only if this is still its version: see attn show.")]
Yes = Annotated[bool, Parameter(help="Do not ask.", show_default=False)]
DryRun = Annotated[bool, Parameter(help="Say what would happen; change nothing.")]
For = Annotated[str | None, Parameter(name="--for", help="For so long: 30m, 2h, 1d.")]
Until = Annotated[str | None, Parameter(help="Until then: 2026-12-01T00:00Z.")]


@dataclass(frozen=True, slots=True)
class Acting:
    """An open engine, a view of it, and who uses them."""

    engine: Engine
    insight: Insight
    actor: str
    clock: Clock


@asynccontextmanager
async def acting(url: str | None, actor: str | None) -> AsyncIterator[Acting]:
    """The configured database, which has to be there: changing something makes none."""
    settings = config.load({"url": url, "actor": actor})
    insight = app.open_insight(settings.url)
    try:
        engine = app.open_engine(settings.url)
        try:
            yield Acting(engine, insight, settings.actor, SystemClock())
        finally:
            await engine.close()
    finally:
        await insight.close()


def reason_of(reason: str | None) -> str:
    """A reason that says something, where one is asked for."""
    if reason is None or not reason.strip():
        raise Leave(Exit.USAGE, "why? add --reason TEXT: it is kept, and shown to whoever looks")
    return reason.strip()


def end_of(lasts: str | None, until: str | None) -> datetime | None:
    """When a window ends that begins now; None: somebody has to end it."""
    now = SystemClock().now()
    if lasts is not None and until is not None:
        raise Leave(Exit.USAGE, "--for and --until: want one of them")
    if lasts is not None:
        length = duration_of("--for", lasts)
        if length <= timedelta(0):
            raise Leave(Exit.USAGE, f"--for {lasts}: it would end as it begins")
        return moment_in(now, length)
    if until is None:
        return None
    end = moment_of("--until", until)
    if end <= now:
        raise Leave(Exit.USAGE, f"--until {until}: it would end before it begins, now")
    return end


def duration_of(option: str, text: str) -> timedelta:
    try:
        return read_duration(float(text) if text.replace(".", "", 1).isdigit() else text)
    except ContractError as error:
        raise Leave(Exit.USAGE, f"{option}: {error}") from None


def moment_of(option: str, text: str) -> datetime:
    try:
        return read_moment(text)
    except ContractError as error:
        raise Leave(Exit.USAGE, f"{option}: {error}") from None


def confirm(what: str, count: int, name: str, *, yes: bool) -> None:
    """Go on only if a person agrees: y for a few, ``name`` typed in full for many.

    Off a terminal nobody is asked, so ``--yes`` is needed.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Leave(
            Exit.USAGE,
            f"{what}: this is no terminal, so nobody is asked: add --yes to do it, "
            "or --dry-run to see what would happen",
        )
    if count <= FEW:
        sure = _asked(f"{what}. Sure? [y/N] ").lower() in ("y", "yes")
    else:
        sure = _asked(f"{what}. To go on type {name}: ") == name
    if not sure:
        raise Leave(Exit.FAILED, "nothing was changed")


def _asked(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()
