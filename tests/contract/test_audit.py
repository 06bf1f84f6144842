"""The audit trail and versions: who changed what, and two who change the same thing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from attention_queue.contract import Hold, Override, Plan, Policy, ResourceState, State
from attention_queue.contract.operation import Kind
from attention_queue.errors import Conflict, UnknownPlan, UnknownResource
from attention_queue.ports import Change, Engine, Nudge, Register, ReleaseToken, SetPlan, SetState
from contract.orders import order, start
from contract.stage import SECOND, SHOPS, Stage, done, message, shop

Engines = tuple[Engine, Engine]
A = shop("a")


def entries(stage: Stage) -> list[tuple[Any, ...]]:
    """Resource, actor, verb and reason of each, oldest first."""
    return stage.rows(
        "SELECT r.id, a.actor, a.verb, a.reason FROM audit a LEFT JOIN resource r ON r.rid = a.rid "
        "ORDER BY a.audit_id"
    )


def details(stage: Stage) -> list[dict[str, Any]]:
    return [
        json.loads(text) for (text,) in stage.rows("SELECT detail FROM audit ORDER BY audit_id")
    ]


def state(state: State, reason: str = "", **fields: Any) -> SetState:
    return SetState(group=SHOPS, resource=A, state=ResourceState(state, reason), **fields)


async def test_a_change_of_state_is_entered_with_what_it_was_and_is(stage: Stage) -> None:
    await stage.open()
    await stage.register(A)
    until = stage.clock.now() + SECOND

    await stage.set_state(A, State.PAUSED, reason="by phone", until=until)
    await stage.set_state(A, State.ACTIVE)

    assert entries(stage)[1:] == [("a", "ann", "state", "by phone"), ("a", "ann", "state", "")]
    assert details(stage)[1:] == [
        {"was": "active", "is": "paused", "until": until.isoformat()},
        {"was": "paused", "is": "active", "until": None},
    ]


async def test_a_registration_and_a_move_are_entered(stage: Stage) -> None:
    await stage.open(plans=(Plan("plain"), Plan("pro")))

    await stage.register(A, reason="new shop")
    await stage.register(A, plan="pro", reason="paid")

    assert entries(stage) == [
        ("a", "ann", "register", "new shop"),
        ("a", "ann", "plan", "paid"),
    ]
    assert [(d["was"], d["is"]) for d in details(stage)] == [(None, "plain"), ("plain", "pro")]


async def test_a_change_of_a_plan_is_entered_with_both_policies(stage: Stage) -> None:
    await stage.open(max_messages=5)

    await stage.set_policy(max_messages=7)

    assert entries(stage) == [(None, "ann", "set_plan", "")]
    (detail,) = details(stage)
    was, now = json.loads(detail["was"]), json.loads(detail["is"])
    assert (detail["plan"], was["max_messages"], now["max_messages"]) == ("plain", 5, 7)


async def test_a_nudge_and_a_token_taken_away_are_entered(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    token = (await stage.begin_one()).token
    nudge = Nudge(group=SHOPS, resource=A, reason="it hangs")
    release = ReleaseToken(
        group=SHOPS, resource=A, slot=token.slot, fence=token.fence, reason="host is gone"
    )

    await stage.engine.change(nudge, actor="bob")
    await stage.engine.change(release, actor="bob")

    assert entries(stage) == [
        ("a", "bob", "nudge", "it hangs"),
        ("a", "bob", "release_token", "host is gone"),
    ]
    assert details(stage)[1] == {"slot": token.slot, "fence": token.fence}
    assert await stage.serve() == ["1"]


async def test_a_token_that_is_held_by_another_by_now_is_not_taken_away(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    token = begun.token
    wrong = ReleaseToken(
        group=SHOPS, resource=A, slot=token.slot, fence=token.fence - 1, reason="mistaken"
    )

    with pytest.raises(Conflict, match="fence"):
        await stage.engine.change(wrong, actor="bob")

    assert entries(stage) == []
    await stage.finish(begun, done(begun.loan))


async def test_operations_and_their_cancelling_are_entered(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))

    number = await start(stage, Kind.RETIRE, resource=A)
    await stage.engine.cancel(number, actor="bob")

    assert entries(stage) == [
        ("a", "ann", "retire", "asked for"),
        ("a", "bob", "cancel", "asked for"),
    ]
    assert [detail["operation"] for detail in details(stage)] == [number, number]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (SetState(group=SHOPS, resource=shop("no"), state=ResourceState()), UnknownResource),
        (Register(group=SHOPS, resource=A, plan="platinum"), UnknownPlan),
        (state(State.PAUSED, expect=17), Conflict),
        (Register(group=SHOPS, resource=A, plan="pro", expect=17), Conflict),
        (SetPlan(group=SHOPS, plan=Plan("plain", Policy(max_messages=9)), expect=17), Conflict),
        (SetPlan(group=SHOPS, plan=Plan("new"), expect=1), Conflict),
        (Register(group=SHOPS, resource=shop("no"), expect=1), UnknownResource),
    ],
)
async def test_a_change_that_is_refused_changes_and_enters_nothing(
    stage: Stage, change: Change, error: type[Exception]
) -> None:
    await stage.open(plans=(Plan("plain"), Plan("pro")))
    await stage.put(message(A, "1"))
    tables = ("resource", "plan", "attention", "audit")
    before = [stage.rows(f"SELECT * FROM {table}") for table in tables]

    with pytest.raises(error):
        await stage.engine.change(change, actor="bob")

    assert [stage.rows(f"SELECT * FROM {table}") for table in tables] == before
    await stage.serve()


async def test_of_two_who_change_the_same_version_one_is_told(
    stage: Stage, engines: Engines
) -> None:
    await stage.open()
    await stage.register(A)
    first = state(State.PAUSED, "first", expect=1)
    second = state(State.DISABLED, "second", expect=1)

    results = await asyncio.gather(
        engines[0].change(first, actor="ann"),
        engines[1].change(second, actor="bob"),
        return_exceptions=True,
    )

    refused = [result for result in results if isinstance(result, Conflict)]
    assert (len(refused), results.count(None)) == (1, 1)
    assert "version 2, not 1" in str(refused[0])
    assert len(entries(stage)) == 2


async def test_the_right_version_is_accepted_and_grows_with_each_change(stage: Stage) -> None:
    await stage.open(plans=(Plan("plain"), Plan("pro")))
    await stage.register(A)

    await stage.engine.change(state(State.PAUSED, expect=1), actor="ann")
    await stage.register(A, plan="pro", expect=2)
    changed = Plan("pro", Policy(max_messages=3))
    await stage.engine.change(SetPlan(group=SHOPS, plan=changed, expect=1), actor="ann")
    await stage.engine.change(SetPlan(group=SHOPS, plan=changed, expect=2), actor="ann")

    assert stage.rows("SELECT version FROM resource") == [(3,)]
    assert stage.rows("SELECT version FROM plan ORDER BY name") == [(1,), (3,)]


async def test_a_change_and_its_entry_are_one_unit(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    stage.rows("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END")
    campaign = Override(changes={"max_messages": 1})

    for change in (
        state(State.PAUSED),
        Register(group=SHOPS, resource=A, overrides=(campaign,)),
        Nudge(group=SHOPS, resource=A),
    ):
        with pytest.raises(Exception, match="full"):
            await stage.engine.change(change, actor="ann")
    with pytest.raises(Exception, match="full"):
        await stage.engine.start(order(Kind.RETIRE, resource=A), actor="ann")

    stage.rows("DROP TRIGGER full")
    assert stage.rows("SELECT state, overrides, version FROM resource") == [("active", None, 1)]
    assert stage.rows("SELECT count(*) FROM operation") == [(0,)]
    assert await stage.serve() == ["1"]


async def test_a_state_that_a_handler_sets_is_entered(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(A, "1"))
    begun = await stage.begin_one()
    expired = ResourceState(State.CREDENTIALS_ERROR, "401", "handler")

    await stage.finish(begun, not_before=SECOND, hold=Hold.STOP, state=expired)

    assert entries(stage) == [("a", "handler", "state", "401")]
    assert details(stage) == [{"was": "active", "is": "credentials_error", "until": None}]
