"""Policies, plans and overrides as plain tables, for storage, configuration files and people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, TypeVar

import msgspec

from attention_queue.contract.policy import (
    Backoff,
    Expired,
    Order,
    Override,
    Plan,
    Policy,
    Priority,
    Rate,
)
from attention_queue.contract.units import (
    read_count,
    read_duration,
    read_expired,
    read_factor,
    read_moment,
    read_order,
    read_priority,
    read_rate,
    read_text,
    write_moment,
    write_rate,
    write_seconds,
)
from attention_queue.errors import ContractError, InvalidConfig

T = TypeVar("T")
Table = dict[str, object]


def policy_to_json(policy: Policy) -> str:
    """All fields, in a form that `policy_from_json` reads as an equal policy."""
    return _to_json(policy_to_table(policy))


@lru_cache(maxsize=1024)  # the same few plans are read with every cycle
def policy_from_json(text: str) -> Policy:
    """The policy that was stored; fields that a newer version added are left out.

    Raises:
        ContractError: It is no stored policy; the text has the path.
    """
    faults = _Faults(strict=False)
    policy = _policy(_from_json(text), "policy", faults)
    if policy is None:
        raise ContractError(faults.found[0])
    return policy


def overrides_to_json(overrides: tuple[Override, ...]) -> str:
    """Raises: ContractError: A value of ``changes`` is not of its field's type."""
    return _to_json([override_to_table(o) for o in overrides])


@lru_cache(maxsize=1024)
def overrides_from_json(text: str) -> tuple[Override, ...]:
    """What was stored, the values of ``changes`` with their types.

    Fields that a newer version added are left out, and an override that changes only such fields.

    Raises:
        ContractError: They are no stored overrides; the text has the path.
    """
    faults = _Faults(strict=False)
    rows = _from_json(text)
    if not isinstance(rows, list):
        raise ContractError("overrides: want a list")
    read = [_override(row, f"overrides[{n}]", faults) for n, row in enumerate(rows)]
    return tuple(override for override in read if override is not None)


def policy_to_table(policy: Policy) -> Table:
    """All fields by name: durations as seconds, rates as ``5/s``, enums as words."""
    return {
        name: _written(form, getattr(policy, name), f"policy: {name}")
        for name, form in _POLICY.items()
    }


def override_to_table(override: Override) -> Table:
    table: Table = {
        "changes": {
            name: _written(_POLICY[name], value, f"override: changes.{name}")
            for name, value in override.changes.items()
        }
    }
    for name, form in (("since", _MOMENT), ("until", _MOMENT), ("reason", _TEXT)):
        if value := getattr(override, name):
            table[name] = _written(form, value, f"override: {name}")
    return table


def plan_to_table(plan: Plan) -> Table:
    """The plan's policy; a plan's name is the key it is stored under."""
    return policy_to_table(plan.policy)


def plan_from_table(name: str, table: Mapping[str, object]) -> Plan:
    """The plan in ``[plans.<name>]`` of a configuration file; what is left out has its default.

    Raises:
        InvalidConfig: Unknown keys (with a suggestion) and wrong values, all of them, each with
            its path: ``plans.pro.max_mesages: unknown; did you mean max_messages?``
    """
    path = f"plans.{name}"
    faults = _Faults(strict=True)
    policy = _policy(table, path, faults)
    plan = faults.catch(path, lambda: Plan(name, policy)) if policy else None
    if plan is None or faults.found:
        raise InvalidConfig(tuple(faults.found))
    return plan


def override_from_table(table: Mapping[str, object], path: str = "override") -> Override:
    """One override as a person writes it: ``{changes = {max_messages = 500}, until = …}``.

    Raises:
        InvalidConfig: As `plan_from_table` does.
    """
    faults = _Faults(strict=True)
    override = _override(table, path, faults)
    if override is None or faults.found:
        raise InvalidConfig(tuple(faults.found))
    return override


@dataclass
class _Faults:
    """Where reading a table goes on after a fault (strict: a person reads them all) or ends."""

    strict: bool
    found: list[str] = field(default_factory=list)

    def add(self, path: str, why: str) -> None:
        self.found.append(f"{path}: {why}")
        if not self.strict:
            raise ContractError(self.found[0])

    def unknown(self, path: str, name: str, known: Mapping[str, object]) -> None:
        """A key that nobody here knows: a person's slip, or a newer version's field."""
        if self.strict:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            self.add(f"{path}.{name}", f"unknown; {hint}")

    def catch(self, path: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except ContractError as error:
            self.add(path, str(error))
            return None


@dataclass(frozen=True, slots=True)
class _Form:
    """How one field is written and read."""

    kind: type | tuple[type, ...]
    write: Callable[[Any], object]
    read: Callable[[object, str, _Faults], Any]


def _written(form: _Form, value: object, path: str) -> object:
    if not isinstance(value, form.kind) or isinstance(value, bool):
        kinds = form.kind if isinstance(form.kind, tuple) else (form.kind,)
        want = " or ".join(kind.__name__ for kind in kinds)
        raise ContractError(f"{path}: want {want}, got {value!r:.60}")
    return form.write(value)


def _fields(table: object, path: str, forms: Mapping[str, _Form], faults: _Faults) -> Table:
    """The values of the known keys of a table."""
    if not isinstance(table, Mapping):
        faults.add(path, f"want a table, got {type(table).__name__}")
        return {}
    values: Table = {}
    for name, value in table.items():
        if form := forms.get(name):
            before = len(faults.found)
            read = form.read(value, f"{path}.{name}", faults)
            if len(faults.found) == before:
                values[name] = read
        else:
            faults.unknown(path, str(name), forms)
    return values


def _policy(table: object, path: str, faults: _Faults) -> Policy | None:
    values: dict[str, Any] = _fields(table, path, _POLICY, faults)
    return faults.catch(path, lambda: Policy(**values))


def _override(table: object, path: str, faults: _Faults) -> Override | None:
    values: dict[str, Any] = _fields(table, path, _OVERRIDE, faults)
    if not faults.strict and not values.get("changes"):
        return None
    return faults.catch(path, lambda: Override(**{"changes": {}} | values))


def _read_changes(value: object, path: str, faults: _Faults) -> Table:
    return _fields(value, path, _POLICY, faults)


def _read_backoff(value: object, path: str, faults: _Faults) -> Any:
    values: dict[str, Any] = _fields(value, path, _BACKOFF, faults)
    return faults.catch(path, lambda: Backoff(**values))


def _read_rates(value: object, path: str, faults: _Faults) -> Table:
    if not isinstance(value, Mapping):
        faults.add(path, f"want a table, got {type(value).__name__}")
        return {}
    rates: Table = {}
    for name, text in value.items():
        if name == "resource" or str(name).startswith("routing."):
            rates[name] = faults.catch(f"{path}.{name}", partial(read_rate, text))
        elif faults.strict:
            faults.add(f"{path}.{name}", 'unknown; there are "resource" and "routing.<name>"')
    return rates


def _plain(read: Callable[[object], Any]) -> Callable[[object, str, _Faults], Any]:
    return lambda value, path, faults: faults.catch(path, lambda: read(value))


def _write_backoff(backoff: Backoff) -> Table:
    return {name: form.write(getattr(backoff, name)) for name, form in _BACKOFF.items()}


def _write_rates(rates: Mapping[str, Rate]) -> Table:
    return {name: _written(_RATE, rate, f"rates.{name}") for name, rate in rates.items()}


def _to_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, UnicodeEncodeError, TypeError) as error:
        raise ContractError(f"policy: it cannot be stored: {error}") from None


def _from_json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ContractError(f"policy: what was stored is no JSON: {error}") from None


_COUNT = _Form(int, int, _plain(read_count))
_DURATION = _Form(timedelta, write_seconds, _plain(read_duration))
_RATE = _Form(Rate, write_rate, _plain(read_rate))
_MOMENT = _Form(datetime, write_moment, _plain(read_moment))
_TEXT = _Form(str, str, _plain(read_text))
_BACKOFF: Mapping[str, _Form] = {
    "attempts": _COUNT,
    "first": _DURATION,
    "factor": _Form((int, float), float, _plain(read_factor)),
    "cap": _DURATION,
}
_POLICY: Mapping[str, _Form] = {
    "max_messages": _COUNT,
    "max_seconds": _DURATION,
    "max_consumers": _COUNT,
    "handler_timeout": _DURATION,
    "priority": _Form(Priority, lambda p: p.name.lower(), _plain(read_priority)),
    "order": _Form(Order, lambda o: o.value, _plain(read_order)),
    "rates": _Form(Mapping, _write_rates, _read_rates),
    "retry": _Form(Backoff, _write_backoff, _read_backoff),
    "lease": _DURATION,
    "max_crashes": _COUNT,
    "max_backlog": _COUNT,
    "ttl": _DURATION,
    "expired": _Form(Expired, lambda e: e.value, _plain(read_expired)),
}
_OVERRIDE: Mapping[str, _Form] = {
    "changes": _Form(Mapping, dict, _read_changes),
    "since": _MOMENT,
    "until": _MOMENT,
    "reason": _TEXT,
}
