"""``attn publish``: one message, or many with the bad ones told apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from attention_queue import AttentionQueue, Resource
from attention_queue.cli import bulk
from attention_queue.contract.messages import MAX_PAYLOAD
from attention_queue.contract.operation import Kind, Operation, Selection
from faces.cli.conftest import Cli, Setup

ONE = ("publish", "eu/store-1", "stock.updated")


async def open_only(queue: AttentionQueue) -> None:
    """The group itself is made."""


def retirement(name: str) -> Operation:
    of = Selection(resource=Resource(*name.split("/")))
    return Operation(kind=Kind.RETIRE, group="marketplace", selection=of, reason="closed")


def line(**fields: object) -> bytes:
    message = {"resource": "eu/store-1", "type": "stock.updated", "payload": {}} | fields
    return json.dumps(message).encode() + b"\n"


def backlog(cli: Cli) -> Mapping[str, int]:
    return {row["resource"]: row["backlog"] for row in cli("ls", "-o", "json").data}


def test_the_first_message_makes_the_file_and_the_group(cli: Cli, folder: Path) -> None:
    ran = cli(*ONE, '{"sku": 7}', "--group", "marketplace", "--id", "m-1")

    assert (ran.code, ran.out) == (0, "m-1\n")
    assert (folder / "attention.db").stat().st_mode & 0o777 == 0o600
    assert backlog(cli) == {"eu/store-1": 1}
    assert cli("show", "eu/store-1", "-o", "json").data["next"]["id"] == "m-1"


def test_the_only_group_need_not_be_named(cli: Cli, given: Setup) -> None:
    given(open_only)

    ran = cli(*ONE, "-o", "json")

    assert ran.code == 0
    assert ran.data["group"] == "marketplace"
    assert ran.data["stored"] is True


def test_without_one_group_the_group_is_asked_for(cli: Cli, given: Setup, folder: Path) -> None:
    none = cli(*ONE)
    made = list(folder.iterdir())
    given(open_only)
    given(open_only, group="returns")
    several = cli(*ONE)

    assert (none.code, made) == (2, [])
    assert none.err == "attn: which group? add --group marketplace\n"
    assert several.code == 2
    assert several.err == "attn: which group? add --group marketplace or --group returns\n"


def test_a_group_that_is_there_keeps_its_settings(cli: Cli, given: Setup) -> None:
    given(open_only)

    cli(*ONE)

    assert cli("show", "eu/store-1", "-o", "json").data["type"] == "store"


def test_a_new_group_has_the_plans_of_the_settings(cli: Cli, folder: Path) -> None:
    (folder / "attn.toml").write_text("[groups.shops.plans.only]\nmax_messages = 7\n")

    cli(*ONE, "--group", "shops")

    shown = cli("show", "eu/store-1", "-o", "json").data
    assert (shown["plan"], shown["policy"]["max_messages"]) == ("only", 7)


def test_the_same_id_is_one_message_and_says_so(cli: Cli, given: Setup) -> None:
    given(open_only)
    cli(*ONE, "--id", "m-1")

    ran = cli(*ONE, "--id", "m-1")

    assert ran.code == 0
    assert "it was there already" in ran.err
    assert backlog(cli) == {"eu/store-1": 1}


def test_a_delay_and_a_lane_are_kept(cli: Cli, given: Setup) -> None:
    given(open_only)

    cli(*ONE, "--delay", "1h", "--priority", "high")

    request = cli("show", "eu/store-1", "-o", "json").data["request"]
    assert request["priority"] == "high"
    assert request["due"] is not None


def test_a_payload_comes_from_stdin_or_a_file(cli: Cli, given: Setup, folder: Path) -> None:
    given(open_only)
    (folder / "body.json").write_text('{"from": "file"}\n')

    assert cli(*ONE, "-", stdin=b'{"from": "stdin"}\n').code == 0
    assert cli(*ONE, "@body.json").code == 0
    assert cli(*ONE, "@absent.json").err == "attn: absent.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("publish",), "want a resource and a type"),
        (("publish", "eu/store-1"), "want a resource and a type"),
        (("publish", "store-1", "stock.updated"), "want tenant/id"),
        (("publish", "eu/store-1", '{"sku": 7}'), "the type comes before the payload"),
        ((*ONE, "{'sku': 7}"), "no JSON"),
        ((*ONE, '{"a": 1, "a": 2}'), "the same key twice at $.a"),
        ((*ONE, "[" * 100 + "]" * 100), "100 levels deep"),
        ((*ONE, "{}", "--delay", "soon"), "--delay: want seconds"),
        ((*ONE, "{}", "--id", "a\u202eb"), "U+202E"),
        ((*ONE, "--colour"), "unknown option: --colour"),
        (("publish", "eu/store-1", "no type"), "type"),
        ((*ONE, "--bulk", "-"), "from its lines"),
    ],
)
def test_what_cannot_be_published_is_refused_and_nothing_is_stored(
    cli: Cli, given: Setup, arguments: tuple[str, ...], hint: str
) -> None:
    given(open_only)

    ran = cli(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert backlog(cli) == {}


def test_a_body_over_the_limit_is_refused(cli: Cli, given: Setup) -> None:
    given(open_only)

    ran = cli(*ONE, "-", stdin=b'"' + b"x" * MAX_PAYLOAD + b'"')

    assert ran.code == 2
    assert f"at most {MAX_PAYLOAD} are allowed" in ran.err


def test_a_retired_resource_is_a_conflict(cli: Cli, given: Setup) -> None:
    async def retire(queue: AttentionQueue) -> None:
        await queue.publish("eu/store-1", "stock.updated", {})
        await queue.start(retirement("eu/store-1"), actor="ann")

    given(retire)

    ran = cli(*ONE)

    assert ran.code == 4
    assert "is retired" in ran.err


def test_many_lines_are_published_in_batches(
    cli: Cli, given: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH", 4)
    given(open_only)
    lines = b"".join(line(resource=f"eu/store-{n % 3}", id=f"m-{n}") for n in range(10))

    ran = cli("publish", "-", stdin=lines)

    assert ran.code == 0
    assert ran.out == "10 stored, 0 already there, 0 refused\n"
    assert ran.err == ""
    assert backlog(cli) == {"eu/store-0": 4, "eu/store-1": 3, "eu/store-2": 3}


def test_repeating_lines_with_ids_stores_nothing_twice(cli: Cli, given: Setup) -> None:
    given(open_only)
    lines = b"".join(line(id=f"m-{n}") for n in range(10))
    cli("publish", "-", stdin=lines)

    ran = cli("publish", "--bulk", "-", "-o", "json", stdin=lines)

    assert ran.data == {"stored": 0, "duplicates": 10, "refused": 0}
    assert backlog(cli) == {"eu/store-1": 10}


BAD_LINES = {
    b"no json": "no JSON: Expecting value",
    line(resource="store-1"): "$.resource: not a resource: 'store-1': want tenant/id",
    line(resource=7): "$.resource: Expected `str`, got `int`",
    line(type="no type"): "$.type: 'no type': want",
    line(id=""): "$.id: it is empty",
    line(colour="red"): "$: Object contains unknown field `colour`",
    b'{"resource": "a/b"}': "$: Object missing required field `type`",
    b"[]": "$: Expected `object`, got `array`",
    b'{"resource": "a/b", "type": "t", "payload": {"a": NaN}}': "NaN",
    b'{"resource": "a/b", "type": "t", "payload": "\\u0000"}': "\\u0000 at $.payload",
    b"\xff": "no UTF-8 at byte 0",
    line(payload="x" * MAX_PAYLOAD): f"$.payload: {MAX_PAYLOAD + 2} bytes, at most {MAX_PAYLOAD}",
    line(payload="x" * 2 * MAX_PAYLOAD): "bytes, at most",
}


@pytest.mark.parametrize("bad", BAD_LINES, ids=BAD_LINES.values())
def test_a_bad_line_is_told_by_number_and_costs_no_other(
    cli: Cli, given: Setup, bad: bytes
) -> None:
    given(open_only)

    ran = cli("publish", "-", stdin=line() + b"\n" + bad.strip() + b"\n" + line())

    assert ran.code == 6
    assert ran.out == "2 stored, 0 already there, 1 refused\n"
    assert ran.err.startswith("line 3: ")
    assert BAD_LINES[bad] in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_retired_resource_spoils_only_its_own_lines(cli: Cli, given: Setup) -> None:
    async def retire(queue: AttentionQueue) -> None:
        await queue.publish("eu/gone", "stock.updated", {})
        await queue.start(retirement("eu/gone"), actor="ann")

    given(retire)

    ran = cli("publish", "-", stdin=line() + line(resource="eu/gone") + line())

    assert ran.code == 6
    assert ran.out.startswith("2 stored")
    assert ran.err.startswith("line 2: $.resource: eu/gone of group 'marketplace' is retired")


def test_a_flood_of_bad_lines_is_counted_and_not_shown(cli: Cli, given: Setup) -> None:
    given(open_only)

    ran = cli("publish", "-", stdin=b"bad\n" * 500)

    assert ran.code == 1
    assert ran.out == "0 stored, 0 already there, 500 refused\n"
    assert len(ran.err.splitlines()) == 101


def test_a_file_of_lines_may_have_no_end_of_line_at_its_end(
    cli: Cli, given: Setup, folder: Path
) -> None:
    given(open_only)
    (folder / "many.ndjson").write_bytes(line() + line().strip())

    assert cli("publish", "--bulk", "many.ndjson").out.startswith("2 stored")
    assert cli("publish", "--bulk", "absent.ndjson").code == 2


def test_a_delay_holds_for_every_line(cli: Cli, given: Setup) -> None:
    given(open_only)

    cli("publish", "-", "--delay", "3600", stdin=line())

    [row] = cli("ls", "-o", "json").data
    assert row["request"] == "parked"
