"""Beginning that forgets the request, counts tokens wrongly, or mixes up loans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attention_queue.contract import Hold
from attention_queue.engines.sqlite import claim, expiry, settle
from attention_queue.engines.sqlite.claim import Claim
from attention_queue.engines.sqlite.directory import Record
from attention_queue.engines.sqlite.engine import SqliteEngine
from attention_queue.engines.sqlite.loans import Range
from attention_queue.engines.sqlite.transaction import Row, Transaction
from attention_queue.ports import Begun, Declined, Want
from simulation.scenario import Profile
from simulation.world import Mutant

_grant, _block, _valid = Claim._grant, Claim._block, Claim._valid_tokens
LOST = frozenset({"work_without_request", "token_without_request"})


def _deletes_the_request(self: Claim, tx: Transaction, record: Record, *rest: object) -> Begun:
    begun = _grant(self, tx, record, *rest)
    tx.run("drop_request", record.rid)
    return begun


def _drops_when_busy(
    self: Claim, tx: Transaction, record: Record, why: Hold, until_ms: int
) -> Declined:
    declined = _block(self, tx, record, why, until_ms)
    if why is Hold.BUSY:
        tx.run("drop_request", record.rid)
    return declined


class _Below(list[Row]):
    """Counts only the tokens of slots below the limit."""

    limit = 1

    def __len__(self) -> int:
        return sum(row[0] < self.limit for row in self)


def _counts_slots(self: Claim, tx: Transaction, record: Record) -> list[Row]:
    tokens = _Below(_valid(self, tx, record))
    tokens.limit = record.policy.max_consumers
    return tokens


def _keeps_ended_tokens(self: Claim, tx: Transaction, record: Record) -> list[Row]:
    return [row for row in tx.all("tokens", record.rid) if row[2] > tx.now_ms]


def _charges_all(tx: Transaction, record: Record, loan: list[Range]) -> list[object]:
    for each in loan:
        for due, seq, _, _ in tx.all("on_loan", record.rid, *each):
            tx.run("charge", record.rid, due, seq)
        tx.run("suspect", record.rid, *each)
    return []


def _forgets(tx: Transaction, record: Record, loan: list[Range]) -> list[object]:
    return []


def _takes_suspects_along(
    tx: Transaction, rid: int, limit: int, others: Sequence[Range], born_after_ms: int
) -> tuple[list[Row], list[Row]]:
    rows: list[Row] = []
    rows += tx.all("due_messages", rid, tx.now_ms, limit)
    rows += tx.all("ready_messages", rid, -1, 1 << 62, limit)
    lent = [r for r in rows if any(d == r[0] and a <= r[1] <= b for d, a, b in others)]
    return [row for row in rows if row not in lent][:limit], []


def _on_nobodys_loan(tokens: Iterable[Row]) -> list[Range]:
    return []


class TokenLater(SqliteEngine):
    """Takes the work, and registers that it has begun in a second transaction (H7)."""

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        found = await super().begin(want)
        begun = [each for each in found if isinstance(each, Begun)]
        rows = await self.writer.run(lambda tx: [self.hide(tx, each) for each in begun])
        await self.between()
        await self.writer.run(lambda tx: [tx.run("grant", *row) for row in rows])
        return found

    def hide(self, tx: Transaction, begun: Begun) -> tuple[object, ...]:
        rid, token = begun.handle.record.rid, begun.token
        row = next(row for row in tx.all("tokens", rid) if row[1] == token.fence)
        tx.run("take_token", rid, token.slot, token.fence)
        return rid, token.slot, token.owner, token.fence, row[2], row[3]


class SettlesWhenTaken(SqliteEngine):
    """At most once: a message is gone when it is taken."""

    async def begin(self, want: Want) -> Sequence[Begun | Declined]:
        found = await super().begin(want)
        for each in found:
            if isinstance(each, Begun):
                done = [(delivery, settle.Done()) for delivery in each.loan]
                await self.writer.run(settle.Settling(each, done))
        return found


SUSPECTS = Profile(crash=0.3, plans=("one", "two", "strict"), faultless=0.0)
CLAIMING = (
    Mutant(
        name="request deleted at claim (H9)",
        kinds=LOST,
        swaps=((Claim, "_grant", _deletes_the_request),),
    ),
    Mutant(
        name="request dropped because somebody holds the token (H10)",
        kinds=LOST,
        swaps=((Claim, "_block", _drops_when_busy),),
    ),
    Mutant(
        name="token registered after the work is taken (H7)",
        kinds=frozenset({"request_too_late", "too_many_tokens", "lent_twice"}),
        engine=TokenLater,
    ),
    Mutant(
        name="message settled before it is handled",
        kinds=frozenset({"settled_unhandled"}),
        engine=SettlesWhenTaken,
    ),
    Mutant(
        name="a lowered limit is kept by slot number (H35)",
        kinds=frozenset({"too_many_tokens"}),
        swaps=((Claim, "_valid_tokens", _counts_slots),),
        profile=Profile(plans=("two",), people=1.0, slow=0.4),
        within=4_000,
    ),
    Mutant(
        name="ended tokens are not taken away",
        kinds=frozenset({"not_drained", "leaked", "lent_twice", *LOST}),
        swaps=((Claim, "_valid_tokens", _keeps_ended_tokens),),
    ),
    Mutant(
        name="a death is charged to all that was on loan (H38)",
        kinds=frozenset({"innocent_charged"}),
        swaps=((claim, "rescue", _charges_all),),
    ),
    Mutant(
        name="rescue forgets what was on loan (H38)",
        kinds=frozenset({"poison_not_found"}),
        swaps=((claim, "rescue", _forgets),),
        profile=SUSPECTS,
    ),
    Mutant(
        name="suspects are taken in company (H38)",
        kinds=frozenset({"suspect_in_company", "spin"}),
        swaps=((expiry, "take", _takes_suspects_along),),
        profile=SUSPECTS,
    ),
    Mutant(
        name="loans are ignored by take",
        kinds=frozenset({"lent_twice"}),
        swaps=((claim, "loan_of", _on_nobodys_loan), (settle, "loan_of", _on_nobodys_loan)),
        profile=Profile(plans=("two",)),
    ),
)
