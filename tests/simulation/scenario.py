"""What happens in one schedule, drawn from its seed: shops, publishers, workers, people, faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta

from attention_queue.contract import Backoff, Order, Plan, Policy, Priority, Rate

GROUP = "shops"
LEASE = 0.6  # seconds; short, so that it ends often
_SHORT = Policy(
    max_messages=3,
    max_seconds=timedelta(seconds=2),
    handler_timeout=timedelta(seconds=0.5),
    lease=timedelta(seconds=LEASE),
    retry=Backoff(
        attempts=4, first=timedelta(milliseconds=60), cap=timedelta(milliseconds=250), factor=2.0
    ),
)
ONE = Plan("one", _SHORT)
TWO = Plan("two", replace(_SHORT, max_consumers=2, max_messages=1))
STRICT = Plan("strict", replace(_SHORT, order=Order.STRICT))
RATED = Plan("rated", replace(_SHORT, rates={"resource": Rate(4, timedelta(seconds=1))}))
BRIEF = Plan("brief", replace(_SHORT, ttl=timedelta(seconds=0.4), max_messages=1))
CAPPED = Plan("capped", replace(_SHORT, max_backlog=3))
PLANS = (ONE, TWO, STRICT, RATED, BRIEF, CAPPED)
LIFE = ("retire", "discard", "discard", "redrive", "discard_dead", "cancel", "pause_now")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How likely what is; a mutant's own profile looks where it hides."""

    plans: tuple[str, ...] = ("one", "one", "two", "two", "strict", "rated")
    shops: tuple[int, int] = (1, 2)
    workers: tuple[int, int] = (1, 3)
    publishers: tuple[int, int] = (1, 3)
    messages: tuple[int, int] = (2, 6)  # of one publisher
    faultless: float = 0.3  # share of schedules without any fault
    faults: tuple[str, ...] = ("kill", "kill", "pause", "lose_reply", "refuse", "clock")
    most_faults: int = 4
    people: float = 0.5  # share of schedules in which somebody changes states and plans
    delayed: float = 0.15  # of messages
    batched: float = 0.15  # of messages: handled in lists
    odd: float = 0.04  # of messages: of a type that not every worker handles
    stop: float = 0.05  # of handler calls
    fail: float = 0.1
    slow: float = 0.08
    crash: float = 0.02
    reject: float = 0.01
    life: float = 0.0  # share of schedules with operations, expiry, caps and pauses that stop now
    sweeps: float = 0.1  # share of schedules with a sweep every second; else it never comes


USUAL = Profile(life=0.25)


@dataclass(frozen=True, slots=True)
class Shop:
    name: str
    plan: str
    moves: bool  # somebody moves it between plans

    @property
    def ordered(self) -> bool:
        return self.plan != "two" and not self.moves


@dataclass(frozen=True, slots=True)
class Publish:
    wait: float  # seconds before it
    shop: Shop
    id: str
    number: int
    type: str  # job, batch, odd
    delay: float | None
    priority: Priority | None
    again: bool  # published a second time, with the same id
    gives_up: bool  # after an unknown answer, instead of publishing again
    together: bool  # with the next one, in one call

    @property
    def ordered(self) -> bool:
        """Whether its first handling has a place in its publisher's order."""
        told = self.shop.ordered and self.delay is None
        return told and (self.type != "odd" or self.shop.plan == "strict")


@dataclass(frozen=True, slots=True)
class Act:
    """Something a person does."""

    wait: float
    kind: str  # pause, resume, pause_until, nudge, move, limit; or one of LIFE
    shop: Shop
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    shops: list[Shop]
    slots: list[int]  # of each worker
    publishers: list[list[Publish]]
    acts: list[Act]
    behaviours: dict[str, list[str]] = field(default_factory=dict)  # by message id, by call
    faults: int
    fault_probability: float
    sweep_every: float
    life: bool


def draw(chance: random.Random, profile: Profile) -> Scenario:
    life = profile.life > 0 and chance.random() < profile.life
    if life:
        plans = (*profile.plans, BRIEF.name, CAPPED.name)
        profile = replace(profile, people=1.0, reject=0.15, plans=plans)
    people = chance.random() < profile.people
    shops = [
        Shop(f"t/s{n}", plan := chance.choice(profile.plans), people and plan in ("one", "two"))
        for n in range(chance.randint(*profile.shops))
    ]
    faultless = chance.random() < profile.faultless
    behaviours: dict[str, list[str]] = {}
    publishers = [
        _publisher(chance, profile, f"p{n}", shops, behaviours, faultless)
        for n in range(chance.randint(*profile.publishers))
    ]
    return Scenario(
        shops=shops,
        slots=[chance.choice((1, 1, 2, 3)) for _ in range(chance.randint(*profile.workers))],
        publishers=publishers,
        acts=_acts(chance, shops, LIFE if life else ()) if people else [],
        behaviours=behaviours,
        faults=0 if faultless else chance.randint(1, profile.most_faults),
        fault_probability=chance.choice((0.015, 0.04, 0.12)),
        sweep_every=1.0 if chance.random() < profile.sweeps else 3600.0,
        life=life,
    )


def _publisher(
    chance: random.Random,
    profile: Profile,
    name: str,
    shops: list[Shop],
    behaviours: dict[str, list[str]],
    faultless: bool,
) -> list[Publish]:
    steps = []
    batched = chance.choice((0.0, profile.batched, 3.0))
    for number in range(1, chance.randint(*profile.messages) + 1):
        id = f"{name}-{number}"
        behaviours[id] = _behaviour(chance, profile, faultless)
        steps.append(
            Publish(
                wait=chance.choice((0.0, 0.0, 0.005, 0.05, 0.3)) * chance.random(),
                shop=chance.choice(shops),
                id=id,
                number=number,
                type=chance.choices(("batch", "odd", "job"), (batched, profile.odd, 1))[0],
                delay=chance.uniform(0.01, 0.8) if chance.random() < profile.delayed else None,
                priority=chance.choice((None, None, *Priority)),
                again=chance.random() < 0.1,
                gives_up=chance.random() < 0.2,
                together=chance.random() < 0.1,
            )
        )
    return steps


def _behaviour(chance: random.Random, profile: Profile, faultless: bool) -> list[str]:
    """What the handler does with a message the first, second, third time; then it is done."""
    if not faultless and chance.random() < profile.crash / 4:
        return ["crash"] * 10
    weights = {
        "stop": profile.stop / 2,
        "stop_scope": profile.stop / 4,
        "stop_state": profile.stop / 4,
        "fail": profile.fail / 2,
        "retry": profile.fail / 2,
        "slow": profile.slow,
        "hang": 0.01,
        "reject": profile.reject,
        "crash": 0.0 if faultless else profile.crash,
    }
    weights["done"] = max(1 - sum(weights.values()), 0.0)
    return chance.choices(list(weights), list(weights.values()), k=3)


def _acts(chance: random.Random, shops: list[Shop], life: tuple[str, ...]) -> list[Act]:
    acts = []
    for _ in range(chance.randint(1, 5)):
        shop = chance.choice(shops)
        wait = chance.choice((0.0, 0.01, 0.1, 0.5)) * chance.random()
        kinds = ["pause", "resume", "pause_until", "nudge"] + ["move", "limit"] * shop.moves
        kinds += life
        acts.append(Act(wait, chance.choice(kinds), shop, chance.uniform(0.05, 0.6)))
    if life:  # when something has died
        acts.append(Act(chance.uniform(0.3, 2.0), "redrive", chance.choice(shops)))
        acts += [Act(0.6, "cancel", acts[-1].shop)] * (chance.random() < 0.2)
    return acts
