"""Any history: whatever publishers, workers, people and deaths do, nothing is lost or stranded."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from attention_queue.clock import ManualClock
from attention_queue.contract import DONE, Delivery, Hold, Reject, Retry, State, Unknown
from attention_queue.errors import TokenLost
from attention_queue.ports import Begun, Nudge
from contract.stage import LEASE, MS, SECOND, SqliteStage, message, shop

T = TypeVar("T")
SHOPS = [shop(name) for name in "abc"]
shops = st.sampled_from(SHOPS)
outcomes = st.sampled_from(
    [DONE, DONE, DONE, Retry(timedelta(0)), Retry(SECOND), Reject("no"), Unknown(SECOND)]
)


def at_once(doing: Coroutine[Any, Any, T]) -> T:
    """In memory nothing is ever waited for."""
    try:
        doing.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")


class AnyHistory(RuleBasedStateMachine):
    """Cycles are held open, settled in part, finished, left to die or taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = SqliteStage(ManualClock(), ":memory:")
        at_once(self.stage.open(max_messages=3, max_consumers=2, max_crashes=2))
        for each in SHOPS:
            at_once(self.stage.register(each))
        self.published: list[str] = []
        self.settled: list[str] = []
        self.held: list[tuple[Begun, list[Delivery]]] = []

    @rule(to=shops, count=st.integers(1, 4), wait=st.sampled_from([0, 0, 0, 1, 50]))
    def publish(self, to: Any, count: int, wait: int) -> None:
        moment = self.stage.clock.now() + wait * SECOND if wait else None
        start = len(self.published)
        work = [message(to, f"{start + n}", not_before=moment) for n in range(count)]
        at_once(self.stage.put(*work))
        self.published += [each.id for each in work]

    @rule(limit=st.integers(1, 4), extra=st.integers(0, 3), take=st.integers(1, 3))
    def begin(self, limit: int, extra: int, take: int) -> None:
        found = at_once(self.stage.begin(limit=limit, extra=extra, take=take))
        self.held += [(begun, list(begun.loan)) for begun in found]

    @precondition(lambda self: self.held)
    @rule(data=st.data(), take=st.sampled_from([0, 0, 2]), invite=st.booleans())
    def settle(self, data: st.DataObject, take: int, invite: bool) -> None:
        begun, loan = data.draw(st.sampled_from(self.held))
        said = self._say(data, loan, all_of_it=take > 0)
        try:
            more = at_once(self.stage.engine.settle(begun, said, take=take, invite=invite))
        except TokenLost:
            self._forget(begun)
            return
        self._record(said)
        del loan[: len(said)]
        loan += more

    @precondition(lambda self: self.held)
    @rule(data=st.data(), hold=st.sampled_from([None, None, Hold.RATE, Hold.STOP, Hold.HEAD]))
    def finish(self, data: st.DataObject, hold: Hold | None) -> None:
        begun, loan = data.draw(st.sampled_from(self.held))
        said = self._say(data, loan, all_of_it=False)
        wait = {"not_before": 5 * SECOND, "hold": hold} if hold else {}
        self._forget(begun)
        try:
            at_once(self.stage.finish(begun, said, **wait))
        except TokenLost:
            return
        self._record(said)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self._forget(data.draw(st.sampled_from(self.held))[0])

    @precondition(lambda self: self.held)
    @rule()
    def renew(self) -> None:
        for lost in at_once(self.stage.engine.renew([begun for begun, _ in self.held])):
            self._forget(lost)

    @rule(time=st.sampled_from([MS, SECOND, 5 * SECOND, LEASE / 2, LEASE, 120 * SECOND]))
    def pass_time(self, time: timedelta) -> None:
        self.stage.clock.advance(time)

    @rule(of=shops, state=st.sampled_from([State.ACTIVE, State.PAUSED]), ends=st.booleans())
    def change_state(self, of: Any, state: State, ends: bool) -> None:
        until = self.stage.clock.now() + 7 * SECOND if ends else None
        at_once(self.stage.set_state(of, state, until=until))

    @rule(consumers=st.integers(1, 3), quantum=st.integers(1, 3))
    def change_plan(self, consumers: int, quantum: int) -> None:
        policy = {"max_consumers": consumers, "max_messages": quantum, "max_crashes": 2}
        at_once(self.stage.set_policy(**policy))

    @rule(of=shops)
    def nudge(self, of: Any) -> None:
        at_once(self.stage.engine.change(Nudge(group="shops", resource=of), actor="ann"))

    @invariant()
    def nothing_contradicts_itself(self) -> None:
        assert self.stage.faults() == []

    @invariant()
    def the_belt_is_never_needed(self) -> None:
        assert dict(at_once(self.stage.engine.sweep(-1, 100)).repairs) == {}

    def teardown(self) -> None:
        """All die; then everything is served by nothing but time, and each message once."""
        for each in SHOPS:
            at_once(self.stage.set_state(each, State.ACTIVE))
        for _ in range(40):
            self.settled += at_once(self.stage.serve())
            self.stage.clock.advance(LEASE)
        dead = [each["id"] for each in self.stage.dead()]
        assert sorted([*self.settled, *dead]) == sorted(self.published)
        assert self.stage.requests() == 0
        at_once(self.stage.engine.close())

    def _say(self, data: st.DataObject, loan: list[Delivery], *, all_of_it: bool) -> list[Any]:
        count = len(loan) if all_of_it else data.draw(st.integers(0, len(loan)))
        return [(delivery, data.draw(outcomes)) for delivery in loan[:count]]

    def _record(self, said: list[Any]) -> None:
        self.settled += [delivery.message.id for delivery, outcome in said if outcome == DONE]

    def _forget(self, begun: Begun) -> None:
        self.held = [each for each in self.held if each[0] is not begun]


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
