"""Figures as tables and cards for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from attention_queue.cli.output import brief, columns, grid
from attention_queue.cli.values import policy_facts, written
from attention_queue.contract import State
from attention_queue.contract.codec import override_to_table
from attention_queue.contract.figures import (
    AHEAD_COUNTED,
    DEAD_COUNTED,
    CycleFigures,
    GroupFigures,
    Overview,
    ResourceFigures,
    ResourceRow,
    TokenFigures,
)
from attention_queue.contract.operation import AuditEntry
from attention_queue.core.health import Health, Status
from attention_queue.core.insight import Verdict, Word
from attention_queue.core.outlook import forecast
from attention_queue.core.tables import did, ledger_table, request_word
from attention_queue.core.wording import END_OF_TIME, duration, messages, moment, plain, plural

NONE = "-"
_ROWS = 3  # of cycles, of changes and of holders
_COUNTS = ("Backlog", "Busy", "In line", "Served")
_GOOD = {Word.SERVING, Word.IDLE, Word.WAITING_TURN}
_BAD = {Word.UNATTENDED, Word.NO_WORKERS, Word.POISON, Word.CREDENTIALS_ERROR}


def overview(seen: Overview, said: Status, *, whole: bool = True) -> RenderableType:
    """``whole``: with what became of the requests so far, and with what to try."""
    style = "green" if said.health is Health.HEALTHY else "red"
    parts: list[RenderableType] = [headline(said.health.value, style, said.because)]
    if seen.groups:
        names = [*_COUNTS, "Parked", "Waits", "Dead"]
        table = columns("Group", *names, right={*names} - {"Parked"})
        for group in seen.groups:
            table.add_row(*_group_row(group, seen.at))
        parts += ["", table]
    if not whole:
        return Group(*parts)
    if any(group.ledger for group in seen.groups):
        parts += ["", _ledger(seen.groups)]
    return Group(*parts, *_advice(said.try_this))


def _ledger(groups: Sequence[GroupFigures]) -> RenderableType:
    names = ("Published", "Coalesced", "Again", "Wasted", "Discarded", "Blocked")
    table = columns("Requests so far", *names, right=names)
    for group in groups:
        counts = [
            sum(each.values()) if isinstance(each, dict) else each
            for each in ledger_table(group).values()
        ]
        table.add_row(group.name, *(f"{count:,}" if count else NONE for count in counts))
    return table


def resources(rows: Sequence[ResourceRow], now: datetime) -> RenderableType:
    names = ("Resource", "Plan", "State", "Backlog", "Tokens", "Request", "Oldest")
    table = columns(*names, right={"Backlog", "Tokens", "Oldest"})
    for row in rows:
        style = "" if row.state is State.ACTIVE else "yellow"
        table.add_row(
            Text(str(row.resource)),
            Text(row.plan),
            Text(row.state.value, style),
            f"{row.backlog:,}" if row.backlog else NONE,
            str(row.tokens) if row.tokens else NONE,
            request_cell(row, now),
            age(row.oldest, now),
        )
    return table


def resource(seen: ResourceFigures) -> RenderableType:
    parts: list[RenderableType] = [Text(str(seen.resource), "bold"), grid(_facts(seen))]
    if seen.tokens:
        parts += ["", Text("Tokens", "bold"), tokens(seen)]
    parts += [
        "",
        Text("Policy in force", "bold"),
        grid((n, Text(v)) for n, v in policy_facts(seen.policy)),
    ]
    return Group(*parts)


def tokens(seen: ResourceFigures) -> RenderableType:
    table = columns("Slot", "Owner", "Fence", "Lease", "In hand", right={"Slot", "In hand"})
    for token in seen.tokens:
        lease = _lease(token, seen.at)
        table.add_row(
            str(token.slot), Text(token.owner), str(token.fence), lease, str(token.loaned)
        )
    return table


def verdict(
    seen: ResourceFigures, said: Verdict, more: RenderableType | None = None
) -> RenderableType:
    style = "green" if said.verdict in _GOOD else "red" if said.verdict in _BAD else "yellow"
    title = Text.assemble((str(seen.resource), "bold"), (f" of {seen.group}", "dim"))
    head = headline(said.verdict.value.replace("_", " "), style, said.because)
    numbers = grid(_numbers(seen, said, holders=more is None))
    parts = [] if more is None else ["", more]
    return Group(title, head, "", numbers, *parts, *_advice(said.try_this))


def headline(word: str, style: str, because: str) -> Text:
    return Text.assemble((word, f"bold {style}"), ": ", plain(because))


def _advice(lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield ""
        yield Text("Try", "bold")
        for line in lines:
            yield Padding(Text(plain(f"· {line}")), (0, 0, 0, 1))


def _group_row(group: GroupFigures, now: datetime) -> list[str]:
    parked = ", ".join(
        f"{count:,} {why or 'delayed'}" for why, count in sorted(group.parked.items())
    )
    return [
        group.name,
        f"{group.backlog:,}",
        f"{group.busy:,}",
        f"{group.ready:,}",
        f"{group.tokens:,}",
        parked or NONE,
        age(group.waiting_since, now),
        f"{group.dead:,}" if group.dead else NONE,
    ]


def request_cell(row: ResourceRow, now: datetime) -> str:
    word = request_word(row)
    if word is None:
        return NONE
    if row.due is None or row.due >= END_OF_TIME:
        return word
    return f"{word}, {duration(row.due - now)}"


def _facts(seen: ResourceFigures) -> Iterator[tuple[str, RenderableType]]:
    yield "group", Text(f"{seen.group} ({seen.type})")
    yield "state", state_text(seen)
    yield "version", str(seen.version)
    yield "plan", Text(seen.plan)
    for override in seen.overrides:
        changes = written(override_to_table(override)["changes"])
        until = f" until {moment(override.until)}" if override.until else ""
        why = f" ({override.reason})" if override.reason else ""
        yield "override", Text(plain(f"{changes}{until}{why}"))
    if seen.routing:
        yield "routing", Text(", ".join(f"{k}={v}" for k, v in seen.routing.items()))
    yield "backlog", f"{seen.backlog:,}"
    yield "oldest", age(seen.oldest, seen.at)
    yield "request", _request(seen)
    if head := seen.next:
        due = f", due in {duration(head.due - seen.at)}" if head.due else ""
        failed = f", failed {head.failed}x" if head.failed else ""
        yield "next", Text(f"{head.type} {head.id}{due}{failed}")
        if head.error:
            yield "last error", Text(plain(head.error))
    yield "dead letters", _dead(seen)
    yield from lately(seen)


def _dead(seen: ResourceFigures) -> str:
    more = "+" if seen.dead >= DEAD_COUNTED else ""
    expired = f", {seen.expired:,} of them expired" if seen.expired else ""
    return f"{seen.dead:,}{more}{expired}"


def lately(seen: ResourceFigures) -> Iterator[tuple[str, RenderableType]]:
    """How fast it goes, when it will be done, the last cycles and who changed what."""
    pace = seen.pace
    if pace is not None:
        measured = "" if pace.measured is None else f"; a consumer does {pace.measured:,.1f}/s"
        yield "rates", f"in {pace.arrival:,.1f}/s, out {pace.service:,.1f}/s{measured}"
    if seen.backlog:
        yield "forecast", Text(forecast(seen).because)
    yield from _rows("last cycles", (_cycle(seen, each) for each in pace.cycles) if pace else ())
    yield from _rows("last changes", (_change(seen, each) for each in seen.changes))


def _rows(name: str, lines: Iterable[str]) -> Iterator[tuple[str, RenderableType]]:
    for n, line in enumerate(islice(lines, _ROWS)):
        yield name if n == 0 else "", brief(line)


def _cycle(seen: ResourceFigures, cycle: CycleFigures) -> str:
    took = duration(cycle.duration)
    ago = duration(seen.at - cycle.at)
    return f"{ago} ago: {messages(cycle.handled)} in {took}, ended by {cycle.end}"


def _change(seen: ResourceFigures, entry: AuditEntry) -> str:
    why = f": {entry.reason}" if entry.reason else ""
    return f"{duration(seen.at - entry.at)} ago: {did(entry)} by {entry.actor}{why}"


def state_text(seen: ResourceFigures) -> Text:
    state = seen.state.at(seen.at)
    if state is State.ACTIVE:
        return Text(state.value, "green")
    by = f" by {seen.state.actor}" if seen.state.actor else ""
    until = f" until {moment(seen.state.until)}" if seen.state.until else ""
    why = f": {seen.state.reason}" if seen.state.reason else ""
    return Text.assemble((state.value, "yellow"), plain(f"{by}{until}{why}"))


def _request(seen: ResourceFigures) -> str:
    request = seen.request
    if request is None:
        return NONE
    if request.due is None:
        ahead = f"{request.ahead:,}" if request.ahead < AHEAD_COUNTED else f"{AHEAD_COUNTED:,}+"
        lane = request.priority.name.lower()
        return f"in line, {ahead} before it in the lane {lane}, for {age(request.since, seen.at)}"
    why = f" (hold: {request.hold.value})" if request.hold else ""
    if request.due >= END_OF_TIME:
        return f"parked{why}"
    return f"in {duration(request.due - seen.at)}{why}"


def _lease(token: TokenFigures, now: datetime) -> str:
    if token.until <= now:
        return f"ended {duration(now - token.until)} ago"
    return f"{duration(token.until - now)} left"


def _numbers(
    seen: ResourceFigures, said: Verdict, *, holders: bool
) -> Iterator[tuple[str, RenderableType]]:
    numbers = said.numbers
    yield "state", state_text(seen)
    yield "version", str(seen.version)
    yield "plan", Text(f"{seen.plan}: {numbers['max_consumers']} x {numbers['max_messages']}")
    oldest = f", the oldest for {age(seen.oldest, seen.at)}" if seen.oldest else ""
    yield "backlog", f"{seen.backlog:,}{oldest}"
    limit = seen.policy.max_consumers
    out = f"{numbers['tokens']} of {limit} {plural(limit, 'token')}"
    yield "in hand", f"{numbers['in_hand']}, with {out} out"
    if holders:
        yield from _rows("held by", (_holder(seen, token) for token in seen.tokens))
    yield "request", _request(seen)
    yield "dead letters", _dead(seen)
    if said.limit:
        yield "limit", said.limit.value
    yield from lately(seen)


def _holder(seen: ResourceFigures, token: TokenFigures) -> str:
    return (
        f"{token.owner}: slot {token.slot}, {messages(token.loaned)}, "
        f"lease {_lease(token, seen.at)}, fence {token.fence}"
    )


def age(then: datetime | None, now: datetime) -> str:
    return NONE if then is None else duration(now - then)
