"""Where a document other than the report goes: a JSON file, and its page on standard output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.cli.outputs import STDOUT, check_file, is_same, write_file
from longpole.cli.terminal import page_width, wants_color, write_bytes, write_text
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOutput:
    """What to write, and where.

    Attributes:
        json_file: A file, `-` for standard output, None for no JSON.
        quiet: Write no page.
        color: `auto`, `always` or `never`.
    """

    json_file: str | None
    quiet: bool
    color: str

    def check(self) -> None:
        """Look whether the file can be written, before long work is done in vain.

        Raises:
            UsageError: It cannot.
        """
        if self.json_file is not None and self.json_file != STDOUT:
            check_file("--json", Path(self.json_file))

    def write(self, encode: Callable[[], bytes], render: Callable[[int, bool], str], *, sources: Iterable[str]) -> None:
        """Write the document: the file first, then standard output.

        Args:
            encode: Returns the document as JSON.
            render: Returns the page, given its width and whether to use colour.
            sources: Files that were read, which are never written over.

        Raises:
            UsageError: The file cannot be written, or is one of the sources.
        """
        if self.json_file == STDOUT:
            write_bytes(encode())
            return
        if self.json_file is not None:
            if any(is_same(self.json_file, source) for source in sources):
                msg = f"--json {self.json_file}: expected a file to write to, found one of the traces; name another"
                raise UsageError(msg)
            write_file("--json", Path(self.json_file), encode())
        if not self.quiet:
            write_text(render(page_width(), wants_color(self.color)))
