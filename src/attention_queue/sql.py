"""Named statements from ``.sql`` files, and the numbered migrations beside them.

A file is a list of blocks ``-- name: take``, followed by comment lines that say what the statement
promises, then the statement.
"""

from __future__ import annotations

import re
from importlib import resources

_BLOCK = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def load(package: str, file: str) -> dict[str, str]:
    """The file's statements by name, without their comments.

    Raises:
        ValueError: The file has no named statement, or has one name twice.
    """
    text = (resources.files(package) / file).read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text)
    statements = {name: _COMMENT.sub("", body).strip() for name, body in blocks}
    if not blocks or len(statements) != len(blocks):
        raise ValueError(f"{package}/{file}: want one or more uniquely named statements")
    return statements


def migrations(package: str, engine: str) -> dict[int, str]:
    """The scripts ``<engine>/0001_words.sql`` by number, in order. They only go forward.

    Raises:
        ValueError: The numbers are not 1, 2, 3 and so on.
    """
    folder = resources.files(package) / engine
    found = {
        int(file.name[:4]): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }
    if sorted(found) != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}/{engine}: want migrations numbered from 1 without a gap")
    return dict(sorted(found.items()))
