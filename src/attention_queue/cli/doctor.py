"""``attn doctor``: everything that can be checked without changing anything."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from attention_queue import app, config
from attention_queue.cli.exits import Exit
from attention_queue.cli.output import Output, Url, columns, print_many
from attention_queue.contract.figures import Check, Grade
from attention_queue.core.tables import check_table
from attention_queue.errors import InvalidConfig, SetupError

_STYLES = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "bold red"}


def doctor(*, output: Output = "table", url: Url = None) -> int:
    """Look for what is wrong here, and say how to mend it. Exits with 1 if something is."""
    checks = [Check("python", Grade.OK, f"{platform.python_version()} on {platform.system()}")]
    try:
        settings = config.load({"url": url})
    except InvalidConfig as error:
        fix = "attn config show --origin"
        checks += [Check("settings", Grade.FAIL, each, fix) for each in error.problems]
    else:
        checks += [Check("settings", Grade.OK, "all valid"), *_database(settings.url)]
    print_many(output, [check_table(check) for check in checks], _drawn(checks))
    failed = any(check.grade is Grade.FAIL for check in checks)
    return Exit.FAILED if failed else Exit.OK


def _database(url: str) -> Sequence[Check]:
    try:
        return app.examine(url)
    except SetupError as error:
        return [Check("engine", Grade.FAIL, str(error))]


def _drawn(checks: Sequence[Check]) -> RenderableType:
    table = columns("", "Check", "Found")
    for check in checks:
        found = Text(check.found)
        if check.fix:
            found = Text.assemble(found, ("\n→ ", "dim"), check.fix)
        table.add_row(Text(check.grade.value, _STYLES[check.grade]), check.name, found)
    return Group(table)
