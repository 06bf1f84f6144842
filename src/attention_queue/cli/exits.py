"""How a command ends: its exit code, and what is said to the person on stderr."""

from __future__ import annotations

from enum import IntEnum

from attention_queue.errors import (
    AttentionQueueError,
    BacklogFull,
    Conflict,
    EngineError,
    InvalidApp,
    InvalidConfig,
    InvalidUrl,
    ResourceRetired,
    ResourceUnderMaintenance,
    SetupError,
    UnknownOperation,
    UnknownPlan,
    UnknownResource,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1  # or degraded
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5  # a dependency
    PARTIAL = 6
    INTERRUPTED = 130


class Leave(Exception):
    """End the command with this code and these words."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code


def code_of(error: AttentionQueueError) -> Exit:
    match error:
        case UnknownResource() | UnknownPlan() | UnknownOperation():
            return Exit.NOT_FOUND
        case ResourceRetired() | ResourceUnderMaintenance() | Conflict() | BacklogFull():
            return Exit.CONFLICT
        case InvalidConfig() | InvalidUrl() | InvalidApp():
            return Exit.USAGE
        case SetupError() | EngineError():
            return Exit.UNAVAILABLE
        case _:
            return Exit.USAGE


def words_of(error: AttentionQueueError) -> str:
    """The error's own words; it says itself what happened, why, and what to do."""
    if isinstance(error, InvalidConfig):
        head = "the settings are wrong:" if len(error.problems) > 1 else "a setting is wrong:"
        return "\n  ".join([head, *error.problems, "see them all with attn config show --origin"])
    return str(error)
