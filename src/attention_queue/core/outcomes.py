"""From what a handler did to what becomes of its message. Pure."""

from __future__ import annotations

import random
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attention_queue.contract import (
    DONE,
    Delivery,
    Done,
    Failure,
    Outcome,
    Policy,
    Reject,
    Retry,
    Stop,
)

_TEXT, _TRACE = 2_000, 8_000  # characters kept


def failure_of(error: BaseException) -> Failure:
    """The error as it is kept: its type, its text, the end of its trace."""
    trace = "".join(traceback.format_exception(error))
    return Failure(type(error).__name__, shown(_text(error))[:_TEXT], shown(trace)[-_TRACE:])


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as exc:  # else nothing would be an attempt, and the message come for ever
        return f"(no text: its __str__ raised {type(exc).__name__})"


def shown(text: str) -> str:
    """Text that every store takes: no NUL, no lone surrogate."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def outcomes_of(result: Any, count: int) -> Sequence[Outcome]:
    """One outcome per message from what the handler returned: nothing, one, or one each.

    Raises:
        TypeError: It is none of these; the attempt has failed.
    """
    if result is None:
        return [DONE] * count
    if isinstance(result, Done | Retry | Reject | Stop):
        return [_storable(result)] * count
    if isinstance(result, list | tuple) and len(result) == count:
        each = [DONE if one is None else one for one in result]
        if all(isinstance(one, Done | Retry | Reject | Stop) for one in each):
            return [_storable(one) for one in each]
    raise TypeError(
        f"a handler returns None, Done, Retry, Reject or Stop, or one of them for each of its "
        f"{count} messages; it returned {shown(repr(result))[:200]}"
    )


def _storable(outcome: Outcome) -> Outcome:
    """The outcome with texts that every store takes, whatever the handler put in their place."""
    match outcome:
        case Reject(reason, failure):
            return Reject(shown(str(reason))[:_TEXT], _storable_failure(failure))
        case Retry(after, Failure() as failure):
            return Retry(after, _storable_failure(failure))
        case Stop(reason):
            return replace(outcome, reason=shown(str(reason))[:_TEXT])
    return outcome


def _storable_failure(failure: Failure | None) -> Failure | None:
    if failure is None:
        return None
    error, message, trace = (shown(str(t)) for t in (failure.error, failure.message, failure.trace))
    return Failure(error[:_TEXT], message[:_TEXT], trace[-_TRACE:])


def settlement(
    delivery: Delivery, outcome: Done | Retry | Reject, policy: Policy, chance: random.Random
) -> Done | Retry | Reject:
    """The outcome with the policy's back-off, or a dead letter once the attempts are used up."""
    match outcome:
        case Retry() if delivery.attempt >= policy.retry.attempts:
            return Reject("attempts_exhausted", outcome.failure)
        case Retry(after=None):
            return Retry(policy.retry.wait(delivery.attempt, chance.random()), outcome.failure)
        case _:
            return outcome
