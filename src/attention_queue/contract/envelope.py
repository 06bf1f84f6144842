"""The attention request on the wire: JSON under 512 bytes that producers in any language can write.

Version 1 is ours; `Foreign` is the form without a version, as the pattern was first published.
Versions are additive: unknown fields are left out, a higher ``v`` raises `NewerEnvelope`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from attention_queue.contract.messages import NO_HEADERS, AttentionRequest
from attention_queue.contract.names import id_fault, word_fault
from attention_queue.contract.policy import Priority
from attention_queue.contract.resource import Resource
from attention_queue.errors import InvalidEnvelope, NewerEnvelope

VERSION = 1
MAX_ENVELOPE = 511  # bytes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_LAST_MS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MS
_PRIORITIES = {priority.name.lower(): priority for priority in Priority}
_path = re.compile(r"(.*) - at .*`(\$[^`]*)`", re.DOTALL)
_missing = re.compile(r"Object missing required field `([^`]+)`")

Milliseconds = Annotated[int, Meta(ge=0, le=_LAST_MS)]
Generation = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Version 1. Times are whole milliseconds since 1970."""

    v: int = VERSION
    group: str | UnsetType = UNSET
    tenant: str
    id: str
    type: str = "resource"
    priority: str = "normal"
    routing: Mapping[str, str] | UnsetType = UNSET
    reason: str = "publish"
    requested_at: Milliseconds | UnsetType = UNSET
    gen: Generation | UnsetType = UNSET  # ours only; a producer of your own sends neither
    inc: str | UnsetType = UNSET


class Foreign(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The form without ``v``: a store, or a resource with its type."""

    tenant_id: str | UnsetType = UNSET
    store_id: str | UnsetType = UNSET
    resource_type: str | UnsetType = UNSET
    resource_id: str | UnsetType = UNSET
    marketplace: str | UnsetType = UNSET
    priority: str = "normal"


class _Version(msgspec.Struct):
    v: Annotated[int, Meta(ge=1, le=999_999)] | UnsetType = UNSET


_encoder = msgspec.json.Encoder()
_version = msgspec.json.Decoder(_Version)
_envelope = msgspec.json.Decoder(Envelope)
_foreign = msgspec.json.Decoder(Foreign)


def encode(request: AttentionRequest) -> bytes:
    """Version 1 of it, its time cut to the millisecond.

    Raises:
        InvalidEnvelope: A field that `decode` would refuse, or more than `MAX_ENVELOPE` bytes in
            all (very long ids, or much routing).
    """
    envelope = Envelope(
        group=request.group,
        tenant=request.resource.tenant,
        id=request.resource.id,
        type=request.type,
        priority=request.priority.name.lower(),
        routing=dict(request.routing) or UNSET,
        reason=request.reason,
        requested_at=UNSET if request.requested_at is None else _to_ms(request.requested_at),
        gen=UNSET if request.gen is None else request.gen,
        inc=UNSET if request.inc is None else request.inc,
    )
    for name, why in _faults(envelope):
        raise InvalidEnvelope(f"$.{name}", why)
    data = _encoder.encode(envelope)
    _check_size(data)
    return data


def decode(data: bytes, *, group: str | None = None) -> AttentionRequest:
    """Read either form.

    ``group`` is that of the attention queue it was taken from. It stands in where the sender names
    none, which the form without a version never does; a sender that names another is refused.

    Raises:
        NewerEnvelope: Its version is higher than `VERSION`: keep it.
        InvalidEnvelope: It can never be read; ``path`` says where the fault is. No other
            exception, whatever the bytes are.
    """
    _check_size(data)
    try:
        data.decode()  # msgspec looks at no text that it skips
        version = _version.decode(data).v
        if version is UNSET:
            return _from_foreign(_foreign.decode(data), group)
        if version > VERSION:
            raise NewerEnvelope(version, VERSION)
        return _request(_envelope.decode(data), group, {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None


def _check_size(data: bytes) -> None:
    if len(data) > MAX_ENVELOPE:
        raise InvalidEnvelope("$", f"{len(data)} bytes, at most {MAX_ENVELOPE} are allowed")


def _from_foreign(foreign: Foreign, group: str | None) -> AttentionRequest:
    if foreign.tenant_id is UNSET:
        raise InvalidEnvelope("$", 'it has neither "v" nor "tenantId"')
    if (foreign.store_id is UNSET) == (foreign.resource_id is UNSET):
        raise InvalidEnvelope("$", 'want either "storeId" or "resourceType" and "resourceId"')
    names = {"tenant": "tenantId", "type": "resourceType", "routing.marketplace": "marketplace"}
    if foreign.store_id is not UNSET:
        names["id"], id, type = "storeId", foreign.store_id, "store"
    else:
        assert foreign.resource_id is not UNSET
        if foreign.resource_type is UNSET:
            raise InvalidEnvelope("$.resourceType", "it is missing")
        names["id"], id, type = "resourceId", foreign.resource_id, foreign.resource_type
    routing = UNSET if foreign.marketplace is UNSET else {"marketplace": foreign.marketplace}
    priority = foreign.priority.lower()
    envelope = Envelope(
        tenant=foreign.tenant_id, id=id, type=type, priority=priority, routing=routing
    )
    return _request(envelope, group, names)


def _request(envelope: Envelope, group: str | None, names: Mapping[str, str]) -> AttentionRequest:
    """The request; ``names`` has the fields that its sender calls something else."""
    for name, why in _faults(envelope):
        raise InvalidEnvelope(f"$.{names.get(name, name)}", why)
    if envelope.group is not UNSET and group not in (None, envelope.group):
        raise InvalidEnvelope("$.group", f"it is of {envelope.group!r}, this queue is {group!r}'s")
    own = group if envelope.group is UNSET else envelope.group
    if own is None:
        raise InvalidEnvelope("$.group", "it is missing")
    return AttentionRequest(
        group=own,
        resource=Resource(envelope.tenant, envelope.id),
        type=envelope.type,
        priority=_PRIORITIES[envelope.priority],
        routing=NO_HEADERS if envelope.routing is UNSET else envelope.routing,
        reason=envelope.reason,
        requested_at=(
            None if envelope.requested_at is UNSET else _EPOCH + envelope.requested_at * _MS
        ),
        gen=None if envelope.gen is UNSET else envelope.gen,
        inc=None if envelope.inc is UNSET else envelope.inc,
    )


def _faults(envelope: Envelope) -> Iterator[tuple[str, str]]:
    """What msgspec has not looked at."""
    for name, check in _CHECKS.items():
        value = getattr(envelope, name)
        if value is not UNSET and (why := check(value)):
            yield name, why
    if envelope.routing is not UNSET:
        for name, value in envelope.routing.items():
            if why := word_fault(name):
                yield "routing", f"{name[:40]!r}: {why}"
            elif why := id_fault(value):
                yield f"routing.{name}", why


def _priority_fault(text: str) -> str | None:
    return None if text in _PRIORITIES else f"want {' or '.join(_PRIORITIES)}, got {text[:40]!r}"


def _gen_fault(gen: int) -> str | None:
    return None if 0 <= gen < 2**63 else "want 0 to 2^63 - 1"


_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "group": word_fault,
    "tenant": id_fault,
    "id": id_fault,
    "type": word_fault,
    "priority": _priority_fault,
    "reason": id_fault,
    "gen": _gen_fault,
    "inc": word_fault,
}


def _to_ms(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise InvalidEnvelope("$.requested_at", "want a time with its zone (datetime.now(UTC))")
    ms = (moment - _EPOCH) // _MS
    if not 0 <= ms <= _LAST_MS:
        raise InvalidEnvelope("$.requested_at", f"want a time from 1970 to 9999, got {moment}")
    return ms


def _invalid(text: str) -> InvalidEnvelope:
    """The vendor's text, taken apart: "Expected `int`, got `str` - at `$.requested_at`"."""
    if found := _missing.fullmatch(text):
        return InvalidEnvelope(f"$.{found[1]}", "it is missing")
    if found := _path.fullmatch(text):
        return InvalidEnvelope(found[2], found[1])
    return InvalidEnvelope("$", text)
