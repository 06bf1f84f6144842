"""The only chooser of an engine: from a URL, and from ``module:name``, to what is meant by it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from attention_queue import config
from attention_queue.clock import Clock, SystemClock
from attention_queue.contract.bus import Bus
from attention_queue.contract.figures import Check, Schema
from attention_queue.engines import sqlite
from attention_queue.engines.sqlite import checks, database
from attention_queue.engines.sqlite.insight import SqliteInsight
from attention_queue.errors import InvalidApp, InvalidUrl
from attention_queue.ports import Engine, Group, Insight

T = TypeVar("T")
_SQLITE = "sqlite:///"


def configured_url() -> str:
    """Raises: InvalidConfig."""
    return config.load().url


def with_configured_plans(group: Group) -> Group:
    """The group with the plans of attn.toml: those take the place of declared ones of their name.

    Raises: InvalidConfig.
    """
    configured = {plan.name: plan for plan in config.load().groups.get(group.name, ())}
    if not configured:
        return group
    plans = {plan.name: plan for plan in group.plans} | configured
    return replace(group, plans=tuple(plans.values()))


def open_engine(url: str, clock: Clock | None = None, bus: Bus | None = None) -> Engine:
    """Open the engine, making and migrating its file if need be.

    ``sqlite:///attention.db`` is beside you, ``sqlite:////var/lib/attention.db`` is anywhere,
    ``sqlite:///:memory:`` is gone when it is closed.

    Raises:
        InvalidUrl, ForeignDatabase, NewerDatabase, EngineUnavailable
    """
    return sqlite.SqliteEngine(sqlite_path(url), clock or SystemClock(), bus or Bus())


def open_insight(url: str, clock: Clock | None = None) -> Insight:
    """Look at what is there; nothing is made.

    Raises:
        SetupError: There is no such database yet, or of another version.
    """
    path = sqlite_path(url)
    if path == database.MEMORY:
        raise InvalidUrl(url, "what is in memory is seen by its own process only")
    return SqliteInsight(path, clock or SystemClock())


def open_in_memory(clock: Clock, bus: Bus) -> tuple[Engine, Insight]:
    """An engine of which nothing is left, and a look at it; close the engine first."""
    return sqlite.open_in_memory(clock, bus)


def sqlite_path(url: str) -> str:
    """The file that a URL names.

    Raises:
        InvalidUrl: It is of another kind.
    """
    scheme, colon, _ = url.partition("://")
    if not colon:
        raise InvalidUrl(url, "want scheme://, and sqlite:/// is supported today")
    if scheme != "sqlite":
        raise InvalidUrl(
            f"{scheme}://…", f"no engine for {scheme!r}; sqlite:/// is supported today"
        )
    path = url.removeprefix(_SQLITE)
    if path == url or not path:
        raise InvalidUrl(url, "want three slashes and a path, four if the path is absolute")
    if "?" in path or "#" in path or "\0" in path:
        raise InvalidUrl(url, "a path has no ?, # or NUL; options are settings, see attn config")
    return path


def load_queue(target: str, kind: type[T]) -> T:
    """The object that ``package.module:name`` names; its module is imported, from here too.

    Raises:
        InvalidApp: It is not written so, cannot be imported, or is not of ``kind``.
    """
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise InvalidApp(target, "want a module and a name with a colon between them")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            why = f"there is no module {error.name!r} here ({here}) or among what is installed"
        else:
            why = f"its module imports {error.name!r}, which is not installed"
        raise InvalidApp(target, why) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise InvalidApp(target, f"{module} has no {part!r}{_instead(module, kind)}")
        found = getattr(found, part)
    if not isinstance(found, kind):
        what = type(found).__name__
        raise InvalidApp(target, f"it is of type {what}, want {kind.__name__}")
    return found


def _instead(module: str, kind: type[object]) -> str:
    there = [n for n, value in vars(sys.modules[module]).items() if isinstance(value, kind)]
    return f"; it has {', '.join(there)}" if there else f" and no {kind.__name__} at all"


def schema(url: str) -> Schema:
    """What version the database has, and which one this version knows. Changes nothing."""
    path = sqlite_path(url)
    return Schema(place=path, version=database.schema_version(path), latest=database.LATEST)


def migrations(url: str) -> Sequence[str]:
    """The scripts that make the schema, in order."""
    sqlite_path(url)
    return tuple(database.MIGRATIONS.values())


def examine(url: str, clock: Clock | None = None) -> Sequence[Check]:
    """Look for what is wrong with the database and the machine under it. Changes nothing."""
    return checks.examine(sqlite_path(url), clock or SystemClock())
