"""The closed lists are closed: public names, events, errors; and importing is cheap."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import get_args

import pytest

import attention_queue
from attention_queue import errors
from attention_queue.contract import events

HEAVY = (
    "asyncio", "apsw", "prometheus_client", "rich", "sqlite3", "starlette", "structlog", "uvicorn",
)  # fmt: skip


def isort_style(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts ``__all__``."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def loaded_by(program: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running ``program``."""
    probe = (
        f"{program}\nimport sys\nprint('loaded', *sorted(m for m in sys.modules if '.' not in m))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True
    )
    return set(ran.stdout.splitlines()[-1].split()[1:])


def tree_in_docstring(text: str) -> dict[str, str]:
    """Each drawn class with the class it hangs on."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in text.splitlines():
        if drawn := re.match(r"((?:│   |    )*)[├└]── (\w+)", line):
            depth = len(drawn[1]) // 4 + 1
            parents[drawn[2]] = path[depth - 1]
            path[depth:] = [drawn[2]]
        elif re.fullmatch(r"\w+", line):
            path = [line]
    return parents


def test_the_public_names_are_sorted() -> None:
    names = list(attention_queue.__all__)

    assert names == sorted(set(names), key=isort_style)


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    names = set(attention_queue.__all__)

    assert {name for name in names if getattr(attention_queue, name, None) is None} == set()
    assert names <= set(dir(attention_queue))
    assert names >= {"AttentionQueue", "Context", "Resource"}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        attention_queue.no_such_name  # noqa: B018  the access is the act


def test_importing_the_package_loads_no_driver_no_loop_and_no_face() -> None:
    loaded = loaded_by("import attention_queue")

    assert "attention_queue" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_asking_for_the_version_loads_no_driver_no_loop_and_no_face() -> None:
    loaded = loaded_by(
        "import sys\n"
        "sys.argv = ['attn', '--version']\n"
        "from attention_queue.__main__ import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
    )

    assert loaded.isdisjoint(HEAVY)


def test_every_event_is_in_the_union() -> None:
    defined = {
        cls
        for cls in vars(events).values()
        if inspect.isclass(cls) and cls.__module__ == events.__name__
    }

    assert defined == set(get_args(events.Event))


def test_every_event_has_a_name_of_its_own() -> None:
    names = [event.name for event in get_args(events.Event)]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_]+", name) for name in names)


def test_the_tree_of_errors_is_the_docstring() -> None:
    drawn = tree_in_docstring(errors.__doc__ or "")

    defined = {
        name: cls.__bases__[0].__name__
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.AttentionQueueError)
    }
    del defined["AttentionQueueError"]

    assert drawn == defined


def test_a_tree_is_read_as_it_is_drawn() -> None:
    text = "Title.\n\nTop\n├── A   x\n│   └── B   y\n└── C\n    ├── D\n    └── E\n"

    assert tree_in_docstring(text) == {"A": "Top", "B": "A", "C": "Top", "D": "C", "E": "C"}
