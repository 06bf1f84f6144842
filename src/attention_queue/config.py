"""Settings: defaults < ``attn.toml`` < ``ATTN_*`` < flags. The only reader of the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from attention_queue.contract import Plan
from attention_queue.contract.codec import plan_from_table
from attention_queue.contract.names import word_fault
from attention_queue.contract.units import read_count, read_duration, read_text
from attention_queue.errors import ContractError, InvalidConfig

FILE = "attn.toml"
PREFIX = "ATTN_"
_FILE_SUFFIX = "_FILE"  # ATTN_URL_FILE: the value is the text of that file, for secrets
_TESTS = "ATTN_TEST_"
_HEADER = re.compile(r"^\s*\[([^\[\]]+)\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+)\s*=")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, valid. ``origins`` says of each where its value comes from."""

    url: str = "sqlite:///attention.db"
    slots: int = 16  # cycles at once in one process
    processes: int = 1
    grace: timedelta = timedelta(seconds=25)  # running handlers may finish within it after SIGTERM
    actor: str = "somebody"  # who changes things from here: kept with every change
    groups: Mapping[str, tuple[Plan, ...]] = {}  # plans by group
    origins: Mapping[str, str] = {}


_READERS: Mapping[str, Callable[[object], Any]] = {
    "url": read_text,
    "slots": read_count,
    "processes": read_count,
    "grace": read_duration,
    "actor": read_text,
}


def load(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Config:
    """Read all sources; a flag of None was not given.

    Raises:
        InvalidConfig: Everything that is wrong in any of them, with its place.
    """
    environ = os.environ if environ is None else environ
    reading = _Reading()
    reading.file(environ.get(f"{PREFIX}CONFIG"), folder or Path.cwd())
    reading.environment(environ)
    reading.person(environ)
    for name, value in (flags or {}).items():
        if value is not None:
            reading.set(name, value, "--" + name)
    return reading.config()


@dataclass
class _Reading:
    """What has been read so far; goes on after a fault, because a person wants to see them all."""

    values: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, tuple[Plan, ...]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def config(self) -> Config:
        if self.problems:
            raise InvalidConfig(tuple(self.problems))
        origins = {name: self.origins.get(name, "default") for name in _READERS}
        return Config(**self.values, groups=self.groups, origins=self.origins | origins)

    def set(self, name: str, value: object, origin: str) -> None:
        try:
            self.values[name] = _READERS[name](value)
        except ContractError as error:
            self.problems.append(f"{origin}: {name}: {error}")
        else:
            self.origins[name] = origin

    def file(self, named: str | None, folder: Path) -> None:
        path = folder / (named or FILE)
        if named is None and not path.exists():
            return
        try:
            text = path.read_text(encoding="utf-8")
            table = tomllib.loads(text)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            where = "ATTN_CONFIG: " if named else ""
            self.problems.append(f"{where}{path}: it cannot be read: {why}")
        except tomllib.TOMLDecodeError as error:
            self.problems.append(f"{path}: no TOML: {error}")
        else:
            self._table(table, path.name if named is None else str(path), _lines(text))

    def _table(self, table: Mapping[str, object], file: str, lines: Mapping[str, int]) -> None:
        for name, value in table.items():
            place = _place(file, lines, name)
            if name in _READERS:
                self.set(name, value, place)
            elif name == "groups":
                self._groups(value, file, lines)
            else:
                self.unknown(place, name, [*_READERS, "groups"])

    def _groups(self, groups: object, file: str, lines: Mapping[str, int]) -> None:
        for group, table in _items(groups):
            path = f"groups.{group}"
            place = _place(file, lines, path)
            if why := word_fault(group):
                self.problems.append(f"{place}: {path}: {why}")
            for name, plans in _items(table):
                if name != "plans":
                    self.unknown(_place(file, lines, f"{path}.{name}"), name, ["plans"])
                    continue
                read = [self._plan(*each, path, file, lines) for each in _items(plans)]
                self.groups[group] = tuple(plan for plan in read if plan is not None)
            if not _items(table):
                self.problems.append(f"{place}: {path}: want a table with plans in it")
        if not isinstance(groups, Mapping):
            self.problems.append(f"{_place(file, lines, 'groups')}: groups: want a table")

    def _plan(
        self, name: str, table: object, path: str, file: str, lines: Mapping[str, int]
    ) -> Plan | None:
        key = f"{path}.plans.{name}"
        place = _place(file, lines, key)
        if not isinstance(table, Mapping):
            self.problems.append(f"{place}: {key}: want a table, got {type(table).__name__}")
            return None
        try:
            plan = plan_from_table(name, table)
        except InvalidConfig as error:
            for problem in error.problems:
                at = _place(file, lines, f"{path}.{problem.partition(':')[0]}")
                self.problems.append(f"{at if at != file else place}: {path}.{problem}")
            return None
        self.origins[key] = place
        return plan

    def environment(self, environ: Mapping[str, str]) -> None:
        for variable in sorted(environ):
            if not variable.startswith(PREFIX) or variable.startswith(_TESTS):
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name == "config":
                continue
            if name in _READERS:
                self.set(name, _number_or_text(environ[variable]), variable)
            elif (secret := name.removesuffix(_FILE_SUFFIX.lower())) in _READERS:
                self._secret(secret, variable, environ)
            else:
                known = [PREFIX + each.upper() for each in (*_READERS, "config")]
                self.unknown(variable, variable, known)

    def person(self, environ: Mapping[str, str]) -> None:
        """Whoever is logged in, unless somebody is named."""
        for variable in ("USER", "LOGNAME"):
            if "actor" not in self.values and (name := environ.get(variable)):
                self.set("actor", name, variable)

    def _secret(self, name: str, variable: str, environ: Mapping[str, str]) -> None:
        if PREFIX + name.upper() in environ:
            self.problems.append(f"{variable}: {PREFIX}{name.upper()} is set too: keep one of them")
            return
        try:
            text = Path(environ[variable]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            self.problems.append(f"{variable}: {environ[variable]}: it cannot be read: {why}")
        else:
            self.set(name, _number_or_text(text), variable)

    def unknown(self, place: str, name: str, known: list[str]) -> None:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        shown = place if place == name else f"{place}: {name}"
        self.problems.append(f"{shown}: unknown; {hint}")


def _items(table: object) -> list[tuple[str, object]]:
    return list(table.items()) if isinstance(table, Mapping) else []


def _number_or_text(text: str) -> object:
    """A variable has no type: ``16`` is a number, ``25s`` is not."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _lines(text: str) -> dict[str, int]:
    """Where each key and table header stands, by its full name; good enough to point at."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            parts = [part.strip().strip("'\"") for part in header[1].split(".")]
            for depth in range(1, len(parts) + 1):
                found.setdefault(".".join(parts[:depth]), number)
            table = ".".join(parts) + "."
        elif key := _KEY.match(line):
            found.setdefault(table + key[1], number)
    return found


def _place(file: str, lines: Mapping[str, int], name: str) -> str:
    return f"{file}:{lines[name]}" if name in lines else file
