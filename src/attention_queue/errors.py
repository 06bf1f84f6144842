"""Every exception this package raises on purpose.

AttentionQueueError
├── ContractError              the caller broke a rule; fix the code or the data
│   ├── InvalidResource        a tenant or id that no resource may have
│   ├── InvalidMessage         a work message that no engine may store
│   ├── InvalidEnvelope        an attention request that cannot be read; has the path
│   │   └── NewerEnvelope      it is of a version that a newer process can read: keep it
│   ├── UnknownResource        nobody registered it (group says ``register="explicit"``)
│   ├── UnknownPlan            no plan of that name in the group
│   ├── UnknownOperation       no operation of that number
│   ├── Conflict               somebody else changes the same thing; nothing was changed
│   ├── BacklogFull            as much waits as is allowed; nothing was stored (``retryable``)
│   ├── ResourceRetired        it takes no more work, ever
│   └── ResourceUnderMaintenance   it takes no work now (group says ``maintenance="refuse"``)
├── SetupError                 an operator must act; the text ends with what to do
│   ├── InvalidConfig          one or more settings are wrong; all of them are listed
│   ├── InvalidUrl             an engine URL that cannot be used
│   ├── ForeignDatabase        the file is not ours
│   ├── NewerDatabase          the file was migrated by a newer version
│   ├── InvalidApp             ``module:name`` does not lead to an AttentionQueue
│   └── Unsupported            the engine said it cannot do this
└── EngineError                the world failed
    ├── EngineUnavailable      no answer: nothing is known about what happened (``retryable``)
    └── TokenLost              our lease ended and somebody else may hold the token
"""

from __future__ import annotations

from typing import ClassVar


class AttentionQueueError(Exception):
    """Base of every error here; ``retryable`` says whether trying again can help."""

    retryable: ClassVar[bool] = False


class ContractError(AttentionQueueError, ValueError):
    """A value or a call that the domain contract forbids."""


class InvalidResource(ContractError):
    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"not a resource: {text[:80]!r}: {why}")
        self.text, self.why = text, why


class InvalidMessage(ContractError):
    """``field`` says which part of the message, ``why`` what is wrong with it."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"work message: {field}: {why}")
        self.field, self.why = field, why


class InvalidEnvelope(ContractError):
    """``path`` is a JSON path such as ``$.requested_at``."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"attention request: {path}: {why}")
        self.path, self.why = path, why


class NewerEnvelope(InvalidEnvelope):
    """Nothing is wrong with it: leave it where it is, for a process of a newer version."""

    def __init__(self, version: int, known: int) -> None:
        super().__init__("$.v", f"version {version}, and this process reads up to {known}")
        self.version, self.known = version, known


class UnknownResource(ContractError):
    def __init__(self, group: str, resource: object) -> None:
        super().__init__(
            f"group {group!r} has no resource {resource}: register it first, "
            'or let the group register on first use (register="auto")'
        )
        self.group, self.resource = group, resource


class UnknownPlan(ContractError):
    def __init__(self, group: str, plan: str, known: tuple[str, ...]) -> None:
        super().__init__(f"group {group!r} has no plan {plan!r}; it has {', '.join(known)}")
        self.group, self.plan, self.known = group, plan, known


class UnknownOperation(ContractError):
    def __init__(self, number: int) -> None:
        super().__init__(f"no operation {number}: attn op ls shows those that there are")
        self.number = number


class Conflict(ContractError):
    """``what`` is under way or has changed since it was read."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what}: {instead}")
        self.what, self.instead = what, instead


class BacklogFull(ContractError):
    retryable = True

    def __init__(self, whose: object, backlog: int, limit: int) -> None:
        super().__init__(
            f"{whose} has {backlog} messages waiting and may have {limit}: publish again later"
        )
        self.whose, self.backlog, self.limit = whose, backlog, limit


class ResourceRetired(ContractError):
    def __init__(self, group: str, resource: object) -> None:
        super().__init__(f"{resource} of group {group!r} is retired: it takes no more work")
        self.group, self.resource = group, resource


class ResourceUnderMaintenance(ContractError):
    retryable = True

    def __init__(self, group: str, resource: object, reason: str) -> None:
        super().__init__(f"{resource} of group {group!r} is under maintenance: {reason}")
        self.group, self.resource, self.reason = group, resource, reason


class SetupError(AttentionQueueError):
    """Something that a person has to put right."""


class InvalidConfig(SetupError):
    """``problems`` are all that were found, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class InvalidUrl(SetupError):
    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"engine URL {url!r}: {why}; for example sqlite:///attention.db")
        self.url, self.why = url, why


class ForeignDatabase(SetupError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path} is not an Attention Queue database ({why}); it was left as it is: "
            "give another path, sqlite:///attention.db for example"
        )
        self.path, self.why = path, why


class NewerDatabase(SetupError):
    def __init__(self, path: str, version: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {version} and this version knows up to {known}; it was left as it "
            "is: upgrade with pip install --upgrade attention-queue"
        )
        self.path, self.version, self.known = path, version, known


class InvalidApp(SetupError):
    def __init__(self, target: str, why: str) -> None:
        super().__init__(f"{target!r} is no application: {why}; give it as package.module:queue")
        self.target, self.why = target, why


class Unsupported(SetupError):
    def __init__(self, engine: str, capability: str, instead: str) -> None:
        super().__init__(f"{engine} does not support {capability}: {instead}")
        self.engine, self.capability = engine, capability


class EngineError(AttentionQueueError):
    """The store or broker failed; the vendor's exception is the ``__cause__``."""


class EngineUnavailable(EngineError):
    """No answer in time. "Unknown", never "did not happen": repeat with the same message ids."""

    retryable = True


class TokenLost(EngineError):
    """The lease ended before its holder let go: what it had not settled is on its way again."""

    def __init__(self, resource: object, slot: int) -> None:
        super().__init__(f"{resource} slot {slot}: the lease ended before the cycle did")
        self.resource, self.slot = resource, slot
