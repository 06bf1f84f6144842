"""Figures in, verdicts out: every verdict, and what decides between two of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from attention_queue.contract import Hold, Policy, Priority, Resource, ResourceState, State
from attention_queue.contract.figures import (
    GroupFigures,
    LineFigures,
    NextFigures,
    Overview,
    RequestFigures,
    ResourceFigures,
    TokenFigures,
)
from attention_queue.core.health import Health, status
from attention_queue.core.insight import Word, explain

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

IN_LINE = RequestFigures(priority=Priority.NORMAL, since=NOW - SECOND, due=None, hold=None, ahead=3)
LONG_IN_LINE = replace(IN_LINE, since=NOW - 20 * SECOND)
PARKED = replace(IN_LINE, due=NOW + 5 * SECOND)
TOKEN = TokenFigures(slot=0, owner="w-1", fence=7, until=NOW + 25 * SECOND, loaned=10)
ENDED = replace(TOKEN, until=NOW - SECOND)
SILENT = replace(TOKEN, until=NOW + 10 * SECOND)
HEAD = NextFigures(
    id="m-1",
    type="stock.updated",
    enqueued=NOW - SECOND,
    due=None,
    failed=0,
    crashes=0,
    error="",
    unknown_since=None,
)
DELAYED = replace(HEAD, due=NOW + 5 * SECOND)
IDLE = ResourceFigures(
    at=NOW,
    group="shops",
    type="store",
    resource=Resource("eu", "s-1"),
    plan="basic",
    policy=Policy(),
    overrides=(),
    routing={},
    state=ResourceState(),
    request=None,
    tokens=(),
    backlog=0,
    oldest=None,
    next=None,
    dead=0,
    stop="",
    line=LineFigures(tokens=2, waiting_since=NOW - SECOND),
)
WORK = replace(IDLE, backlog=40, oldest=NOW - SECOND, next=HEAD, request=IN_LINE)
ABANDONED = LineFigures(tokens=0, waiting_since=NOW - 20 * SECOND)


def in_state(state: State, **changes: object) -> ResourceFigures:
    return replace(WORK, state=ResourceState(state, "stock taking", "kim"), **changes)


VERDICTS = [
    ("a valid token", replace(WORK, tokens=(TOKEN,), request=PARKED), Word.SERVING),
    ("in line", WORK, Word.WAITING_TURN),
    ("in line, and the last token has ended", replace(WORK, tokens=(ENDED,)), Word.WAITING_TURN),
    ("a token nobody renews", replace(WORK, tokens=(SILENT,), request=PARKED), Word.WAITING_TOKEN),
    ("one of two renewed", replace(WORK, tokens=(SILENT, TOKEN), request=PARKED), Word.SERVING),
    (
        "held as busy and no token is out",
        replace(WORK, request=replace(PARKED, hold=Hold.BUSY)),
        Word.WAITING_TOKEN,
    ),
    ("a rate", replace(WORK, request=replace(PARKED, hold=Hold.RATE)), Word.RATE_LIMITED),
    ("a stop", replace(WORK, request=replace(PARKED, hold=Hold.STOP)), Word.BACKING_OFF),
    (
        "strict order waits for the retry of its head",
        replace(
            WORK,
            request=replace(PARKED, hold=Hold.HEAD),
            next=replace(DELAYED, failed=2, error="ValueError: no"),
        ),
        Word.BACKING_OFF,
    ),
    ("a retry", replace(WORK, request=PARKED, next=replace(DELAYED, failed=1)), Word.BACKING_OFF),
    (
        "a type nobody handles",
        replace(WORK, request=PARKED, next=replace(DELAYED, unknown_since=NOW)),
        Word.BACKING_OFF,
    ),
    ("only delayed work", replace(WORK, request=PARKED, next=DELAYED), Word.IDLE),
    ("no work", IDLE, Word.IDLE),
    ("only dead letters", replace(IDLE, dead=2), Word.IDLE),
    ("paused", in_state(State.PAUSED), Word.PAUSED),
    ("paused without work", replace(in_state(State.PAUSED), backlog=0), Word.PAUSED),
    (
        "a pause that is over",
        replace(WORK, state=ResourceState(State.PAUSED, until=NOW)),
        Word.WAITING_TURN,
    ),
    ("maintenance", in_state(State.MAINTENANCE), Word.MAINTENANCE),
    ("disabled", in_state(State.DISABLED), Word.DISABLED),
    ("retiring", in_state(State.RETIRING), Word.DISABLED),
    ("removed", in_state(State.REMOVED), Word.DISABLED),
    ("credentials", in_state(State.CREDENTIALS_ERROR), Word.CREDENTIALS_ERROR),
    ("work and no request", replace(WORK, request=None), Word.UNATTENDED),
    ("work now and a request later", replace(WORK, request=PARKED), Word.UNATTENDED),
    (
        "active and still held by its state",
        replace(WORK, request=replace(PARKED, hold=Hold.STATE)),
        Word.UNATTENDED,
    ),
    ("nobody comes", replace(WORK, request=LONG_IN_LINE, line=ABANDONED), Word.NO_WORKERS),
    (
        "long in line, but somebody works",
        replace(WORK, request=LONG_IN_LINE, line=replace(ABANDONED, tokens=1)),
        Word.WAITING_TURN,
    ),
    ("it kills processes", replace(WORK, next=replace(HEAD, crashes=2)), Word.POISON),
    ("no such resource", None, Word.UNKNOWN),
]


@pytest.mark.parametrize(("seen", "word"), [v[1:] for v in VERDICTS], ids=[v[0] for v in VERDICTS])
def test_a_verdict_says_why_a_resource_is_or_is_not_served(
    seen: ResourceFigures | None, word: Word
) -> None:
    verdict = explain(seen)

    assert verdict.verdict is word
    assert verdict.because


def test_every_verdict_can_be_reached() -> None:
    assert {word for *_, word in VERDICTS} == set(Word)


def test_a_state_is_told_with_who_why_and_until_when() -> None:
    state = ResourceState(State.PAUSED, "stock taking", "kim", NOW + timedelta(hours=1))

    said = explain(replace(WORK, state=state)).because

    assert said == "it was set to paused by kim until 2026-06-01 13:00:00 UTC: stock taking"


def test_the_numbers_behind_a_verdict_are_plain() -> None:
    numbers = explain(replace(WORK, tokens=(TOKEN,), dead=2)).numbers

    assert numbers == {
        "backlog": 40,
        "oldest_seconds": 1.0,
        "dead_letters": 2,
        "expired": 0,
        "tokens": 1,
        "max_consumers": 1,
        "max_messages": 100,
        "in_hand": 10,
        "ahead": 3,
        "waited_seconds": 1.0,
        "next_look": None,
        "arrival_per_second": None,
        "service_per_second": None,
        "consumer_per_second": None,
        "clear_seconds": None,
    }


def test_who_has_more_work_than_its_limit_lets_through_is_told_so() -> None:
    seen = replace(WORK, tokens=(TOKEN,), backlog=5_000, request=PARKED)

    assert "max_consumers" in explain(seen).try_this[0]


GROUP = GroupFigures(
    name="shops",
    type="store",
    plans=(),
    backlog=40,
    busy=3,
    ready=2,
    parked={},
    tokens=1,
    ended_tokens=0,
    waiting_since=NOW - SECOND,
    dead=0,
)


@pytest.mark.parametrize(
    ("group", "health", "said"),
    [
        (GROUP, Health.HEALTHY, "40 messages, 1 resource being served and 2 in line"),
        (replace(GROUP, backlog=0, busy=0, ready=0, tokens=0, waiting_since=None), Health.HEALTHY,
         "no work is left"),
        (replace(GROUP, ready=0, tokens=0, waiting_since=None), Health.HEALTHY,
         "40 messages, none of them due now"),
        (replace(GROUP, tokens=0), Health.HEALTHY,
         "40 messages, 0 resources being served and 2 in line"),
        (replace(GROUP, tokens=0, waiting_since=NOW - 20 * SECOND), Health.DEGRADED,
         "no worker: 40 messages and a request has waited 20s"),
        (replace(GROUP, waiting_since=NOW - 200 * SECOND), Health.DEGRADED,
         "behind: a request has waited 3m 20s in line"),
    ],
    ids=["served", "nothing to do", "nothing due", "a worker may come", "no worker", "too few"],
)  # fmt: skip
def test_the_status_is_one_sentence(group: GroupFigures, health: Health, said: str) -> None:
    found = status(Overview(at=NOW, groups=(group,)))

    assert (found.health, found.because) == (health, said)


def test_a_worker_of_one_group_is_no_comfort_to_a_stranger_but_counts() -> None:
    other = replace(GROUP, name="others", tokens=0, waiting_since=NOW - 20 * SECOND)

    assert status(Overview(at=NOW, groups=(GROUP, other))).health is Health.HEALTHY


def test_where_nothing_is_there_is_nothing_wrong() -> None:
    assert status(Overview(at=NOW, groups=())).health is Health.HEALTHY
