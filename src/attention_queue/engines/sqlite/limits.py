"""Rates and stopped scopes: limits of the outside world, shared by many resources."""

from __future__ import annotations

from collections.abc import Mapping

from attention_queue.clock import MS
from attention_queue.contract import Rate
from attention_queue.engines.sqlite.directory import Record, make_ready
from attention_queue.engines.sqlite.transaction import Transaction


def buckets(record: Record) -> dict[str, Rate]:
    """The buckets that the resource draws from; a routing value it does not have limits nothing."""
    found: dict[str, Rate] = {}
    for key, rate in record.policy.rates.items():
        if key == "resource":
            found[f"resource:{record.rid}"] = rate
        elif (scope := scope_of(key, record.routing)) is not None:
            found[f"group:{record.gid}:{scope}"] = rate
    return found


def scope_of(key: str, routing: Mapping[str, str]) -> str | None:
    """``routing.marketplace`` of a shop on amazon is ``routing.marketplace=amazon``."""
    value = routing.get(key.removeprefix("routing."))
    return None if value is None else f"{key}={value}"


def allowance(tx: Transaction, record: Record, limit: int) -> tuple[int, int]:
    """How many messages the rates allow now, and, if none, when one will be (ms)."""
    allowed, until = limit, 0
    for key, rate in buckets(record).items():
        level = _level(tx, key, rate)
        allowed = min(allowed, int(level))
        if level < 1:
            until = max(until, tx.now_ms + int((1 - level) / rate.per_ms) + 1)
    return max(allowed, 0), until


def charge(tx: Transaction, record: Record, messages: int) -> None:
    """Take what was lent, give back (negative) what was not handled."""
    for key, rate in buckets(record).items():
        level = min(_level(tx, key, rate) - messages, float(rate.messages))
        tx.run("fill", key, level, tx.now_ms)


def _level(tx: Transaction, key: str, rate: Rate) -> float:
    row = tx.first("bucket", key)
    if row is None:
        return float(rate.messages)
    gained = max(tx.now_ms - row[1], 0) * rate.per_ms
    level: float = min(row[0] + gained, float(rate.messages))
    return level


def stopped(tx: Transaction, record: Record) -> tuple[int, str | None]:
    """Until when a stopped scope holds the resource (0: not), or the scope that it now probes."""
    if tx.scopes_stopped is None:
        tx.scopes_stopped = tx.first("any_scope") is not None
    if not tx.scopes_stopped:
        return 0, None
    probe: str | None = None
    for name in record.routing:
        scope = scope_of(f"routing.{name}", record.routing)
        row = tx.first("scope", record.gid, scope)
        if row is None:
            continue
        if row[0] > tx.now_ms:
            return row[0], None
        probe = scope
    return 0, probe


def begin_probe(tx: Transaction, record: Record, scope: str) -> None:
    """One resource tries; the others wait for it, or for its lease to end."""
    tx.run("probe_scope", tx.now_ms + record.policy.lease // MS, record.gid, scope)


def stop_scope(tx: Transaction, record: Record, scope: str, until_ms: int, reason: str) -> None:
    tx.run("stop_scope", record.gid, scope, until_ms, reason)
    tx.scopes_stopped = True


def probe_succeeded(tx: Transaction, record: Record, scope: str) -> None:
    """The outside service is back: all that waited for it are ready, in the order they get."""
    tx.run("clear_scope", record.gid, scope)
    for name, value in record.routing.items():
        if scope == scope_of(f"routing.{name}", record.routing):
            for (rid,) in tx.all("held_by_stop", record.gid, name, value):
                make_ready(tx, rid)
