"""What a name may be: the one rule for ids of tenants, resources and messages, types and groups."""

from __future__ import annotations

import re
import unicodedata

MAX_ID = 200  # characters
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPE = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


def id_fault(text: object) -> str | None:
    """Why ``text`` cannot be an id, or None.

    An id is 1-200 characters of NFC text without controls, line breaks, lone surrogates,
    bidirectional marks or zero-width characters: what is shown is what is stored.
    """
    if not isinstance(text, str):
        return f"want text, got {type(text).__name__}"
    if not text:
        return "it is empty"
    if len(text) > MAX_ID:
        return f"it has {len(text)} characters, at most {MAX_ID} are allowed"
    if not text.isprintable():
        bad = next(c for c in text if not c.isprintable())
        return f"it has the character U+{ord(bad):04X}, which cannot be shown"
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        return "it is not in Unicode normal form NFC"
    return None


def word_fault(text: object) -> str | None:
    """Why ``text`` cannot be the name of a group, plan or resource type, or None."""
    if isinstance(text, str) and _WORD.fullmatch(text):
        return None
    return "want 1-64 characters of A-Z a-z 0-9 _ -"


def type_fault(text: object) -> str | None:
    """Why ``text`` cannot be a message type, or None."""
    if isinstance(text, str) and _TYPE.fullmatch(text):
        return None
    return "want 1-128 characters of A-Z a-z 0-9 _ . : / -"
