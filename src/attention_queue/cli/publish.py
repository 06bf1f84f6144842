"""``attn publish``: one message from the command line, or many from NDJSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from attention_queue import app, config
from attention_queue.cli.bulk import BATCH, Bulk, Report
from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.output import Output, Url, print_one, talk
from attention_queue.clock import SystemClock, moment_in
from attention_queue.contract import PLANS, Priority, Resource, WorkMessage, new_id
from attention_queue.contract.messages import MAX_PAYLOAD
from attention_queue.contract.units import read_duration
from attention_queue.contract.untrusted_json import check_json
from attention_queue.errors import ContractError, EngineUnavailable
from attention_queue.ports import Group, Put

Putting = Callable[[Sequence[WorkMessage]], Put]

Target = Annotated[
    str | None, Parameter(help="tenant/id; or - for NDJSON on stdin.", allow_leading_hyphen=True)
]
Type = Annotated[str | None, Parameter(help="What the message is, such as stock.updated.")]
Payload = Annotated[
    str | None, Parameter(help="JSON; - for stdin, @file for a file.", allow_leading_hyphen=True)
]
Id = Annotated[str | None, Parameter(help="The same id twice is one message.")]
Delay = Annotated[str | None, Parameter(help="Not before this long from now: 30s, 5m, 1h.")]
Lane = Annotated[
    Literal["high", "normal", "low"] | None, Parameter(help="Higher than the plan's, if it is.")
]
GroupName = Annotated[str | None, Parameter(help="Where to; needed if there is not exactly one.")]
Lines = Annotated[
    str | None,
    Parameter(
        name="--bulk",
        help='NDJSON, - for stdin: {"resource","type","payload","id"?}.',
        allow_leading_hyphen=True,
    ),
]


def publish(
    resource: Target = None,
    type: Type = None,
    payload: Payload = None,
    *,
    id: Id = None,
    delay: Delay = None,
    priority: Lane = None,
    group: GroupName = None,
    bulk: Lines = None,
    output: Output = "table",
    url: Url = None,
) -> int:
    """Publish one message: attn publish eu-1/store-873 stock.updated '{"sku": 7}'.

    With --bulk, or - in place of a resource, each line of NDJSON is a message. It is durable and
    asked for when the command ends.
    """
    for text in (resource, payload, bulk):
        if text and text.startswith("--"):
            raise Leave(Exit.USAGE, f"unknown option: {text}; see attn publish --help")
    if bulk is not None or resource == "-":
        if (resource not in (None, "-")) or type or payload or id:
            raise Leave(Exit.USAGE, "--bulk reads resource, type, payload and id from its lines")
        lines = Bulk(bulk or "-", delay=_delay(delay), priority=_priority(priority))
        return _finish(_publish_many(url, group, lines), output)
    message = _message(resource, type, payload, id, delay, priority)
    name, stored = _publish_one(url, group, message)
    data: dict[str, object] = {"id": message.id, "group": name, "stored": bool(stored)}
    print_one(output, data, message.id)
    if not stored:
        talk("it was there already: the same id is one message while the first is kept")
    return Exit.OK


def _message(
    resource: str | None,
    type: str | None,
    payload: str | None,
    id: str | None,
    delay: str | None,
    priority: Lane,
) -> WorkMessage:
    if resource is None or type is None:
        raise Leave(Exit.USAGE, "want a resource and a type: attn publish TENANT/ID TYPE [JSON]")
    if type[:1] in ("{", "[", "@", "-", '"'):
        raise Leave(Exit.USAGE, f"{type!r} is no type: the type comes before the payload")
    body = _body(payload)
    check_json(body)
    wait = _delay(delay)
    return WorkMessage(
        id=id or new_id(),
        resource=Resource.parse(resource),
        type=type,
        payload=body,
        not_before=None if wait is None else moment_in(SystemClock().now(), wait),
        priority=_priority(priority),
    )


def _body(payload: str | None) -> bytes:
    """One byte more than is allowed is enough to refuse it."""
    match payload:
        case None:
            return b"{}"
        case "-":
            return sys.stdin.buffer.read(MAX_PAYLOAD + 1).strip()
        case str() if payload.startswith("@"):
            try:
                with Path(payload[1:]).open("rb") as file:
                    return file.read(MAX_PAYLOAD + 1).strip()
            except OSError as error:
                raise Leave(Exit.USAGE, f"{payload[1:]}: {error.strerror}") from None
        case _:
            return payload.encode("utf-8", "surrogateescape")


def _publish_one(url: str | None, group: str | None, message: WorkMessage) -> tuple[str, int]:
    try:
        with _opened(url, group) as (name, put):
            return name, put((message,)).stored
    except EngineUnavailable as error:
        again = f"it may be stored; publish it again with --id {message.id}"
        raise Leave(Exit.UNAVAILABLE, f"{error}\n  {again}") from None


def _publish_many(url: str | None, group: str | None, bulk: Bulk) -> Report:
    try:
        with _opened(url, group) as (_, put):
            return bulk.publish(put)
    except KeyboardInterrupt:
        stored = f"{bulk.report.stored:,} stored before that"
        raise Leave(Exit.INTERRUPTED, f"interrupted; {stored}") from None
    except EngineUnavailable as error:
        stored = f"{bulk.report.stored:,} stored before that, and perhaps {BATCH} more"
        again = "lines with ids may be published again"
        raise Leave(Exit.UNAVAILABLE, f"{error}\n  {stored}; {again}") from None


@contextmanager
def _opened(url: str | None, group: str | None) -> Iterator[tuple[str, Putting]]:
    """The group and how to put messages into it; one that is not there yet is made."""
    settings = config.load({"url": url})
    with asyncio.Runner() as runner:
        there = runner.run(_groups(settings.url))
        name = group or (there[0] if len(there) == 1 else None)
        if name is None:
            names = there or ["marketplace"]
            raise Leave(Exit.USAGE, f"which group? add --group {' or --group '.join(names)}")
        engine = app.open_engine(settings.url)
        try:
            if name not in there:
                plans = settings.groups.get(name, PLANS)
                made = Group(name=name, plans=plans, default_plan=plans[0].name)
                runner.run(engine.open_group(made))
            yield name, lambda messages: runner.run(engine.put(name, messages))
        finally:
            runner.run(engine.close())


async def _groups(url: str) -> list[str]:
    if app.schema(url).version == 0:
        return []
    insight = app.open_insight(url)
    try:
        return list(await insight.groups())
    finally:
        await insight.close()


def _finish(report: Report, output: Output) -> int:
    data: dict[str, object] = {
        "stored": report.stored,
        "duplicates": report.duplicates,
        "refused": report.refused,
    }
    said = (
        f"{report.stored:,} stored, {report.duplicates:,} already there, {report.refused:,} refused"
    )
    print_one(output, data, said)
    if not report.refused:
        return Exit.OK
    return Exit.PARTIAL if report.stored or report.duplicates else Exit.FAILED


def _delay(text: str | None) -> timedelta | None:
    if text is None:
        return None
    number = float(text) if text.replace(".", "", 1).isdigit() else text
    try:
        return read_duration(number)
    except ContractError as error:
        raise Leave(Exit.USAGE, f"--delay: {error}") from None


def _priority(word: str | None) -> Priority | None:
    return Priority[word.upper()] if word else None
