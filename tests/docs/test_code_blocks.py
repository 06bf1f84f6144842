"""The Python blocks of the pages run, top to bottom, each page in a module of its own."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from sybil import Example, Sybil
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, SkipParser

from docs import pages


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Runner]:
    """One event loop for a page, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with asyncio.Runner() as runner:
        yield runner


def read(page: Path, loop: asyncio.Runner) -> Document:
    def run(example: Example) -> None:
        padding = "\n" * (example.line + example.parsed.line_offset)
        code = compile(
            padding + example.parsed,
            example.path,
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        answer = FunctionType(code, example.namespace)()
        if inspect.iscoroutine(answer):
            loop.run(answer)

    return Sybil([CodeBlockParser("python", run), SkipParser()]).parse(page)


def run_all(page: Path, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns how many blocks ran."""
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    document = read(page, loop)
    document.namespace = vars(module)
    examples = list(document.examples())
    for example in examples:
        example.evaluate()
    return len(examples)


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_the_blocks_of_a_page_run(
    page: Path, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(page, loop, monkeypatch)


def test_a_block_that_fails_is_a_failure_at_its_line(
    tmp_path: Path, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# T\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")

    with pytest.raises(AssertionError) as failure:
        run_all(page, loop, monkeypatch)

    assert failure.traceback[-1].lineno == 7


def test_a_block_may_await_and_sees_what_came_before(
    tmp_path: Path, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n\n```python\nimport asyncio\n```\n\n"
        "```python\nawait asyncio.sleep(0)\ny = 1\n```\n\n```python\nassert y == 1\n```\n"
    )

    assert run_all(page, loop, monkeypatch) == 3
