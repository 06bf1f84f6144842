"""Lists as tables for a terminal: dead letters, operations, tokens, the line, the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from attention_queue.cli.output import brief, columns, grid
from attention_queue.cli.values import written
from attention_queue.contract.operation import (
    AuditEntry,
    DeadGroup,
    DeadLetter,
    OperationFigures,
)
from attention_queue.contract.views import HeldToken, InLine, Line, Waiting
from attention_queue.core import entries
from attention_queue.core.tables import did
from attention_queue.core.wording import END_OF_TIME, duration, plain, plural

NONE = "-"
_TRACE = 4000  # characters, the end of it
_BRIEF = 60  # characters of a payload in a list


def letters(found: Sequence[DeadLetter], now: datetime) -> RenderableType:
    if not found:
        return Text("no dead letters")
    table = columns(
        "No", "Age", "Resource", "Type", "Reason", "Error", right={"No", "Age"}, whole={"Reason"}
    )
    for letter in found:
        table.add_row(
            str(letter.number), duration(now - letter.died), Text(str(letter.resource)),
            Text(letter.type), Text(plain(letter.reason)), brief(_error(letter)),
        )  # fmt: skip
    return table


def letter(group: str, of: DeadLetter, now: datetime) -> RenderableType:
    facts: list[tuple[str, RenderableType]] = [
        ("resource", Text(f"{of.resource} of {group}")),
        ("message", Text(f"{of.type} {of.id}")),
        ("reason", Text(plain(of.reason))),
        ("error", Text(_error(of) or NONE)),
        ("attempts", f"{of.attempts}, redriven {of.redriven}x"),
        ("published", f"{duration(now - of.enqueued)} ago"),
        ("died", f"{duration(now - of.died)} ago"),
        ("payload", Text(f"{len(of.payload):,} bytes of {of.content_type}")),
    ]
    parts: list[RenderableType] = [Text(f"Dead letter {of.number}", "bold"), grid(facts), ""]
    parts.append(Text(entries.preview(of.payload)))
    if history := entries.letter_table(group, of)["history"]:
        parts += ["", Text("Attempts that failed, the newest last", "bold"), _history(history)]
    if of.trace:
        parts += ["", Text("Trace", "bold"), Text(plain(of.trace[-_TRACE:].rstrip()))]
    return Group(*parts)


def dead_groups(found: Sequence[DeadGroup], now: datetime) -> RenderableType:
    if not found:
        return Text("no dead letters")
    by = ["Resource"] if found[0].resource else []
    names = [*by, "Type", "Reason", "Error", "First", "Last", "Example"]
    table = columns("Count", *names, right={"Count", "First", "Last", "Example"})
    for each in found:
        cells = [Text(str(each.resource))] if each.resource else []
        cells += [Text(each.type), Text(plain(each.reason)), Text(plain(each.error or NONE))]
        ages = [duration(now - moment) for moment in (each.first, each.last)]
        table.add_row(f"{each.count:,}", *cells, *ages, str(each.example))
    return table


def operations(found: Sequence[OperationFigures], now: datetime) -> RenderableType:
    if not found:
        return Text("no operations")
    names = ("Kind", "Of", "Progress", "Done", "Started", "By", "Reason")
    numbers = {"No", "Done", "Started"}
    table = columns("No", *names, right=numbers, whole={"Kind", "Progress", "By"})
    for each in found:
        of = entries.selection_table(each.operation.selection)
        table.add_row(
            str(each.number), each.operation.kind.value.replace("_", " "),
            Text(written(of, " ") or "everything"), each.progress.value,
            f"{each.done:,} of {each.total:,}", f"{duration(now - each.started)} ago",
            Text(plain(each.actor)), brief(each.operation.reason),
        )  # fmt: skip
    return table


def operation(of: OperationFigures, now: datetime) -> RenderableType:
    facts: list[tuple[str, RenderableType]] = [
        ("of", Text(written(entries.selection_table(of.operation.selection), " ") or "everything")),
        ("group", of.operation.group),
        ("progress", of.progress.value),
        ("done", f"{of.done:,} of {of.total:,}, {of.skipped:,} left where they were"),
        ("by", Text(plain(of.actor))),
        ("reason", Text(plain(of.operation.reason))),
        ("started", f"{duration(now - of.started)} ago"),
        ("ended", f"{duration(now - of.ended)} ago" if of.ended else NONE),
    ]
    if of.operation.per_second is not None:
        facts.append(("rate", f"{of.operation.per_second:g}/s"))
    kind = of.operation.kind.value.replace("_", " ")
    return Group(Text(f"Operation {of.number}: {kind}", "bold"), grid(facts))


def tokens(found: Sequence[HeldToken], now: datetime) -> RenderableType:
    if not found:
        return Text("no tokens are out")
    numbers = {"Slot", "Fence", "In hand"}
    table = columns("Resource", "Slot", "Owner", "Fence", "Lease", "In hand", right=numbers)
    for each in found:
        token = each.token
        left = token.until - now
        lease = f"{duration(left)} left" if token.until > now else f"ended {duration(-left)} ago"
        table.add_row(
            Text(str(each.resource)), str(token.slot), Text(token.owner), str(token.fence),
            lease, f"{token.loaned:,}",
        )  # fmt: skip
    return table


def line(seen: Line) -> RenderableType:
    parts: list[RenderableType] = []
    for lane, waiting in seen.lanes.items():
        if waiting:
            count = seen.counts[lane]
            head = f"Lane {lane.name.lower()}: {count:,} {plural(count, 'request')} in line"
            parts += [Text(head, "bold"), _requests(waiting, seen.at), ""]
    for parked in seen.parked:
        why = parked.hold.value if parked.hold else "delayed"
        head = f"Parked, {why}: {parked.count:,} {plural(parked.count, 'request')}"
        parts += [Text(head, "bold"), _requests(parked.first, seen.at), ""]
    return Group(*parts[:-1]) if parts else Text("no requests: no work is left")


def waiting(found: Sequence[Waiting], now: datetime) -> RenderableType:
    if not found:
        return Text("no work is left")
    table = columns("Id", "Type", "Age", "Due", "Failed", "Payload", right={"Age", "Failed"})
    for each in found:
        due = "in hand" if each.on_loan else "now"
        if each.due is not None:
            due = f"in {duration(each.due - now)}"
        payload = brief(entries.preview(each.payload, _BRIEF))
        failed = f"{each.failed}" if each.failed else NONE
        table.add_row(
            Text(each.id), Text(each.type), duration(now - each.enqueued), due, failed, payload
        )
    return table


def trail(found: Sequence[AuditEntry]) -> RenderableType:
    if not found:
        return Text("nobody has changed anything")
    table = columns("No", "At (UTC)", "By", "Did", "To", "Reason", right={"No"}, whole={"Did"})
    for each in found:
        table.add_row(
            str(each.number), f"{each.at:%m-%d %H:%M:%S}", Text(plain(each.actor)),
            Text(did(each)), Text(str(each.resource or each.group)), brief(each.reason or NONE),
        )  # fmt: skip
    return table


def _requests(rows: Sequence[InLine], now: datetime) -> RenderableType:
    table = columns("Resource", "Plan", "Backlog", "Waits", right={"Backlog", "Waits"})
    for row in rows:
        if row.due is None:
            waits = f"for {duration(now - row.since)}"
        else:
            waits = f"{duration(row.due - now)} more" if row.due < END_OF_TIME else "to be resumed"
        table.add_row(Text(str(row.resource)), Text(row.plan), f"{row.backlog:,}", waits)
    return table


def _error(letter: DeadLetter) -> str:
    return plain(": ".join(part for part in (letter.error, letter.text) if part))


def _history(entries_: object) -> RenderableType:
    if not isinstance(entries_, list):
        return Text(str(entries_))
    return Group(*(Text(plain(f"· {written(each, ' ')}")) for each in entries_))
