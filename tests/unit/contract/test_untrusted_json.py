"""JSON from strangers: what could poison a queue later is refused at the door."""

from __future__ import annotations

import json
import sys

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention_queue.contract import Resource, WorkMessage
from attention_queue.contract.messages import MAX_PAYLOAD
from attention_queue.contract.untrusted_json import MAX_DEPTH, check_json
from attention_queue.errors import InvalidMessage


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        b" [1, 2.5e3, -0, true]\n",
        '{"name": "São Paulo 😀"}'.encode(),
        b'{"pair": "\\ud83d\\ude00", "text": "\\u0041"}',
        b'{"not an escape": "\\\\u0000 \\\\ud800"}',
        b'{"a": {"k": 1}, "b": {"k": 1}}',
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b'["' + b"[" * 500 + b'"]',
        b'["\\"' + b"[" * 500 + b'"]',
        b"[" + b"[],{}," * 500 + b"1]",
        b"1" * 4300,
        b'"' + b"1" * 5000 + b'"',
        b"0." + b"1" * 5000,
        b'"' + b"x" * (MAX_PAYLOAD - 2) + b'"',
    ],
)
def test_good_json_is_let_through(data: bytes) -> None:
    check_json(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[1,]", "no JSON"),
        (b"{'a': 1}", "no JSON"),
        (b"1 2", "no JSON"),
        (b'{"a": "\x00"}', "no JSON"),
        (b'{"a": "\n"}', "no JSON"),
        (b"\xef\xbb\xbf{}", "no JSON"),
        ("{}".encode("utf-16"), "no UTF-8 at byte 0"),
        (b'{"a": "\xff"}', "no UTF-8 at byte 7"),
        (b'"\xed\xa0\x80"', "no UTF-8 at byte 1"),
        (b"NaN", "NaN is no JSON at $"),
        (b'{"a": [1, {"b": NaN}]}', "NaN is no JSON at $.a[1].b"),
        (b"[-Infinity]", "-Infinity is no JSON at $[0]"),
        (b'{"a": 1e999}', "a number out of range at $.a"),
        (b"[0, " + b"1" * 4301 + b"]", "a whole number of more than 4300 digits at $[1]"),
        (b'{"a": 1, "a": 2}', "the same key twice at $.a"),
        (b'{"x": {"a b": 1, "a\\u0020b": 2}}', "the same key twice at $.x['a b']"),
        (b'{"a": ["\\ud800"]}', "a lone surrogate at $.a[0]"),
        (b'{"a": "\\ude00\\ud83d"}', "a lone surrogate at $.a"),
        (b'{"\\udfff": 1}', "in a key: a lone surrogate at $['\\udfff']"),
        (b'{"a": "\\u0000"}', "\\u0000 at $.a"),
        (b'{"a": "\\\\\\u0000"}', "\\u0000 at $.a"),
        (b'{"\\u0000": 1}', "in a key: \\u0000 at $['\\x00']"),
        (b"[" * 65 + b"]" * 65, "65 levels deep, at most 64 are allowed"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "65 levels deep, at most 64 are allowed"),
        (b"[" * 20_000 + b"]" * 20_000, "20000 levels deep, at most 64 are allowed"),
        (b"[" * 20_000, "20000 levels deep, at most 64 are allowed"),
        (b'"' + b"x" * MAX_PAYLOAD + b'"', "262146 bytes, at most 262144 are allowed"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else "",
)
def test_bad_json_is_refused_with_the_place(data: bytes, why: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        check_json(data)

    assert caught.value.field == "payload"
    assert caught.value.why.startswith(why)


def test_a_caller_may_allow_less() -> None:
    with pytest.raises(InvalidMessage, match="4 bytes, at most 3 are allowed"):
        check_json(b"null", max_bytes=3)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 65 + b'"' + b'\\"' * 130_000,
        b"[" * 65 + b'"' + b'\\"' * 130_000 + b"\\",
        b'[{"' * 80_000,
        b"[" * 65 + b"\\" * 200_000,
        b"[{" * 40 + b'"' * 200_000,
        b"[" + b"[]," * 80_000 + b"NaN]",
        b'"' + b"\\" * 200_001,
    ],
    ids=lambda data: data[60:75],
)
def test_a_body_built_to_be_slow_is_refused_all_the_same(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        check_json(data)


@pytest.mark.parametrize(
    "data", [b"cos\nsystem\n(S'id'\ntR.", b"\x80\x04N.", b"!!python/object/apply:os.system ['id']"]
)
def test_pickles_and_yaml_tags_are_no_json(data: bytes) -> None:
    with pytest.raises(InvalidMessage):
        check_json(data)


def test_a_type_that_looks_like_a_module_is_only_a_name() -> None:
    before = set(sys.modules)
    payload = b'{"type": "os.system", "py/object": "subprocess.Popen", "args": ["id"]}'

    check_json(payload)
    message = WorkMessage(id="1", resource=Resource("a", "b"), type="os.system", payload=payload)

    assert message.payload == payload
    assert set(sys.modules) == before


_texts = st.text(max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(_values, st.booleans())
def test_whatever_python_writes_passes_unless_it_has_a_nul_or_a_surrogate(
    value: object, ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii)
    bad = any(c in json.dumps(value) for c in ("\\u0000", "\\ud", "\\uD"))

    try:
        check_json(text.encode("utf-8", "surrogatepass"))
    except InvalidMessage:
        assert bad


@given(st.binary(max_size=200))
@example(b'{"a":1,"a":1}')
@example(b'"\\ud800\\u0041"')
@example(b"-")
def test_any_bytes_pass_or_are_an_invalid_message(data: bytes) -> None:
    _check_or_refuse(data)


@given(st.lists(st.sampled_from(
    ['{', '}', '[', ']', ',', ':', '"', '"a"', '"b"', '1', '-', 'e', '.', 'NaN', 'null', '\\',
     '\\u', '0000', 'd800', 'dc00', ' ', '\x00', 'é']
), max_size=30).map("".join))  # fmt: skip
def test_any_pieces_of_json_pass_or_are_an_invalid_message(text: str) -> None:
    _check_or_refuse(text.encode())


def _check_or_refuse(data: bytes) -> None:
    """What passes can be read by both parsers, written again, and has no NUL in it."""
    try:
        check_json(data)
    except InvalidMessage:
        return
    value = msgspec.json.decode(data)
    assert value == json.loads(data)
    assert "\\u0000" not in json.dumps(value).replace("\\\\", "")
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
