"""Which ids a resource may have, and how it is written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention_queue.contract import Resource
from attention_queue.contract.names import id_fault, type_fault, word_fault
from attention_queue.errors import ContractError, InvalidResource
from unit.contract import values


@given(values.resources)
@example(Resource("a%2Fb", "c"))
@example(Resource("a/b%", "/c/%25"))
@example(Resource("%25", "%2F"))
def test_a_resource_is_read_back_from_its_text(resource: Resource) -> None:
    assert Resource.parse(str(resource)) == resource


@given(values.resources, values.resources)
def test_two_resources_never_have_one_text(one: Resource, other: Resource) -> None:
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize(
    "id",
    ["..", ".", "*", "#", "<script>", "😀" * 64, "a/b", "a%2Fb", "x" * 200, "é", "漢字", "a b",
     "' OR 1=1 --", "store-873", "${jndi:x}", "-rf"],
)  # fmt: skip
def test_an_id_that_can_be_shown_is_kept_as_it_is(id: str) -> None:
    resource = Resource(id, id)

    assert (resource.tenant, resource.id) == (id, id)
    assert Resource.parse(str(resource)) == resource


@pytest.mark.parametrize(
    ("id", "why"),
    [
        ("", "empty"),
        ("a\n", "U+000A"),
        ("a\r", "U+000D"),
        ("a\tb", "U+0009"),
        ("a\0b", "U+0000"),
        ("\x1b[2J", "U+001B"),
        ("a\x7f", "U+007F"),
        ("a\x85", "U+0085"),
        ("a\u2028b", "U+2028"),
        ("\u202eabc", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("a\u200bb", "U+200B"),
        ("a\u200db", "U+200D"),
        ("\ufeffa", "U+FEFF"),
        ("a\xadb", "U+00AD"),
        ("a\ud800", "U+D800"),
        ("x" * 201, "201 characters"),
        ("e\u0301", "NFC"),
        ("\u212b", "NFC"),
        (5, "want text, got int"),
        (None, "want text, got NoneType"),
        (b"a", "want text, got bytes"),
    ],
)
def test_an_id_that_cannot_be_shown_is_refused_with_the_reason(id: object, why: str) -> None:
    with pytest.raises(InvalidResource, match="tenant: ") as tenant:
        Resource(id, "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidResource, match="id: ") as own:
        Resource("a", id)  # type: ignore[arg-type]

    assert why in tenant.value.why
    assert why in own.value.why
    assert str(own.value).isprintable()


@pytest.mark.parametrize("text", ["", "a", "/a", "a/", "/", "a\n/b", "a/b\n"])
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(InvalidResource):
        Resource.parse(text)


@given(st.text())
def test_any_text_is_a_resource_or_refused(text: str) -> None:
    try:
        resource = Resource.parse(text)
    except ContractError:
        return
    assert Resource.parse(str(resource)) == resource


@given(st.text(max_size=250))
def test_an_id_without_fault_can_be_printed_and_stored(text: str) -> None:
    if id_fault(text) is None:
        assert 1 <= len(text) <= 200
        assert text.isprintable()
        assert text.encode()


def test_resources_sort_by_tenant_then_id() -> None:
    assert sorted([Resource("b", "1"), Resource("a", "2"), Resource("a", "1")]) == [
        Resource("a", "1"),
        Resource("a", "2"),
        Resource("b", "1"),
    ]


@pytest.mark.parametrize("text", ["", "a b", "a\n", "x" * 65, "é", "a.b", None])
def test_a_word_that_is_none_is_refused(text: object) -> None:
    assert word_fault(text)


@pytest.mark.parametrize("text", ["a", "A-z_9", "x" * 64])
def test_a_word_is_a_word(text: str) -> None:
    assert word_fault(text) is None


@pytest.mark.parametrize("text", ["", "a b", "a\n", "x" * 129, "é", None])
def test_a_type_that_is_none_is_refused(text: object) -> None:
    assert type_fault(text)


@pytest.mark.parametrize("text", ["stock.updated", "os.system", "a:b/c-d_e", "x" * 128])
def test_a_type_is_a_type(text: str) -> None:
    assert type_fault(text) is None
