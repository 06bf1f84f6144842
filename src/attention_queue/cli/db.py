"""``attn db``: make the database, show its version, print its schema."""

from __future__ import annotations

import asyncio

from attention_queue import app, config
from attention_queue.cli.exits import Exit
from attention_queue.cli.output import Output, Url, grid, print_one, talk


def migrate(*, url: Url = None) -> None:
    """Make the database, or bring its schema up to date. Again changes nothing."""
    address = config.load({"url": url}).url
    before = app.schema(address)
    asyncio.run(_open_and_close(address))
    after = app.schema(address)
    if before.version == after.version:
        talk(f"{after.place} has schema {after.version} already, the latest")
    elif before.version:
        talk(f"{after.place} went from schema {before.version} to {after.version}")
    else:
        talk(f"{after.place} was made with schema {after.version}")


def status(*, output: Output = "table", url: Url = None) -> int:
    """Show the version of the schema. Exits with 1 if it is not the latest."""
    found = app.schema(config.load({"url": url}).url)
    data: dict[str, object] = {
        "place": found.place,
        "schema": found.version,
        "latest": found.latest,
    }
    said = "not made yet" if not found.version else str(found.version)
    print_one(
        output,
        data,
        grid([("place", found.place), ("schema", said), ("latest", str(found.latest))]),
    )
    if found.version < found.latest:
        talk("run attn db migrate")
    return Exit.OK if found.version == found.latest else Exit.FAILED


def sql(*, url: Url = None) -> None:
    """Print the scripts that make the schema, in order."""
    for script in app.migrations(config.load({"url": url}).url):
        print(script)


async def _open_and_close(url: str) -> None:
    engine = app.open_engine(url)
    await engine.close()
