"""Publishing: the work is durable and a request for it is certain, as one unit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from attention_queue.contract import State
from attention_queue.contract.events import Published
from attention_queue.contract.operation import Kind
from attention_queue.errors import ResourceRetired, ResourceUnderMaintenance, UnknownResource
from attention_queue.ports import Put
from contract.orders import run, start
from contract.stage import MS, SECOND, Stage, done, message, messages, shop

Passes = Callable[[timedelta], None]


async def test_one_publish_is_one_message_and_one_request(stage: Stage) -> None:
    await stage.open()

    put = await stage.put(message(shop("a"), "1"))

    assert put == Put(stored=1, duplicates=0, requests=1, coalesced=0)
    assert await stage.serve() == ["1"]
    assert stage.of(Published) == [Published("shops", 1, 0, 1, 0)]


async def test_an_empty_batch_is_nothing(stage: Stage) -> None:
    await stage.open()

    put = await stage.put()

    assert put == Put(stored=0, duplicates=0, requests=0, coalesced=0)
    assert await stage.look() == []


async def test_all_of_a_message_comes_back_as_it_was_put(stage: Stage) -> None:
    await stage.open()
    sent = message(shop("ä/b %"), "1", payload=b"\x00\xff", headers={"trace": "é"})
    await stage.put(sent)

    begun = await stage.begin_one()

    (delivery,) = begun.loan
    assert delivery.message == sent
    assert delivery.attempt == 1
    assert delivery.enqueued_ms == stage.clock.now_ms()
    await stage.finish(begun)


async def test_the_same_id_twice_is_one_message_while_the_first_is_kept(stage: Stage) -> None:
    assert stage.engine.capabilities.dedup_on_publish
    await stage.open()
    await stage.put(message(shop("a"), "1", payload=b"first"))

    again = await stage.put(message(shop("a"), "1", payload=b"second"), message(shop("a"), "2"))

    assert (again.stored, again.duplicates) == (1, 1)
    begun = await stage.begin_one()
    assert [d.message.payload for d in begun.loan] == [b"first", b"{}"]
    await stage.finish(begun, done(begun.loan))


async def test_the_same_id_twice_in_one_batch_is_one_message(stage: Stage) -> None:
    await stage.open()

    put = await stage.put(message(shop("a"), "1"), message(shop("a"), "1"))

    assert (put.stored, put.duplicates) == (1, 1)
    assert await stage.serve() == ["1"]


async def test_a_duplicate_of_a_message_on_loan_is_a_duplicate(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    begun = await stage.begin_one()

    put = await stage.put(message(shop("a"), "1"))

    assert put.duplicates == 1
    await stage.finish(begun, done(begun.loan))
    assert await stage.serve() == []


async def test_an_id_is_free_again_once_its_message_is_settled(stage: Stage) -> None:
    await stage.open()
    await stage.put(message(shop("a"), "1"))
    await stage.serve()

    put = await stage.put(message(shop("a"), "1"))

    assert put.stored == 1
    assert await stage.serve() == ["1"]


async def test_two_tenants_may_use_one_id_and_share_nothing(stage: Stage) -> None:
    await stage.open()
    other = type(shop("a"))("globex", "a")

    put = await stage.put(message(shop("a"), "1"), message(other, "1"))

    assert (put.stored, put.requests) == (2, 2)
    first, second = await stage.begin()
    assert {first.resource, second.resource} == {shop("a"), other}
    await stage.finish(first, done(first.loan))
    await stage.finish(second, done(second.loan))


async def test_two_groups_share_no_resource(stage: Stage) -> None:
    await stage.open()
    await stage.open("mail")
    await stage.put(message(shop("a"), "1"))

    put = await stage.put(message(shop("a"), "1"), group="mail")

    assert put.stored == 1
    assert await stage.serve(groups=("mail",)) == ["1"]
    assert await stage.serve() == ["1"]


@pytest.mark.parametrize("state", [State.RETIRING, State.REMOVED])
async def test_a_retired_resource_refuses_the_whole_batch(stage: Stage, state: State) -> None:
    await stage.open()
    await stage.register(shop("gone"))
    number = await start(stage, Kind.RETIRE, resource=shop("gone"))
    if state is State.REMOVED:
        await run(stage, number)

    with pytest.raises(ResourceRetired):
        await stage.put(message(shop("a"), "1"), message(shop("gone"), "2"))

    assert await stage.serve() == []
    assert stage.rows("SELECT count(*) FROM message") == [(0,)]
    assert stage.rows("SELECT count(*) FROM resource WHERE id = 'a'") == [(0,)]


async def test_maintenance_refuses_where_the_group_says_so(stage: Stage) -> None:
    await stage.open(refuse_in_maintenance=True)
    await stage.register(shop("a"))
    await stage.set_state(shop("a"), State.MAINTENANCE, reason="moving house")

    with pytest.raises(ResourceUnderMaintenance, match="moving house"):
        await stage.put(message(shop("a"), "1"))

    assert stage.rows("SELECT count(*) FROM message") == [(0,)]


async def test_maintenance_keeps_the_work_where_the_group_does_not_refuse(stage: Stage) -> None:
    await stage.open()
    await stage.register(shop("a"))
    await stage.set_state(shop("a"), State.MAINTENANCE)

    put = await stage.put(message(shop("a"), "1"))

    assert put.stored == 1
    assert await stage.serve() == []


async def test_refusing_ends_with_the_maintenance(stage: Stage, passes: Passes) -> None:
    await stage.open(refuse_in_maintenance=True)
    await stage.register(shop("a"))
    await stage.set_state(shop("a"), State.MAINTENANCE, until=stage.clock.now() + SECOND)
    passes(SECOND)

    await stage.put(message(shop("a"), "1"))

    assert await stage.serve() == ["1"]


async def test_an_explicit_group_refuses_whom_nobody_registered(stage: Stage) -> None:
    await stage.open(register_unknown=False)
    await stage.register(shop("known"))

    with pytest.raises(UnknownResource):
        await stage.put(message(shop("known"), "1"), message(shop("stranger"), "2"))

    assert stage.rows("SELECT count(*) FROM message") == [(0,)]
    await stage.put(message(shop("known"), "1"))
    assert await stage.serve() == ["1"]


async def test_messages_of_one_resource_come_in_the_order_of_their_publishing(
    stage: Stage,
) -> None:
    await stage.open()
    await stage.put(*messages(shop("a"), 3))
    await stage.put(*messages(shop("a"), 3, start=4))

    assert await stage.serve(take=2) == [f"a-{n}" for n in range(1, 7)]


async def test_a_delayed_message_comes_at_its_millisecond_and_not_before(
    stage: Stage, passes: Passes
) -> None:
    assert stage.engine.capabilities.message_delay_exact
    await stage.open()
    await stage.put(message(shop("a"), "1", not_before=stage.clock.now() + 1500 * MS))

    passes(1499 * MS)
    early = await stage.serve()
    passes(MS)
    late = await stage.serve()

    assert (early, late) == ([], ["1"])


async def test_a_part_of_a_millisecond_is_never_early(stage: Stage, passes: Passes) -> None:
    await stage.open()
    moment = stage.clock.now() + timedelta(milliseconds=10, microseconds=1)
    await stage.put(message(shop("a"), "1", not_before=moment))

    passes(10 * MS)
    early = await stage.serve()
    passes(MS)

    assert early == []
    assert await stage.serve() == ["1"]


async def test_a_moment_that_has_passed_is_no_delay(stage: Stage) -> None:
    await stage.open()
    past = message(shop("a"), "2", not_before=stage.clock.now() - SECOND)
    await stage.put(message(shop("a"), "1"), past)

    assert await stage.serve() == ["1", "2"]
