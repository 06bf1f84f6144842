"""Whether the whole is healthy: one sentence from what is seen of all groups. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from attention_queue.contract.figures import LineFigures, Overview
from attention_queue.core.wording import duration, messages, plural

NOBODY_CAME = timedelta(seconds=10)  # in line this long and no token out: nobody works here
LATE = timedelta(minutes=1)  # in line this long although somebody works: too few do


class Health(Enum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class Status:
    """``because`` is one sentence; ``try_this`` what to do if it is degraded."""

    health: Health
    because: str
    try_this: tuple[str, ...] = ()


def status(seen: Overview) -> Status:
    """Whether the work that is there is being done."""
    said = _status(seen)
    dead = sum(group.dead for group in seen.groups)
    if not dead:
        return said
    letters = f"{dead:,} dead {plural(dead, 'letter')}: attn dlq ls --by error"
    return replace(said, try_this=(*said.try_this, letters))


def _status(seen: Overview) -> Status:
    if not seen.groups:
        return Status(Health.HEALTHY, "nobody has published or served anything here yet")
    tokens = sum(group.tokens for group in seen.groups)
    backlog = sum(group.backlog for group in seen.groups)
    since = min((g.waiting_since for g in seen.groups if g.waiting_since), default=None)
    if since and nobody_works(LineFigures(tokens=tokens, waiting_since=since), seen.at):
        return Status(
            Health.DEGRADED,
            f"no worker: {messages(backlog)} and a request has waited {duration(seen.at - since)}",
            ("start a worker: attn worker your_module:queue",),
        )
    if since and seen.at - since > LATE:
        return Status(
            Health.DEGRADED,
            f"behind: a request has waited {duration(seen.at - since)} in line",
            ("more slots or processes shorten the line", "attn top shows who has the most work"),
        )
    ready = sum(group.ready for group in seen.groups)
    if not backlog:
        return Status(Health.HEALTHY, "no work is left")
    if not tokens and not ready:
        return Status(Health.HEALTHY, f"{messages(backlog)}, none of them due now")
    at_work = f"{tokens} {plural(tokens, 'resource')} being served and {ready:,} in line"
    return Status(Health.HEALTHY, f"{messages(backlog)}, {at_work}")


def nobody_works(line: LineFigures, now: datetime) -> bool:
    since = line.waiting_since
    return not line.tokens and since is not None and now - since > NOBODY_CAME
