"""The list of commands; each is loaded when it is called, and no sooner."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError

from attention_queue.cli.exits import Exit, Leave, code_of, words_of
from attention_queue.errors import AttentionQueueError

RUN = Group("Run", sort_key=1)
LOOK = Group("Look", sort_key=2)
SET_UP = Group("Set up", sort_key=3)


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
    for name, (group, target, text) in _COMMANDS.items():
        app.command(target, name=name, group=group, help=text)
    for name, (text, commands) in _FAMILIES.items():
        family = App(name=name, help=text, group=SET_UP)
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
    family = _FAMILIES.get(arguments[0])
    known = list(family[1]) if family else [*_COMMANDS, *_FAMILIES]
    name = arguments[1] if family else arguments[0]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no command {name!r}; {hint}"


def _command(arguments: Sequence[str]) -> str:
    known = {*_COMMANDS, *_FAMILIES}
    return f"{arguments[0]} " if arguments and arguments[0] in known else ""


_COMMANDS = {
    "demo": (RUN, "markethub.demo:main", "Watch a thousand shops share a few workers."),
    "worker": (RUN, "attention_queue.cli.worker:worker", "Serve the queues of an application."),
    "publish": (RUN, "attention_queue.cli.publish:publish", "Publish one message, or many."),
    "status": (LOOK, "attention_queue.cli.look:status", "Is the work being done?"),
    "ls": (LOOK, "attention_queue.cli.look:ls", "List resources: attn ls plan:pro backlog:>1000."),
    "show": (LOOK, "attention_queue.cli.look:show", "Show one resource."),
    "explain": (LOOK, "attention_queue.cli.look:explain", "Why is it (not) being served?"),
    "doctor": (SET_UP, "attention_queue.cli.doctor:doctor", "Look for what is wrong here."),
}
_FAMILIES = {
    "config": (
        "The settings.",
        {"show": ("attention_queue.cli.settings:show", "Show the settings that are in force.")},
    ),
    "db": (
        "The database.",
        {
            "migrate": (
                "attention_queue.cli.db:migrate",
                "Make it, or bring it up to date.",
            ),
            "status": ("attention_queue.cli.db:status", "Show the version of its schema."),
            "sql": ("attention_queue.cli.db:sql", "Print the scripts that make its schema."),
        },
    ),
}
