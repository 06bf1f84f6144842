"""The house rules as functions: source text in, the lines that break a rule out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

MAX_MODULE = 300  # lines
MAX_FUNCTION = 30  # lines, docstring not counted

DRIVERS = {  # top-level package: the one place below attention_queue/ that may import it
    "apsw": "engines/sqlite",
    "sqlite3": "engines/sqlite",
    "psycopg": "engines/postgres",
    "pika": "engines/rabbitmq",
    "aiormq": "engines/rabbitmq",
    "redis": "engines/rabbitmq",
    "starlette": "api",
    "uvicorn": "api",
    "cyclopts": "cli",
    "rich": "cli",
    "prometheus_client": "observe",
    "structlog": "observe",
}
CLOCKS = {"datetime.now", "datetime.utcnow", "date.today", "time.time", "time.time_ns"}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv"}
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "__import__", "yaml.load"}
BARE_TASKS = {"asyncio.create_task", "asyncio.ensure_future", "asyncio.async"}
SLEEPS = {"asyncio.sleep", "time.sleep"}
EMPTY_WORDS = re.compile(r"Manager|Helper|Util|^Base[A-Z]|Impl$")
EMPTY_FILES = {"base.py", "common.py", "helpers.py", "misc.py", "util.py", "utils.py"}
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|CREATE|DROP|ALTER)\b")


def module_faults(text: str) -> Iterator[str]:
    """No opening sentence, or too long."""
    doc = ast.get_docstring(ast.parse(text)) or ""
    if not doc.split("\n\n")[0].rstrip().endswith((".", ":")):
        yield "it does not open with a sentence that says what it is"
    if (lines := text.count("\n")) > MAX_MODULE:
        yield f"{lines} lines, want at most {MAX_MODULE}"


def long_functions(text: str) -> Iterator[tuple[str, int]]:
    """Qualified name and length of every function that is too long."""
    for name, node in _functions(ast.parse(text), ""):
        body = node.body
        first = body[0]
        counted = (node.end_lineno or 0) - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            counted -= (first.end_lineno or 0) - first.lineno + 1
        if counted > MAX_FUNCTION:
            yield name, counted


def _functions(
    tree: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield prefix + node.name, node
                yield from _functions(node, f"{prefix}{node.name}.")
            case ast.ClassDef():
                yield from _functions(node, f"{prefix}{node.name}.")
            case _:
                yield from _functions(node, prefix)


def wall_clocks(text: str) -> Iterator[str]:
    yield from _uses(text, CLOCKS)


def environment_reads(text: str) -> Iterator[str]:
    yield from _uses(text, ENVIRONMENT)


def unsafe_code(text: str) -> Iterator[str]:
    """What turns bytes from outside into running code."""
    for line, module in imports(text):
        if module.split(".")[0] in UNSAFE_MODULES:
            yield f"line {line}: imports {module}"
    yield from _uses(text, UNSAFE_CALLS)


def bare_tasks(text: str) -> Iterator[str]:
    """A task that no ``TaskGroup`` owns."""
    yield from _uses(text, BARE_TASKS)


def swallowed_errors(text: str) -> Iterator[str]:
    """``except Exception: pass``, and any silent ``except`` that hides a cancellation."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ExceptHandler) or not _silent(node.body):
            continue
        names = {"BaseException"} if node.type is None else set(_names(node.type))
        if broad := names & {"Exception", "BaseException"}:
            yield f"line {node.lineno}: swallows {min(broad)}"


def _silent(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in body
    )


def _names(node: ast.expr) -> Iterator[str]:
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        yield _dotted(part).rsplit(".", 1)[-1]


def foreign_drivers(text: str, path: PurePosixPath) -> Iterator[str]:
    """Imports of a driver outside the folder it belongs to; ``path`` is below attention_queue/."""
    for line, module in imports(text):
        home = DRIVERS.get(module.split(".")[0])
        if home and not path.is_relative_to(home):
            yield f"line {line}: imports {module}, which belongs in {home}/"


def built_sql(text: str) -> Iterator[str]:
    """Statements put together at run time: f-strings, ``%``, ``+`` and ``format``."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *rest]) if rest:
                pass
            case ast.BinOp(left=ast.Constant(value=str(start)), op=ast.Add() | ast.Mod()):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(start)), attr="format")):
                pass
            case _:
                continue
        if _SQL.match(start):
            yield f"line {node.lineno}: {start.strip()[:40]!r}"


def sql_faults(text: str) -> Iterator[str]:
    """A file of named statements: a promise above each, and no holes for text to be pasted into."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("-- name:"):
            promise = lines[number] if number < len(lines) else ""
            if not re.match(r"-- \S", promise) or promise.startswith("-- name:"):
                yield f"line {number}: {line[9:]} has no comment line that says what it promises"
        elif not line.startswith("--") and re.search(r"[{}]|%s|%\(", line):
            yield f"line {number}: a hole for text: {line.strip()[:40]!r}"


def empty_names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and EMPTY_WORDS.search(node.name):
            yield f"line {node.lineno}: {node.name} says nothing about the domain"


def orphaned_todos(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"#.*\b(TODO|FIXME|XXX)\b", line) and not re.search(r"#\d+", line):
            yield f"line {number}: no issue number"


def local_imports(text: str) -> Iterator[str]:
    """Imports inside a function: what a module needs stands at its top."""
    for name, node in _functions(ast.parse(text), ""):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                yield f"line {inner.lineno}: {name} imports"


def engine_choices(text: str) -> Iterator[str]:
    """Imports of one engine by name."""
    for line, module in imports(text):
        if module.startswith("attention_queue.engines."):
            yield f"line {line}: imports {module}"


def sleeps(text: str) -> Iterator[str]:
    """Waits for a time to pass; ``asyncio.sleep(0)`` only lets others run."""
    tree = ast.parse(text)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=0)]) if _dotted(func):
                continue
            case ast.Call(func=func) if _resolve(_dotted(func), aliases) in SLEEPS:
                yield f"line {node.lineno}: sleeps"


def mocks(text: str) -> Iterator[str]:
    for line, module in imports(text):
        if module.startswith(("unittest.mock", "mock", "pytest_mock")):
            yield f"line {line}: imports {module}"


def statement_names(text: str) -> set[str]:
    return set(re.findall(r"^-- name: (\w+)$", text, re.MULTILINE))


def strings(text: str) -> set[str]:
    """Every string constant of a module."""
    nodes = ast.walk(ast.parse(text))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def imports(text: str) -> Iterator[tuple[int, str]]:
    """Every imported module with its line, those inside functions included."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield node.lineno, module


def _uses(text: str, wanted: Iterable[str]) -> Iterator[str]:
    """Where one of the dotted names is used, by whatever name it was imported."""
    tree = ast.parse(text)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = _resolve(_dotted(node), aliases)
            if name in wanted or name.removeprefix("datetime.") in wanted:
                yield f"line {node.lineno}: uses {name}"


def _aliases(tree: ast.AST) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                known |= {a.asname: a.name for a in names if a.asname}
            case ast.ImportFrom(module=str(module), names=names):
                known |= {a.asname or a.name: f"{module}.{a.name}" for a in names}
    return known


def _resolve(dotted: str, aliases: dict[str, str]) -> str:
    head, _, tail = dotted.partition(".")
    head = aliases.get(head, head)
    return f"{head}.{tail}" if tail else head


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case _:
            return ""
