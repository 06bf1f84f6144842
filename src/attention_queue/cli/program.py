"""The command line as a whole: what was typed in, an exit code out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError

from attention_queue.cli.commands import COMMANDS, FAMILIES
from attention_queue.cli.exits import Exit, Leave, code_of, words_of
from attention_queue.errors import AttentionQueueError


def program() -> App:
    app = App(
        name="attn",
        help="A durable work queue per tenant, attended on demand by a few workers.",
        version=version("attention-queue"),
        version_flags=["--version"],
        help_format="plaintext",
        default_parameter=Parameter(negative=""),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for name, (group, target, text) in COMMANDS.items():
        app.command(target, name=name, group=group, help=text)
    for name, (group, text, commands) in FAMILIES.items():
        family = App(name=name, help=text, group=group)
        for command, (target, words) in commands.items():
            family.command(target, name=command, help=words)
        app.command(family)
    return app


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Never a traceback for what this package raises on purpose."""
    try:
        code = program()(list(arguments))
        sys.stdout.flush()
    except UnknownCommandError:
        return say(Exit.USAGE, _unknown(arguments))
    except CycloptsError as error:
        return say(Exit.USAGE, f"{error}\n  see attn {_command(arguments)}--help")
    except Leave as leave:
        return say(leave.code, str(leave))
    except AttentionQueueError as error:
        return say(code_of(error), words_of(error))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough; nothing more can be written at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    return int(code) if isinstance(code, int) else Exit.OK


def say(code: Exit, text: str) -> int:
    if text:
        print(f"attn: {text}", file=sys.stderr)
    return code


def _unknown(arguments: Sequence[str]) -> str:
    """Cyclopts' own words for it would load every command."""
    family = FAMILIES.get(arguments[0])
    known = list(family[2]) if family else [*COMMANDS, *FAMILIES]
    name = arguments[1] if family else arguments[0]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no command {name!r}; {hint}"


def _command(arguments: Sequence[str]) -> str:
    known = {*COMMANDS, *FAMILIES}
    return f"{arguments[0]} " if arguments and arguments[0] in known else ""
