"""``key=value`` as people type the fields of a plan, and tables back as they read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from attention_queue.cli.exits import Exit, Leave
from attention_queue.contract.codec import override_from_table, policy_to_table
from attention_queue.contract.policy import FOREVER, UNBOUNDED, Policy
from attention_queue.contract.units import write_duration
from attention_queue.errors import InvalidConfig


def table_of(words: Sequence[str]) -> dict[str, object]:
    """``max_consumers=6 retry.attempts=3 rates.resource=5/s`` as a table of tables.

    A dot leads into ``retry`` and ``rates``; behind ``rates.`` all is one name, as in
    ``rates.routing.marketplace=100/s``.
    """
    table: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals or not text:
            raise Leave(Exit.USAGE, f"{word!r}: want key=value, such as max_consumers=6")
        outer, dot, inner = name.partition(".")
        if not dot:
            table[name] = _value(text)
            continue
        within = table.setdefault(outer, {})
        if not isinstance(within, dict):
            raise Leave(Exit.USAGE, f"{word!r}: {outer} has a value of its own already")
        within[inner] = _value(text)
    return table


def changes_of(words: Sequence[str]) -> Mapping[str, object]:
    """The changes of an override, each of its field's own type."""
    if not words:
        raise Leave(Exit.USAGE, "change what? add key=value, such as max_consumers=6")
    try:
        return override_from_table({"changes": table_of(words)}).changes
    except InvalidConfig as error:
        # One that is wrong is not there, so that of one alone nothing is left: that is no news.
        told = [each for each in error.problems if "it changes nothing" not in each]
        why = "\n  ".join(each.removeprefix("override.changes.") for each in told)
        raise Leave(Exit.USAGE, why) from None


def written(value: object, between: str = " = ") -> str:
    """A table in one line; one inside another keeps its braces away."""
    match value:
        case Mapping():
            return ", ".join(f"{k}{between}{written(v, ' ')}" for k, v in value.items())
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def policy_facts(policy: Policy) -> Iterator[tuple[str, str]]:
    """Its fields by name, in the order in which they are declared."""
    for name, value in policy_to_table(policy).items():
        own = getattr(policy, name)
        if own in (UNBOUNDED, FOREVER):
            yield name, "no limit"
        elif isinstance(own, timedelta):
            yield name, write_duration(own)
        elif value != {}:
            yield name, written(value, " ")


def _value(text: str) -> object:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    whole, dot, rest = text.partition(".")
    if dot and f"{whole}{rest}".isdigit() and text.isascii() and len(text) < 20:
        return float(text)
    return text
