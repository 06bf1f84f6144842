"""Who has work: one tenant's one queue."""

from __future__ import annotations

import msgspec

from attention_queue.contract.names import id_fault
from attention_queue.errors import InvalidResource


class Resource(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """The unit that owns a work queue. Two tenants may use one id and share nothing.

    A msgspec struct, because it is the key of all that is done in batches: its hash is cheap.
    """

    tenant: str  # 1-200 printable characters
    id: str  # the same

    def __post_init__(self) -> None:
        for word, text in (("tenant", self.tenant), ("id", self.id)):
            if why := id_fault(text):
                raise InvalidResource(str(text), f"{word}: {why}")

    @classmethod
    def parse(cls, text: str) -> Resource:
        """Read ``tenant/id``, the form that ``str`` writes.

        In the tenant ``%2F`` stands for a slash and ``%25`` for a percent sign; all after the
        first slash is the id, as it is.

        Raises:
            InvalidResource: No slash, or a part is no id.
        """
        if not isinstance(text, str):
            raise InvalidResource(str(text), f"want tenant/id, got {type(text).__name__}")
        tenant, slash, id = text.partition("/")
        if not slash:
            raise InvalidResource(text, "want tenant/id")
        return cls(tenant.replace("%2F", "/").replace("%25", "%"), id)

    def __str__(self) -> str:
        return f"{self.tenant.replace('%', '%25').replace('/', '%2F')}/{self.id}"
