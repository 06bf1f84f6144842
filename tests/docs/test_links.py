"""Every link of the pages leads somewhere, and every page can be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import pages

each_page = pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)


@each_page
def test_a_link_leads_somewhere(page: Path) -> None:
    assert pages.broken_links(page) == []


@each_page
def test_a_code_block_says_its_language(page: Path) -> None:
    assert "" not in pages.languages(page.read_text(encoding="utf-8"))


@each_page
def test_a_page_has_one_title_and_opens_with_it(page: Path) -> None:
    text = pages.prose(page.read_text(encoding="utf-8"))

    assert text.startswith("# ")
    assert text.count("\n# ") == 0


def test_every_page_can_be_reached_from_the_readme() -> None:
    assert pages.reachable(pages.README) >= set(pages.PAGES)


@pytest.mark.parametrize("link", ["no-such.md", "#no-such-heading", "other.md#nor-this", "/etc"])
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, link: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\nSee [it]({link}) and `[this]({link})`.\n")

    assert pages.broken_links(page) == [link]


def test_anchors_are_named_as_github_names_them() -> None:
    text = "# What it's *for*\n\n```text\n# no heading\n```\n\n## Two `words`, and more\n"

    assert pages.anchors(text) == {"what-its-for", "two-words-and-more"}


def test_the_language_of_each_block_is_read() -> None:
    assert pages.languages("```python\nx\n```\n\n```\ny\n```\n") == ["python", ""]
