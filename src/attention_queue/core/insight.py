"""The read model of all faces: figures into verdicts. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from attention_queue.contract import Hold, Order, State
from attention_queue.contract.figures import (
    AHEAD_COUNTED,
    ResourceFigures,
    TokenFigures,
)
from attention_queue.core.health import LATE, nobody_works
from attention_queue.core.outlook import Limit, alive, hints, limit_at_work, numbers
from attention_queue.core.wording import duration, messages, moment, plural, times

_RAISE = "raise rates if the outside service allows more: attn plan show {}"
_RENEWED_AT_LEAST = 0.5  # of the lease: renewed at a third, so less than this left is overdue


class Word(Enum):
    """Why a resource is, or is not, being served."""

    SERVING = "serving"
    WAITING_TURN = "waiting_turn"
    WAITING_TOKEN = "waiting_token"
    RATE_LIMITED = "rate_limited"
    PAUSED = "paused"
    MAINTENANCE = "maintenance"
    DISABLED = "disabled"
    CREDENTIALS_ERROR = "credentials_error"
    BACKING_OFF = "backing_off"
    IDLE = "idle"
    UNATTENDED = "unattended"
    NO_WORKERS = "no_workers"
    POISON = "poison"
    UNKNOWN = "unknown"


_LIMITS = {
    Word.WAITING_TURN: Limit.SLOTS,
    Word.WAITING_TOKEN: Limit.CONSUMERS,
    Word.RATE_LIMITED: Limit.RATE,
    Word.PAUSED: Limit.STATE,
    Word.MAINTENANCE: Limit.STATE,
    Word.DISABLED: Limit.STATE,
    Word.CREDENTIALS_ERROR: Limit.OUTSIDE,
    Word.NO_WORKERS: Limit.WORKERS,
    Word.POISON: Limit.HEAD,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """``because`` is one sentence for a person; ``try_this`` are things that may be done.

    ``limit`` is what keeps it from going faster; None: nothing does.
    """

    verdict: Word
    because: str
    try_this: tuple[str, ...] = ()
    limit: Limit | None = None
    numbers: Mapping[str, object] = field(default_factory=dict)


def explain(seen: ResourceFigures | None) -> Verdict:
    """Why the resource is (not) being served; None: there is no such resource."""
    if seen is None:
        return Verdict(
            Word.UNKNOWN,
            "nobody has published for it or registered it",
            ("check the name: attn ls shows those that there are",),
        )
    said = _verdict(seen)
    return replace(
        said,
        limit=said.limit or _LIMITS.get(said.verdict),
        try_this=(*said.try_this, *hints(seen, name_of(seen))),
        numbers=numbers(seen),
    )


def _verdict(seen: ResourceFigures) -> Verdict:
    state = seen.state.at(seen.at)
    if state is not State.ACTIVE:
        return _held_by_state(seen, state)
    live = alive(seen)
    if seen.backlog and seen.request is None and not live:
        return Verdict(
            Word.UNATTENDED,
            f"{messages(seen.backlog)} and no request stands for them",
            ("attn reconcile asks for them now; a worker does so within a minute",),
        )
    if seen.next and seen.next.crashes:
        return _poison(seen)
    if live:
        return _served(seen, live)
    if seen.request is None:
        return _idle(seen)
    return _waiting(seen)


def _held_by_state(seen: ResourceFigures, state: State) -> Verdict:
    word = {
        State.PAUSED: Word.PAUSED,
        State.MAINTENANCE: Word.MAINTENANCE,
        State.CREDENTIALS_ERROR: Word.CREDENTIALS_ERROR,
    }.get(state, Word.DISABLED)
    by = f" by {seen.state.actor}" if seen.state.actor else ""
    why = f": {seen.state.reason}" if seen.state.reason else ""
    until = f" until {moment(seen.state.until)}" if seen.state.until else ""
    advice = {
        State.CREDENTIALS_ERROR: f"renew its credentials, then {command('resume', seen)}",
        State.RETIRING: "publish to another resource: this one takes no more work",
        State.REMOVED: "publish to another resource: this one is gone",
    }.get(state, f"when it may be served again: {command('resume', seen)}; its work is kept")
    return Verdict(word, f"it was set to {state.value}{by}{until}{why}", (advice,))


def command(verb: str, seen: ResourceFigures, rest: str = "") -> str:
    """What to type at a shell."""
    return f"attn {verb} {name_of(seen)}{f' {rest}' if rest else ''}"


def name_of(seen: ResourceFigures) -> str:
    return shlex.quote(str(seen.resource))


def _poison(seen: ResourceFigures) -> Verdict:
    head = seen.next
    assert head is not None
    return Verdict(
        Word.POISON,
        f"a process died {times(head.crashes)} with message {head.id} ({head.type}) alone in hand; "
        f"at {seen.policy.max_crashes} it goes to the dead letters",
        (
            f"look for what kills the process in the handler of {head.type}",
            f"to stop it meanwhile: {command('pause', seen, '--reason poison')}",
        ),
    )


def _served(seen: ResourceFigures, live: Sequence[TokenFigures]) -> Verdict:
    lease = seen.policy.lease
    if all(token.until - seen.at < lease * _RENEWED_AT_LEAST for token in live):
        first = min(live, key=lambda token: token.until)
        return Verdict(
            Word.WAITING_TOKEN,
            f"{first.owner} holds its token and has not renewed it: it is taken to be dead "
            f"in {duration(first.until - seen.at)}",
            (
                "see whether that worker still runs; if it does, something blocks its process",
                f"if it is dead: {command('token release', seen, '--reason dead')}",
            ),
        )
    loaned = sum(token.loaned for token in live)
    limit = seen.policy.max_consumers
    held_by = limit_at_work(seen, len(live), loaned)
    return Verdict(
        Word.SERVING,
        f"{len(live)} of {limit} {plural(limit, 'consumer')} at work, {messages(loaned)} in hand",
        _faster(seen, held_by),
        held_by,
    )


def _faster(seen: ResourceFigures, limit: Limit | None) -> tuple[str, ...]:
    if limit is Limit.RATE:
        return (_RAISE.format(seen.plan),)
    if limit is not Limit.CONSUMERS:
        return ()
    if seen.policy.order is Order.STRICT:
        return ("its limit is the strict order: one consumer keeps it, and no more may help",)
    more = command("boost", seen, f"--consumers {seen.policy.max_consumers * 2} --for 30m")
    return (
        f"its limit is max_consumers: {more}",
        "or a plan with more of them, for good: attn plan ls",
    )


def _idle(seen: ResourceFigures) -> Verdict:
    if seen.dead:
        letters = f"{seen.dead} dead {plural(seen.dead, 'letter')}"
        there = "is" if seen.dead == 1 else "are"
        return Verdict(
            Word.IDLE,
            f"no work is left, and there {there} {letters}",
            (f"see why: {command('dlq ls', seen)}",),
        )
    return Verdict(Word.IDLE, "no work is left")


def _waiting(seen: ResourceFigures) -> Verdict:
    request = seen.request
    assert request is not None
    if request.due is None:
        return _in_line(seen)
    wait = f"in {duration(request.due - seen.at)}"
    match request.hold:
        case Hold.RATE:
            return Verdict(
                Word.RATE_LIMITED,
                f"its rate is used up; the next message is allowed {wait}",
                (_RAISE.format(seen.plan),),
            )
        case Hold.STOP:
            return _stopped(seen, wait)
        case Hold.BUSY:
            return Verdict(
                Word.WAITING_TOKEN,
                f"its tokens were out when it was looked at; it is looked at again {wait}",
            )
        case Hold.STATE:
            return _late(seen, "it is active, and its request still waits for that")
        case Hold.HEAD | None:
            return _delayed(seen, wait)


def _stopped(seen: ResourceFigures, wait: str) -> Verdict:
    why = f": {seen.stop}" if seen.stop else ""
    return Verdict(
        Word.BACKING_OFF,
        f"a handler said Stop; it is tried again {wait}{why}",
        (
            "see whether the outside service is up; nothing is lost meanwhile",
            f"if it is: {command('nudge', seen)}",
        ),
        Limit.OUTSIDE,
    )


def _in_line(seen: ResourceFigures) -> Verdict:
    request = seen.request
    assert request is not None
    waited = seen.at - request.since
    if nobody_works(seen.line, seen.at):
        return Verdict(
            Word.NO_WORKERS,
            f"it has been in line for {duration(waited)} and no worker holds any token",
            ("start a worker: attn worker your_module:queue",),
        )
    turn = "it is next"
    if request.ahead:
        more = " or more" if request.ahead >= AHEAD_COUNTED else ""
        turn = f"{request.ahead:,}{more} {plural(request.ahead, 'request')} before it"
    return Verdict(
        Word.WAITING_TURN,
        f"in line for {duration(waited)} in the lane {request.priority.name.lower()}; {turn}",
        (
            "more slots or processes shorten the line",
            f"to let it go first: {command('boost', seen, '--priority high --for 30m')}",
        )
        if waited > LATE
        else (),
    )


def _delayed(seen: ResourceFigures, wait: str) -> Verdict:
    head = seen.next
    if head is None or head.due is None:
        return _late(seen, f"there is work to do now, and its request comes only {wait}")
    if head.unknown_since:
        return Verdict(
            Word.BACKING_OFF,
            f"no worker handles messages of type {head.type}; they are offered again {wait}",
            (f"start a worker that has a handler for {head.type}",),
            Limit.WORKERS,
        )
    if head.failed:
        why = f": {head.error}" if head.error else ""
        attempts = seen.policy.retry.attempts
        return Verdict(
            Word.BACKING_OFF,
            f"attempt {head.failed} of {attempts} at {head.type} failed; again {wait}{why}",
            ("look at the error; after the last attempt it goes to the dead letters",),
            Limit.HEAD,
        )
    return Verdict(Word.IDLE, f"all its work is delayed; the next message is due {wait}")


def _late(seen: ResourceFigures, why: str) -> Verdict:
    advice = f"{command('nudge', seen)}; attn reconcile does so for all, a worker within a minute"
    return Verdict(Word.UNATTENDED, why, (advice,))
