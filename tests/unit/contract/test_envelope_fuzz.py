"""Any bytes at all are an attention request or an InvalidEnvelope, and never anything else."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention_queue.contract import AttentionRequest
from attention_queue.contract.envelope import decode, encode
from attention_queue.errors import ContractError, InvalidEnvelope
from unit.contract import values


@given(st.binary(max_size=600))
@example(b"[" * 511)
@example(b'{"v":' * 100)
@example(b'{"v":1,"x":' + b"[" * 400)
@example(b'{"v":' + b"1" * 500 + b"}")
@example(b'{"v":1e999}')
@example(b'{"v":NaN}')
@example(b'{"v":1,"v":2}')
@example(b'{"v":1,"tenant":"\\ud800","id":"b"}')
@example(b'{"v":1,"tenant":"\xed\xa0\x80","id":"b"}')
@example(b'{"v":1,"x":"\xff","tenant":"a","id":"b"}')
@example(b"\xef\xbb\xbf{}")
@example("{}".encode("utf-16"))
def test_any_bytes_are_a_request_or_an_invalid_envelope(data: bytes) -> None:
    _decode_or_refuse(data)


_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 10**200, 1, "high", "a", "\ud800", "\0", "\u202e"])
    | st.floats()
    | st.text(max_size=10)
)
_ours = ["v", "group", "tenant", "id", "type", "priority", "routing", "reason", "requested_at"]
_foreign = ["tenantId", "storeId", "resourceType", "resourceId", "marketplace", "gen", "inc"]


@given(
    st.dictionaries(
        st.sampled_from(_ours + _foreign) | st.text(max_size=5),
        st.recursive(
            _leaves,
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.text(max_size=5), inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=8,
    )
)
def test_any_object_is_a_request_or_an_invalid_envelope(table: dict[str, Any]) -> None:
    _decode_or_refuse(json.dumps(table).encode())
    _decode_or_refuse(json.dumps({"v": 1, "tenant": "a", "id": "b"} | table).encode())


@given(values.requests, st.data())
def test_a_damaged_request_is_a_request_or_an_invalid_envelope(
    request: AttentionRequest, data: st.DataObject
) -> None:
    damaged = bytearray(encode(request))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))

    _decode_or_refuse(bytes(damaged))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused(protocol: int) -> None:
    with pytest.raises(InvalidEnvelope):
        decode(pickle.dumps({"tenantId": "a", "storeId": "b"}, protocol), group="marketplace")


def _decode_or_refuse(data: bytes) -> None:
    try:
        request = decode(data, group="marketplace")
    except InvalidEnvelope as error:
        assert isinstance(error, ContractError)
        assert error.path.startswith("$")
        return
    assert decode(encode(request)) == request
