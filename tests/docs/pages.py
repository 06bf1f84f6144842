"""The pages as data: which there are, what they link to, and what can be linked to."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^( *)```.*?^\1```\s*$", re.MULTILINE | re.DOTALL)
_OPENING = re.compile(r"^ *```(\w*)", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """The text without its code."""
    return _CODE.sub("", _FENCED.sub("", text))


def links(text: str) -> list[str]:
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """Headings as GitHub names them: lower case, hyphens for spaces, no punctuation."""
    plain = (re.sub(r"[^\w\- ]", "", h.lower()) for h in _HEADING.findall(_FENCED.sub("", text)))
    return {heading.replace(" ", "-") for heading in plain}


def languages(text: str) -> list[str]:
    """The language of every fenced block, in order; empty where none is given."""
    return _OPENING.findall(text)[::2]


def broken_links(page: Path) -> list[str]:
    """Relative links that lead to no file, out of the repository, or to no heading."""
    return [link for link in links(page.read_text(encoding="utf-8")) if not _leads(page, link)]


def _leads(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


def reachable(start: Path) -> set[Path]:
    """All pages that a reader can get to by links from ``start``."""
    seen: set[Path] = set()
    todo = [start]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in links(page.read_text(encoding="utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                todo.append(target)
    return seen
