"""The filter language of all lists: ``plan:pro state:paused tenant:eu-* backlog:>1000``, and of
dead letters: ``error:Timeout type:stock.updated older:>1h``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from attention_queue.contract import State
from attention_queue.contract.figures import ResourceFilter
from attention_queue.contract.operation import Selection
from attention_queue.contract.units import read_duration
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


def read_selection(words: Sequence[str]) -> tuple[Selection, str | None]:
    """Which dead letters, and the resource as it was typed, if one was. No word: all of them.

    A word without a colon is a resource, a number behind ``id:`` one dead letter.

    Raises:
        ContractError: A word that means nothing, or two that cannot both hold.
    """
    wanted, resource = Selection(), None
    for text in words:
        name, colon, value = text.partition(":")
        if not colon or name == "resource":
            if resource is not None:
                raise ContractError(f"{text!r}: there is a resource already, {resource!r}")
            resource = value if colon else text
            continue
        if name not in _SELECTIONS or not value:
            known = ", ".join(f"{each}:" for each in ("resource", *_SELECTIONS))
            raise ContractError(f"filter {text!r}: want one of {known} with a value behind it")
        wanted = _SELECTIONS[name](wanted, value)
    return wanted, resource


def _tenant(wanted: Selection, value: str) -> Selection:
    if value.endswith("*"):
        raise ContractError(f"filter tenant:{value}: want a whole tenant here")
    return replace(wanted, tenant=value)


def _number(wanted: Selection, value: str) -> Selection:
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise ContractError(f"filter id:{value}: want the number of a dead letter, such as id:17")
    return replace(wanted, ids=(*(wanted.ids or ()), int(value)))


def _older(wanted: Selection, value: str) -> Selection:
    if not value.startswith(">"):
        raise ContractError(f"filter older:{value}: want older:>1h")
    return replace(wanted, older_than=read_duration(value[1:]))


_SELECTIONS: Mapping[str, Callable[[Selection, str], Selection]] = {
    "tenant": _tenant,
    "type": lambda wanted, value: replace(wanted, type=value),
    "error": lambda wanted, value: replace(wanted, error=value),
    "reason": lambda wanted, value: replace(wanted, reason=value),
    "id": _number,
    "older": _older,
}


def _oldest(wanted: ResourceFilter, value: str) -> ResourceFilter:
    if not value.startswith(">"):
        raise ContractError(f"filter oldest:{value}: want oldest:>5m")
    return replace(wanted, older_than=read_duration(value[1:]))


_FILTERS: Mapping[str, Callable[[ResourceFilter, str], ResourceFilter]] = {
    "plan": lambda wanted, value: replace(wanted, plan=value),
    "state": _state,
    "tenant": lambda wanted, value: replace(wanted, tenant=value),
    "id": lambda wanted, value: replace(wanted, id=value),
    "backlog": _backlog,
    "oldest": _oldest,
    "error": lambda wanted, value: replace(wanted, error=value),
}
