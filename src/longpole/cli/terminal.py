"""Standard output and error: width, colour, and what to do when nobody reads any more."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import typer

COLORS: Final = ("auto", "always", "never")
BROKEN_PIPE: Final = 141  # what a shell reports for a program that SIGPIPE ended: 128 + 13
_PIPED_WIDTH: Final = 80
_WIDEST: Final = 100


def page_width() -> int:
    """Return how wide a page is to be: the terminal's width up to 100 columns, 80 where the output is no terminal."""
    if not sys.stdout.isatty():
        return _PIPED_WIDTH
    return min(shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns, _WIDEST)


def wants_color(choice: str) -> bool:
    """Tell whether to use colour: `auto` for a terminal that can, unless NO_COLOR is set (no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_text(text: str) -> None:
    """Write text to standard output; what its encoding lacks becomes a question mark.

    Raises:
        typer.Exit: The reader has gone away; quietly, with exit code 141.
    """
    encoding = sys.stdout.encoding or "utf-8"
    write_bytes(text.encode(encoding, "replace"))


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output.

    Raises:
        typer.Exit: The reader has gone away; quietly, with exit code 141.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes once more when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None


def tell(line: str) -> None:
    """Write a line to standard error."""
    print(line, file=sys.stderr)
