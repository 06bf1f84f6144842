"""Hypothesis strategies for everything that the contract calls valid."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from attention_queue.contract import (
    AttentionRequest,
    Backoff,
    Expired,
    Order,
    Override,
    Plan,
    Policy,
    Priority,
    Rate,
    Resource,
)
from attention_queue.contract.policy import POLICY_FIELDS


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


_shown = st.characters(codec="utf-8").filter(str.isprintable)
ids = st.one_of(
    st.text("%2Ff5/.~ab", min_size=1, max_size=20),
    st.text(_shown, min_size=1, max_size=60).map(_nfc).filter(lambda t: 0 < len(t) <= 200),
)
short_ids = st.text("abcXYZ09_-./% é😀", min_size=1, max_size=12).map(_nfc)
words = st.text("abcxyzABCXYZ0189_-", min_size=1, max_size=12)
resources = st.builds(Resource, ids, ids)

durations = st.timedeltas(timedelta(milliseconds=1), timedelta(days=4000)) | st.integers(
    1, 10**15
).map(lambda n: timedelta(milliseconds=1, microseconds=n))
zones = st.just(UTC) | st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
_epoch = datetime(1970, 1, 2, tzinfo=UTC)
moments = st.builds(
    lambda days, us, zone: (_epoch + timedelta(days=days, microseconds=us)).astimezone(zone),
    st.integers(0, 365 * 8000),
    st.integers(0, 86_399_999_999),
    zones,
)
rates = st.builds(Rate, st.integers(1, 10**18 - 1), durations)
rate_tables = st.dictionaries(
    st.just("resource") | words.map(lambda word: f"routing.{word}"), rates, max_size=3
)


@st.composite
def backoffs(draw: st.DrawFn) -> Backoff:
    first, cap = sorted((draw(durations), draw(durations)))
    factor = draw(st.floats(1, 1e6) | st.integers(1, 9))
    return Backoff(attempts=draw(st.integers(1, 10**6)), first=first, factor=factor, cap=cap)


_field_values: dict[str, st.SearchStrategy[object]] = {
    "max_messages": st.integers(1, 2**63 - 1),
    "max_seconds": durations,
    "max_consumers": st.integers(1, 1000),
    "handler_timeout": durations,
    "priority": st.sampled_from(Priority),
    "order": st.sampled_from(Order),
    "rates": rate_tables,
    "retry": backoffs(),
    "lease": durations,
    "max_crashes": st.integers(1, 1000),
    "max_backlog": st.integers(1, 2**63 - 1),
    "ttl": durations,
    "expired": st.sampled_from(Expired),
}
assert _field_values.keys() == POLICY_FIELDS

changes = st.fixed_dictionaries({}, optional=_field_values)
policies = changes.filter(
    lambda c: c.get("order") is not Order.STRICT or c.get("max_consumers", 1) == 1
).map(lambda c: Policy(**c))
plans = st.builds(Plan, words, policies)


@st.composite
def overrides(draw: st.DrawFn) -> Override:
    since, until = draw(st.none() | moments), draw(st.none() | moments)
    if since and until:
        since, until = min(since, until), max(since, until) + timedelta(microseconds=1)
    return Override(
        changes=draw(changes.filter(bool)),
        since=since,
        until=until,
        reason=draw(st.text(st.characters(codec="utf-8"), max_size=20)),
    )


requests = st.builds(
    AttentionRequest,
    group=words,
    resource=st.builds(Resource, short_ids, short_ids),
    type=words,
    priority=st.sampled_from(Priority),
    routing=st.dictionaries(words, short_ids, max_size=2),
    reason=st.sampled_from(["publish", "more", "blocked", "retry", "sweep", "resume"]),
    requested_at=st.none() | moments,
    gen=st.none() | st.integers(0, 2**63 - 1),
    inc=st.none() | words,
)
