"""Publishing NDJSON: good lines in batches, bad ones reported by number and path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

import msgspec
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.output import console
from attention_queue.clock import SystemClock, moment_in
from attention_queue.contract import Priority, Resource, WorkMessage, new_id
from attention_queue.contract.messages import MAX_PAYLOAD
from attention_queue.contract.untrusted_json import check_json
from attention_queue.errors import ContractError, InvalidMessage
from attention_queue.ports import Put

BATCH = 500  # messages in one transaction
MAX_LINE = MAX_PAYLOAD + 4096  # bytes
_SHOWN = 100  # bad lines


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line: ``{"resource": "eu-1/store-873", "type": "stock.updated", "payload": {}}``."""

    resource: str
    type: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None


@dataclass
class Report:
    stored: int = 0
    duplicates: int = 0
    refused: int = 0


@dataclass
class Bulk:
    """The lines of ``source`` (``-``: stdin), all with the same delay and priority."""

    source: str
    delay: timedelta | None = None
    priority: Priority | None = None
    report: Report = field(default_factory=Report)

    def publish(self, put: Callable[[Sequence[WorkMessage]], Put]) -> Report:
        """Publish what is good; a bad line is told on stderr and costs no other line anything.

        Lines without an id get a new one: after a failure only lines with ids can be repeated.
        Not a coroutine, so that an interrupt ends the wait for a line that does not come.
        """
        with _opened(self.source) as (file, size), self._progress(size) as (progress, task):
            batch: list[tuple[int, WorkMessage]] = []
            for number, line in _lines(file):
                message = self._read(progress, number, line)
                if message is not None:
                    batch.append((number, message))
                if len(batch) == BATCH:
                    self._put(progress, put, batch)
                    batch = []
                progress.update(task, advance=len(line))
            self._put(progress, put, batch)
        return self.report

    def _read(self, progress: Progress, number: int, line: bytes) -> WorkMessage | None:
        try:
            return self._message(line)
        except ContractError as error:
            self._refuse(progress, number, str(error))
        return None

    def _message(self, line: bytes) -> WorkMessage:
        read = _read_line(line)
        try:
            resource = Resource.parse(read.resource)
        except ContractError as error:
            raise ContractError(f"$.resource: {error}") from None
        wait = self.delay
        try:
            return WorkMessage(
                id=new_id() if read.id is None else read.id,
                resource=resource,
                type=read.type,
                payload=bytes(read.payload),
                not_before=None if wait is None else moment_in(SystemClock().now(), wait),
                priority=self.priority,
            )
        except InvalidMessage as error:
            raise ContractError(f"$.{error.field}: {error.why}") from None

    def _put(
        self,
        progress: Progress,
        put: Callable[[Sequence[WorkMessage]], Put],
        batch: list[tuple[int, WorkMessage]],
    ) -> None:
        if not batch:
            return
        try:
            done = put([message for _, message in batch])
        except ContractError as error:
            if len(batch) == 1:
                self._refuse(progress, batch[0][0], f"$.resource: {error}")
                return
            for each in batch:  # one of them spoiled it for all
                self._put(progress, put, [each])
        else:
            self.report.stored += done.stored
            self.report.duplicates += done.duplicates

    def _refuse(self, progress: Progress, number: int, why: str) -> None:
        self.report.refused += 1
        if self.report.refused <= _SHOWN:
            progress.console.print(f"line {number}: {why}", markup=False, soft_wrap=True)
        elif self.report.refused == _SHOWN + 1:
            progress.console.print("more bad lines follow; they are counted only")

    @contextmanager
    def _progress(self, size: int | None) -> Iterator[tuple[Progress, TaskID]]:
        """On a terminal only; it goes away at the end."""
        error = console(sys.stderr)
        bar = (TextColumn("publishing"), BarColumn(), DownloadColumn())
        with Progress(*bar, console=error, transient=True, disable=not error.is_terminal) as shown:
            yield shown, shown.add_task("publishing", total=size)


@contextmanager
def _opened(source: str) -> Iterator[tuple[BinaryIO, int | None]]:
    if source == "-":
        yield sys.stdin.buffer, None
        return
    path = Path(source.removeprefix("@"))
    try:
        file: BufferedReader = path.open("rb")
    except OSError as error:
        raise Leave(Exit.USAGE, f"{path}: {error.strerror}") from None
    with file:
        yield file, path.stat().st_size


def _read_line(line: bytes) -> Line:
    try:
        check_json(line, max_bytes=MAX_LINE)
    except InvalidMessage as error:
        raise ContractError(error.why) from None
    try:
        return msgspec.json.decode(line, type=Line)
    except msgspec.ValidationError as error:
        why, _, path = str(error).partition(" - at ")
        raise ContractError(f"{path.strip('`') or '$'}: {why}") from None


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank; of one that is too long, enough to say so."""
    number = 0
    while line := file.readline(MAX_LINE + 2):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE)
        if line.strip():
            yield number, line
