"""`longpole cache`: how large the cache is, and emptying it."""

from __future__ import annotations

from typing import Final

import typer

from longpole.cli.terminal import write_text
from longpole.units import format_bytes

EXAMPLES: Final = """\b
Examples:
  longpole cache size
  longpole cache clear"""

cache_app = typer.Typer(
    help="Show or empty the cache of what was read before.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@cache_app.command("size", short_help="Say how large the cache is.", epilog="Example: longpole cache size")
def size() -> None:
    """Say how many entries the cache has, how large it is, and where it lies."""
    from longpole.digest.cache import Cache
    from longpole.report.escape import escape

    held = Cache.default().size()
    entries = "entry" if held.n_entries == 1 else "entries"
    write_text(f"{held.n_entries:,} {entries}, {format_bytes(held.size_bytes)} in {escape(str(held.folder))}\n")


@cache_app.command("clear", short_help="Delete all entries.", epilog="Example: longpole cache clear")
def clear() -> None:
    """Delete all entries; the next report reads its files anew."""
    from longpole.digest.cache import Cache

    write_text(f"{format_bytes(Cache.default().clear())} freed\n")
