"""Where a report goes: the page, a JSON or Markdown file, a folder of CSV or Parquet files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from longpole.cli.terminal import page_width, wants_color, write_bytes, write_text
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.report.document import Report

STDOUT: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What to write, and where.

    Attributes:
        json_file: A file, `-` for standard output, None for no JSON.
        csv_folder: A folder, None for no CSV.
        detail: How much the JSON document holds.
        quiet: Write no page.
        color: `auto`, `always` or `never`.
        markdown_file: A file, `-` for standard output, None for no Markdown.
        parquet_folder: A folder, None for no Parquet.
    """

    json_file: str | None
    csv_folder: str | None
    detail: str
    quiet: bool
    color: str
    markdown_file: str | None = None
    parquet_folder: str | None = None

    def check(self) -> None:
        """Look whether everything can be written, before long work is done in vain.

        Raises:
            UsageError: Something cannot.
        """
        if self.json_file == self.markdown_file == STDOUT:
            msg = "--json - and --markdown -: expected one document on standard output; write one of them to a file"
            raise UsageError(msg)
        for option, file in (("--json", self.json_file), ("--markdown", self.markdown_file)):
            if file is not None and file != STDOUT:
                check_file(option, Path(file))
        for option, folder in (("--csv", self.csv_folder), ("--parquet", self.parquet_folder)):
            if folder is not None:
                _check_folder(option, Path(folder))

    def write(self, report: Report) -> None:
        """Write it all: files first, then standard output.

        Raises:
            UsageError: A file cannot be written, or is one of the traces.
        """
        if self.csv_folder is not None:
            from longpole.report.csv import render_csv

            tables = {name: text.encode() for name, text in render_csv(report).items()}
            _write_tables("--csv", Path(self.csv_folder), tables)
        if self.parquet_folder is not None:
            from longpole.report.parquet import render_parquet

            _write_tables("--parquet", Path(self.parquet_folder), render_parquet(report))
        if self.json_file is not None:
            from longpole.report.json import render_json

            _write_document("--json", self.json_file, render_json(report, self.detail), report)
        if self.markdown_file is not None:
            from longpole.report.markdown import render_markdown

            _write_document("--markdown", self.markdown_file, render_markdown(report).encode(), report)
        if not self.quiet and STDOUT not in (self.json_file, self.markdown_file):
            from longpole.report.text import render_text

            write_text(render_text(report, width=page_width(), color=wants_color(self.color)))


def _write_document(option: str, file: str, data: bytes, report: Report) -> None:
    if file == STDOUT:
        write_bytes(data)
        return
    refuse_traces(option, Path(file), report)
    write_file(option, Path(file), data)


def _write_tables(option: str, folder: Path, tables: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(option, folder, error)
    for name, data in tables.items():
        write_file(option, folder / name, data)


def refuse_traces(option: str, path: Path, report: Report) -> None:
    """Refuse to write over what a report was made from.

    Raises:
        UsageError: The file is one of the traces.
    """
    refuse_inputs(option, path, [source.path for source in report.run.sources], "traces")


def refuse_inputs(option: str, path: Path, inputs: Iterable[str], called: str) -> None:
    """Refuse to write over what was read.

    Raises:
        UsageError: The file is one of the inputs.
    """
    if any(is_same(str(path), one.partition("!")[0]) for one in inputs):
        msg = f"{option} {path}: expected a file to write the report to, found one of the {called}; name another"
        raise UsageError(msg)


def write_file(option: str, path: Path, data: bytes) -> None:
    """Write a file that an option names.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        refuse(option, path, error)


def check_file(option: str, path: Path) -> None:
    """Look whether a file that an option names can be written.

    Raises:
        UsageError: It is a folder, lies in none, or may not be written.
    """
    if path.is_dir():
        msg = f"{option} {path}: expected a file to write, found a folder; name a file in it"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"{option} {path}: the folder {path.parent} does not exist; create it or name another file"
        raise UsageError(msg)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        msg = f"{option} {path}: no permission to write there; name another file"
        raise UsageError(msg)


def _check_folder(option: str, path: Path) -> None:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir():
        msg = f"{option} {path}: expected a folder, found the file {existing}; name another folder"
        raise UsageError(msg)
    if not os.access(existing, os.W_OK):
        msg = f"{option} {path}: no permission to write in {existing}; name another folder"
        raise UsageError(msg)


def refuse(option: str, path: Path, error: OSError) -> NoReturn:
    """Say that what an option names cannot be written."""
    msg = f"{option} {path}: cannot be written: {error.strerror or error}; name another place"
    raise UsageError(msg) from None


def is_same(one: str, other: str) -> bool:
    """Tell whether two paths are one file."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
