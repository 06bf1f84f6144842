"""What a URL and a ``module:name`` mean, and what is said if they mean nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_queue import AttentionQueue, app
from attention_queue.errors import InvalidApp, InvalidUrl, SetupError


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///attention.db", "attention.db"),
        ("sqlite:///data/attention.db", "data/attention.db"),
        ("sqlite:////var/lib/attention.db", "/var/lib/attention.db"),
        ("sqlite:///:memory:", ":memory:"),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert app.sqlite_path(url) == path


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("attention.db", "want scheme://"),
        ("", "want scheme://"),
        ("sqlite://attention.db", "three slashes"),
        ("sqlite:///", "a path"),
        ("sqlite:///a.db?mode=ro", "a path has no ?"),
        ("postgresql://me:hunter2@db/attn", "no engine for 'postgresql'"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_one_that_can(url: str, hint: str) -> None:
    with pytest.raises(InvalidUrl) as refused:
        app.open_engine(url)

    assert hint in str(refused.value)
    assert "sqlite:///attention.db" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_looking_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "attention.db"

    with pytest.raises(SetupError, match="there is no database") as refused:
        app.open_insight(f"sqlite:///{path}")

    assert "a worker or `attn publish` makes it" in str(refused.value)
    assert not path.exists()


def test_what_is_in_memory_cannot_be_looked_at_from_outside() -> None:
    with pytest.raises(InvalidUrl, match="its own process"):
        app.open_insight("sqlite:///:memory:")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to import from."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_application_is_found_beside_the_caller(here: Path) -> None:
    (here / "app_beside.py").write_text(
        "from attention_queue import AttentionQueue\nqueue = AttentionQueue('shops')\n"
    )

    queue = app.load_queue("app_beside:queue", AttentionQueue)

    assert queue.name == "shops"


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("app_wrong", "a colon"),
        (":queue", "a colon"),
        ("app_absent:queue", "there is no module 'app_absent'"),
        ("app_wrong.deep:queue", "there is no module 'app_wrong.deep'"),
        ("app_needs:queue", "imports 'not_installed_anywhere', which is not installed"),
        ("app_wrong:missing", "app_wrong has no 'missing'; it has shops"),
        ("app_empty:queue", "no AttentionQueue at all"),
        ("app_wrong:number", "it is of type int, want AttentionQueue"),
    ],
)
def test_an_application_that_is_none_is_refused_with_the_reason(
    here: Path, target: str, hint: str
) -> None:
    (here / "app_wrong.py").write_text(
        "from attention_queue import AttentionQueue\nnumber = 3\nshops = AttentionQueue('shops')\n"
    )
    (here / "app_needs.py").write_text("import not_installed_anywhere\n")
    (here / "app_empty.py").write_text("")

    with pytest.raises(InvalidApp) as refused:
        app.load_queue(target, AttentionQueue)

    assert hint in str(refused.value)
    assert "package.module:queue" in str(refused.value)
