"""The house rules, held by every file of the tree; what is let off stands here with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pytest

from architecture import rules

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "attention_queue"
SHIPPED = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
WRITTEN = sorted(
    SHIPPED + [p for d in ("tests", "benchmarks", "scripts") for p in (ROOT / d).rglob("*.py")]
)
STATEMENTS = sorted(p for p in PACKAGE.rglob("*.sql") if "migrations" not in p.parts)

# One line each: the file (and function), and why it is let off.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
READS_ENVIRONMENT = {
    "config.py": "the only reader of the environment",
}
READS_WALL_CLOCK = {
    "clock.py": "it is the clock",
    "contract/messages.py": "a UUIDv7 holds the millisecond it was made in",
}
LOCAL_IMPORTS: dict[str, str] = {}
KNOWS_AN_ENGINE = {
    "app.py": "the only chooser of an engine",
}
SLEEPS = {
    "tests/scenario/victim.py": "the time that the outside call of its handler takes",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def in_package(path: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(PACKAGE).as_posix())


each_shipped = pytest.mark.parametrize("path", SHIPPED, ids=name_of)
each_of_package = pytest.mark.parametrize(
    "path", [p for p in SHIPPED if p.is_relative_to(PACKAGE)], ids=name_of
)

each_test = pytest.mark.parametrize(
    "path", [p for p in WRITTEN if p.is_relative_to(ROOT / "tests")], ids=name_of
)


def assert_none(faults: Iterable[str]) -> None:
    assert not (found := list(faults)), "\n".join(found)


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_a_module_says_what_it_is_and_stays_short(path: Path) -> None:
    faults = rules.module_faults(path.read_text(encoding="utf-8"))

    assert_none(f for f in faults if not (name_of(path) in LONG_MODULES and "lines" in f))


@each_shipped
def test_a_function_stays_short(path: Path) -> None:
    found = rules.long_functions(path.read_text(encoding="utf-8"))

    assert_none(
        f"{function}: {lines} lines, want at most {rules.MAX_FUNCTION}"
        for function, lines in found
        if f"{name_of(path)}:{function}" not in LONG_FUNCTIONS
    )


def test_whatever_is_let_off_still_needs_it() -> None:
    long_modules = {
        name_of(path)
        for path in WRITTEN
        if any("lines" in f for f in rules.module_faults(path.read_text(encoding="utf-8")))
    }
    long_functions = {
        f"{name_of(path)}:{function}"
        for path in SHIPPED
        for function, _ in rules.long_functions(path.read_text(encoding="utf-8"))
    }

    assert set(LONG_MODULES) <= long_modules
    assert set(LONG_FUNCTIONS) <= long_functions
    assert all([*LONG_MODULES.values(), *LONG_FUNCTIONS.values()]), "each with its reason"


@each_of_package
def test_only_the_clock_reads_the_clock(path: Path) -> None:
    if str(in_package(path)) not in READS_WALL_CLOCK:
        assert_none(rules.wall_clocks(path.read_text(encoding="utf-8")))


@each_of_package
def test_only_the_configuration_reads_the_environment(path: Path) -> None:
    if str(in_package(path)) not in READS_ENVIRONMENT:
        assert_none(rules.environment_reads(path.read_text(encoding="utf-8")))


@each_of_package
def test_a_driver_stays_in_its_own_folder(path: Path) -> None:
    assert_none(rules.foreign_drivers(path.read_text(encoding="utf-8"), in_package(path)))


@each_of_package
def test_what_a_module_needs_stands_at_its_top(path: Path) -> None:
    if str(in_package(path)) not in LOCAL_IMPORTS:
        assert_none(rules.local_imports(path.read_text(encoding="utf-8")))


@each_of_package
def test_only_the_chooser_knows_an_engine(path: Path) -> None:
    name = in_package(path)
    if not name.is_relative_to("engines") and str(name) not in KNOWS_AN_ENGINE:
        assert_none(rules.engine_choices(path.read_text(encoding="utf-8")))


@each_test
def test_a_test_waits_for_an_event_and_not_for_a_time(path: Path) -> None:
    if name_of(path) not in SLEEPS:
        assert_none(rules.sleeps(path.read_text(encoding="utf-8")))


@each_test
def test_a_test_uses_the_real_thing(path: Path) -> None:
    assert_none(rules.mocks(path.read_text(encoding="utf-8")))


@each_shipped
def test_no_message_becomes_running_code(path: Path) -> None:
    assert_none(rules.unsafe_code(path.read_text(encoding="utf-8")))


@each_shipped
def test_every_task_has_an_owner(path: Path) -> None:
    assert_none(rules.bare_tasks(path.read_text(encoding="utf-8")))


@each_shipped
def test_no_error_is_swallowed(path: Path) -> None:
    assert_none(rules.swallowed_errors(path.read_text(encoding="utf-8")))


@each_shipped
def test_no_statement_is_put_together_at_run_time(path: Path) -> None:
    assert_none(rules.built_sql(path.read_text(encoding="utf-8")))


@each_shipped
def test_a_name_says_the_domain_thing(path: Path) -> None:
    assert path.name not in rules.EMPTY_FILES
    assert_none(rules.empty_names(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_a_todo_has_an_issue_number(path: Path) -> None:
    if path.parent.name != "architecture":  # the rule's own samples
        assert_none(rules.orphaned_todos(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", STATEMENTS, ids=name_of)
def test_a_named_statement_says_what_it_promises(path: Path) -> None:
    assert_none(rules.sql_faults(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", STATEMENTS, ids=name_of)
def test_a_named_statement_is_used(path: Path) -> None:
    modules = [p.read_text(encoding="utf-8") for p in path.parent.glob("*.py")]

    assert rules.statement_names(path.read_text(encoding="utf-8")) <= set().union(
        *map(rules.strings, modules)
    )


def test_the_rules_see_the_tree() -> None:
    assert len(SHIPPED) > 20
    assert STATEMENTS
