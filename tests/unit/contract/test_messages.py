"""What a work message may be, and what an id of ours looks like."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from attention_queue.contract import Resource, WorkMessage, new_id
from attention_queue.contract.messages import MAX_HEADERS, MAX_PAYLOAD
from attention_queue.errors import InvalidMessage
from unit.contract import values


def message(**fields: Any) -> WorkMessage:
    whole = {"id": "1", "resource": Resource("a", "b"), "type": "stock.updated", "payload": b"{}"}
    return WorkMessage(**whole | fields)


@pytest.mark.parametrize("priority", [-1, 0, 7, True, "high"])
def test_a_priority_is_one_of_the_three_lanes(priority: object) -> None:
    with pytest.raises(InvalidMessage, match="want a Priority"):
        message(priority=priority)


@given(values.ids)
def test_any_id_that_can_be_shown_is_a_message_id(id: str) -> None:
    assert message(id=id).id == id


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": b""},
        {"payload": b"x" * MAX_PAYLOAD},
        {"payload": b"\x80\x04N."},
        {"type": "os.system"},
        {"content_type": "text/plain; charset=utf-8"},
        {"headers": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
        {"headers": {"CC": "attention.marketplace.work", "reply_to": "q", "expiration": "1"}},
        {"headers": {"n": "v" * (MAX_HEADERS - 1)}},
        {"headers": {"n": "line\nbreak"}},
        {"not_before": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_what_is_allowed_is_kept_as_it_is(fields: dict[str, Any]) -> None:
    made = message(**fields)

    for name, value in fields.items():
        assert getattr(made, name) == value


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "a\n"}, "id"),
        ({"id": "a\0"}, "id"),
        ({"id": "\ud800"}, "id"),
        ({"id": "e\u0301"}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": 5}, "id"),
        ({"payload": "text"}, "payload"),
        ({"payload": bytearray(b"x")}, "payload"),
        ({"payload": None}, "payload"),
        ({"payload": b"x" * (MAX_PAYLOAD + 1)}, "payload"),
        ({"type": ""}, "type"),
        ({"type": "a b"}, "type"),
        ({"type": "a\n"}, "type"),
        ({"type": "x" * 129}, "type"),
        ({"type": None}, "type"),
        ({"content_type": ""}, "content_type"),
        ({"content_type": "a\r\nb"}, "content_type"),
        ({"content_type": "x" * 129}, "content_type"),
        ({"headers": {"x-death": "1"}}, "headers.x-death"),
        ({"headers": {"X-Match": "1"}}, "headers.X-Match"),
        ({"headers": {"": "1"}}, "headers."),
        ({"headers": {"n": 1}}, "headers.n"),
        ({"headers": {"n": "\0"}}, "headers.n"),
        ({"headers": {"n": "\ud800"}}, "headers.n"),
        ({"headers": {"n": "v" * MAX_HEADERS}}, "headers"),
        ({"not_before": datetime(2026, 1, 1)}, "not_before"),  # noqa: DTZ001 - the fault
    ],
)
def test_what_no_engine_may_store_is_refused_with_the_field(
    fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidMessage) as caught:
        message(**fields)

    assert caught.value.field == field


@pytest.mark.parametrize("type", [["a"], {"a": 1}])
def test_a_type_that_cannot_be_hashed_is_refused_too(type: object) -> None:
    with pytest.raises(InvalidMessage):
        message(type=type)


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        message().payload = b""  # type: ignore[misc]


def test_a_new_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before = datetime.now(UTC).timestamp()
    made = uuid.UUID(new_id())
    after = datetime.now(UTC).timestamp()

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert int(before * 1000) <= made.int >> 80 <= int(after * 1000)


def test_new_ids_are_unique_and_sort_by_their_millisecond() -> None:
    made = [new_id() for _ in range(20_000)]

    assert len(set(made)) == len(made)
    milliseconds = [uuid.UUID(id).int >> 80 for id in made]
    assert milliseconds == sorted(milliseconds)
    assert sorted(made, key=lambda id: id[:13]) == made


def test_a_new_id_is_a_valid_message_id() -> None:
    assert message(id=new_id())


def test_all_bits_that_are_not_fixed_vary() -> None:
    seen = [uuid.UUID(new_id()).int for _ in range(200)]
    ones = zeros = 0
    for number in seen:
        ones |= number
        zeros |= ~number
    free = (1 << 76) - 1 & ~(0b11 << 62)

    assert ones & zeros & free == free
