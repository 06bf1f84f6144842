"""``attn events -f``: what a worker does, as it does it."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Annotated

from cyclopts import Parameter, validators
from rich.text import Text

from attention_queue.cli.exits import Exit, Leave
from attention_queue.cli.output import Format, Output, console
from attention_queue.core.wording import plain

Follow = Annotated[bool, Parameter(name=["--follow", "-f"], help="Go on until interrupted.")]
Port = Annotated[
    int,
    Parameter(help="The worker's --metrics-port.", validator=validators.Number(gte=1, lte=65_535)),
]
Kind = Annotated[str | None, Parameter(help="Only these: cycle.finished, or cycle for all such.")]
_QUIET = 10.0  # seconds without even a heartbeat: nobody is there any more


def events(
    *, follow: Follow = False, port: Port = 9464, kind: Kind = None, output: Output = "table"
) -> None:
    """Print events of one worker as they happen. They are not kept, so there are only new ones."""
    if not follow:
        raise Leave(Exit.USAGE, "events are not kept: follow new ones with -f")
    connection = HTTPConnection("127.0.0.1", port, timeout=_QUIET)
    try:
        connection.request("GET", "/events")
        answer = connection.getresponse()
        if answer.status != 200:
            raise Leave(Exit.UNAVAILABLE, f"127.0.0.1:{port} has no events: {answer.status}")
        _print(answer, kind, output)
    except (OSError, HTTPException) as error:
        raise Leave(
            Exit.UNAVAILABLE,
            f"no worker answers on 127.0.0.1:{port} ({error}): "
            f"start one with attn worker APP --metrics-port {port}",
        ) from None
    finally:
        connection.close()


def _print(answer: HTTPResponse, kind: str | None, output: Format) -> None:
    screen = console()
    for line in answer:
        if not line.strip():
            continue
        event = json.loads(line)
        name = event["event"]
        if kind is not None and name != kind and not name.startswith(f"{kind}."):
            continue
        if output == "table":
            screen.print(_row(event), soft_wrap=True)
        else:
            print(json.dumps(event), flush=True)


def _row(event: dict[str, object]) -> Text:
    at, name = str(event.pop("at"))[11:23], str(event.pop("event"))
    rest = " ".join(f"{key}={plain(str(value))}" for key, value in event.items())
    return Text.assemble((at, "dim"), "  ", (f"{name:<24}", "bold"), rest)
