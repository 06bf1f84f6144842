"""Who has work: one tenant's one queue."""

from __future__ import annotations

from dataclasses import dataclass

from attention_queue.contract.names import id_fault
from attention_queue.errors import InvalidResource


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """The unit that owns a work queue. Two tenants may use one id and share nothing."""

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
        tenant, slash, id = text.partition("/")
        if not slash:
            raise InvalidResource(text, "want tenant/id")
        return cls(tenant.replace("%2F", "/").replace("%25", "%"), id)

    def __str__(self) -> str:
        return f"{self.tenant.replace('%', '%25').replace('/', '%2F')}/{self.id}"
