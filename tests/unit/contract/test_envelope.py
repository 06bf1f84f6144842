"""The attention request on the wire: what we write, and what we read from anybody."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from attention_queue.contract import AttentionRequest, Priority, Resource
from attention_queue.contract.envelope import MAX_ENVELOPE, decode, encode
from attention_queue.errors import InvalidEnvelope, NewerEnvelope
from unit.contract import values

GOLDEN = Path(__file__).parent / "golden"
STORE = Resource("seller-group-a", "store-873")
PLAIN = AttentionRequest(group="marketplace", resource=STORE)
WRITTEN = {
    "v1": AttentionRequest(
        group="marketplace",
        resource=STORE,
        type="store",
        priority=Priority.HIGH,
        routing={"marketplace": "amazon"},
        requested_at=datetime(2026, 12, 23, 4, 26, 40, tzinfo=UTC),
        gen=17,
        inc="4f1c",
    ),
    "v1-smallest": PLAIN,
    "v1-unicode": AttentionRequest(
        group="marketplace",
        resource=Resource("São Paulo/2", "<script>…*#😀"),
        type="store",
        priority=Priority.LOW,
        routing={"marketplace": "mercado livre"},
        reason="more",
        requested_at=datetime(1970, 1, 1, tzinfo=UTC),
    ),
}
READ = {
    "v1-new-fields": replace(PLAIN, type="store"),
    "store": replace(
        PLAIN, type="store", priority=Priority.HIGH, routing={"marketplace": "amazon"}
    ),
    "resource": replace(PLAIN, type="device", resource=Resource("seller-group-a", "sensor-12")),
}


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.json").read_bytes()


def wire(**changes: Any) -> bytes:
    """A version 1 with other values; None takes a field away."""
    whole = {"v": 1, "group": "marketplace", "tenant": "a", "id": "b"} | changes
    return json.dumps({k: v for k, v in whole.items() if v is not None}).encode()


@pytest.mark.parametrize("name", WRITTEN)
def test_what_we_write_is_byte_for_byte_the_golden_file(name: str) -> None:
    assert encode(WRITTEN[name]) == golden(name)


@pytest.mark.parametrize("name", WRITTEN | READ)
def test_a_golden_file_is_read_as_the_request_it_means(name: str) -> None:
    assert decode(golden(name), group="marketplace") == (WRITTEN | READ)[name]


@pytest.mark.parametrize("name", ["store", "resource"])
def test_the_form_without_a_version_is_written_again_as_version_1(name: str) -> None:
    request = decode(golden(name), group="marketplace")

    assert decode(encode(request)) == request
    assert json.loads(encode(request))["v"] == 1


def test_every_golden_file_is_in_a_test() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*WRITTEN, *READ, "v2"}


@given(values.requests)
def test_a_request_comes_back_with_its_time_cut_to_the_millisecond(
    request: AttentionRequest,
) -> None:
    at = request.requested_at
    cut = at and at - timedelta(microseconds=at.microsecond % 1000)

    assert decode(encode(request)) == replace(request, requested_at=cut)


@given(values.requests)
def test_what_is_written_is_json_of_bounded_size(request: AttentionRequest) -> None:
    data = encode(request)

    assert len(data) <= MAX_ENVELOPE < 512
    assert json.loads(data)["v"] == 1


def test_a_time_inside_is_aware() -> None:
    at = decode(wire(requested_at=1)).requested_at

    assert at == datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)


def test_a_newer_version_is_not_mistaken_for_a_fault() -> None:
    with pytest.raises(NewerEnvelope) as caught:
        decode(golden("v2"))

    assert (caught.value.version, caught.value.known, caught.value.path) == (2, 1, "$.v")


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"", "$"),
        (b"[]", "$"),
        (b"{}", "$"),
        (b"\xff", "$"),
        (b'{"v":1,"skipped":"\xff","tenant":"a","id":"b"}', "$"),
        (wire(tenant=None), "$.tenant"),
        (wire(id=None), "$.id"),
        (wire(v="1"), "$.v"),
        (wire(v=0), "$.v"),
        (wire(v=True), "$.v"),
        (wire(v=10**300), "$.v"),
        (wire(group="other"), "$.group"),
        (wire(group="market place"), "$.group"),
        (wire(tenant=""), "$.tenant"),
        (wire(id=5), "$.id"),
        (wire(id="a\n"), "$.id"),
        (wire(id="a\0b"), "$.id"),
        (wire(type="a store"), "$.type"),
        (wire(priority="urgent"), "$.priority"),
        (wire(priority=1), "$.priority"),
        (wire(routing=[]), "$.routing"),
        (wire(routing={"market place": "x"}), "$.routing"),
        (wire(routing={"marketplace": "\u202e"}), "$.routing.marketplace"),
        (wire(reason="x\x1b[2J"), "$.reason"),
        (wire(requested_at="2026-12-23"), "$.requested_at"),
        (wire(requested_at=1.5), "$.requested_at"),
        (wire(requested_at=-1), "$.requested_at"),
        (wire(requested_at=10**300), "$.requested_at"),
        (wire(gen=2**63), "$.gen"),
        (wire(gen=-1), "$.gen"),
        (wire(inc=""), "$.inc"),
        (b'{"tenantId":"a"}', "$"),
        (b'{"tenantId":"a","storeId":"b","resourceId":"c"}', "$"),
        (b'{"tenantId":"a","resourceId":"c"}', "$.resourceType"),
        (b'{"tenantId":"a","resourceType":"a b","resourceId":"c"}', "$.resourceType"),
        (b'{"tenantId":"","storeId":"b"}', "$.tenantId"),
        (b'{"tenantId":"a","storeId":"\\n"}', "$.storeId"),
        (b'{"tenantId":"a","resourceType":"x","resourceId":""}', "$.resourceId"),
        (b'{"tenantId":"a","storeId":"b","marketplace":""}', "$.marketplace"),
        (b'{"tenantId":"a","storeId":"b","priority":"now"}', "$.priority"),
        (b'{"tenantId":5,"storeId":"b"}', "$.tenantId"),
    ],
)
def test_a_fault_is_told_with_its_path(data: bytes, path: str) -> None:
    with pytest.raises(InvalidEnvelope) as caught:
        decode(data, group="marketplace")

    assert caught.value.path == path
    assert not isinstance(caught.value, NewerEnvelope)


@pytest.mark.parametrize("data", [golden("store"), wire(group=None)])
def test_without_a_group_it_is_that_of_its_queue(data: bytes) -> None:
    assert decode(data, group="marketplace").group == "marketplace"
    with pytest.raises(InvalidEnvelope, match=r"\$\.group: it is missing"):
        decode(data)


def test_the_form_without_a_version_may_shout_its_priority() -> None:
    data = b'{"tenantId": "a", "storeId": "b", "priority": "HIGH"}'

    assert decode(data, group="marketplace").priority is Priority.HIGH


def test_nesting_is_refused_however_deep_the_caller_is_already() -> None:
    def call(frames: int) -> AttentionRequest:
        return call(frames - 1) if frames else decode(b'{"v":1,"x":' + b"[" * 450)

    with pytest.raises(InvalidEnvelope):
        call(sys.getrecursionlimit() - 400)


def test_a_message_of_512_bytes_is_refused_and_one_of_511_is_read() -> None:
    data = wire()
    longest = data + b" " * (MAX_ENVELOPE - len(data))

    assert decode(longest).resource == Resource("a", "b")
    with pytest.raises(InvalidEnvelope, match="512 bytes, at most 511"):
        decode(longest + b" ")


def test_a_request_that_needs_512_bytes_is_not_written() -> None:
    with pytest.raises(InvalidEnvelope, match="at most 511"):
        encode(AttentionRequest(group="g", resource=Resource("é" * 150, "é" * 150)))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"group": "market place"}, "$.group"),
        ({"type": ""}, "$.type"),
        ({"reason": "\ud800"}, "$.reason"),
        ({"routing": {"marketplace": "\0"}}, "$.routing.marketplace"),
        ({"gen": 2**63}, "$.gen"),
        ({"gen": -1}, "$.gen"),
        ({"inc": "a b"}, "$.inc"),
        ({"requested_at": datetime(2026, 1, 1)}, "$.requested_at"),  # noqa: DTZ001 - the fault
        ({"requested_at": datetime(1969, 1, 1, tzinfo=UTC)}, "$.requested_at"),
    ],
)
def test_what_nobody_could_read_is_not_written(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidEnvelope) as caught:
        encode(replace(PLAIN, **changes))

    assert caught.value.path == path
