"""The filter language of all lists: ``plan:pro state:paused tenant:eu-* backlog:>1000``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from attention_queue.contract import State
from attention_queue.contract.figures import ResourceFilter
from attention_queue.errors import ContractError


def read_filter(words: Sequence[str], *, busy: bool = False) -> ResourceFilter:
    """Each word narrows the list; one without a colon is an id. ``*`` may end a tenant or an id.

    Raises:
        ContractError: A word that means nothing.
    """
    wanted = ResourceFilter(busy=busy)
    for text in words:
        name, colon, value = text.partition(":")
        if not colon:
            name, value = "id", text
        if name not in _FILTERS or not value:
            known = ", ".join(f"{each}:" for each in _FILTERS)
            raise ContractError(f"filter {text!r}: want one of {known} with a value behind it")
        wanted = _FILTERS[name](wanted, value)
    return wanted


def _state(wanted: ResourceFilter, value: str) -> ResourceFilter:
    try:
        return replace(wanted, state=State(value))
    except ValueError:
        known = ", ".join(state.value for state in State)
        raise ContractError(f"filter state:{value}: want one of {known}") from None


def _backlog(wanted: ResourceFilter, value: str) -> ResourceFilter:
    number = value.removeprefix(">")
    if not value.startswith(">") or not (number.isascii() and number.isdigit()):
        raise ContractError(f"filter backlog:{value}: want backlog:>1000")
    return replace(wanted, more_than=int(number))


_FILTERS: Mapping[str, Callable[[ResourceFilter, str], ResourceFilter]] = {
    "plan": lambda wanted, value: replace(wanted, plan=value),
    "state": _state,
    "tenant": lambda wanted, value: replace(wanted, tenant=value),
    "id": lambda wanted, value: replace(wanted, id=value),
    "backlog": _backlog,
}
