"""Find the trace files behind the paths that a user named."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError, NotATraceError, UsageError
from longpole.readers.container import list_members, open_stream
from longpole.readers.kineto.sniff import looks_like_kineto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.settings import Settings

_HEAD_BYTES: Final = 1 << 20
_NEVER_TRACES: Final = (
    ".py",
    ".md",
    ".txt",
    ".csv",
    ".toml",
    ".yaml",
    ".yml",
    ".html",
    ".png",
    ".svg",
    ".pdf",
    ".log",
    ".parquet",
)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file, or one member of an archive, to read.

    Attributes:
        path: The file.
        shown: How it is called in reports: the path as the user gave it.
        member: The member of an archive, None for the file itself.
        size_bytes: Its size as stored, 0 where it is not known.
        named: The user named it, so that failing to read it must be said.
    """

    path: Path
    shown: str
    member: str | None
    size_bytes: int
    named: bool


def find_traces(paths: Sequence[str], settings: Settings) -> list[TraceFile]:
    """Return the trace files, in order of their names; folders are searched through, patterns expanded.

    Raises:
        UsageError: A path does not exist.
        InputError: A folder cannot be read, or holds no trace.
    """
    found: dict[tuple[str, str | None], TraceFile] = {}
    for path in paths:
        for file in _of_path(path, settings):
            found.setdefault((os.path.realpath(file.path), file.member), file)
    return sorted(found.values(), key=lambda file: (file.shown, file.member or ""))


def _of_path(shown: str, settings: Settings) -> list[TraceFile]:
    path = Path(shown)
    if path.is_dir():
        return _of_folder(path, settings)
    if not path.exists():
        matches = sorted(glob.glob(shown, recursive=True))  # noqa: PTH207 - the pattern may be absolute
        if not matches:
            msg = f"{shown}: there is no such file or folder. Name a trace, a folder of traces or a pattern"
            raise UsageError(msg)
        return [file for match in matches for file in _of_path(match, settings)]
    return _members(path, shown, settings, named=True)


def _members(path: Path, shown: str, settings: Settings, *, named: bool) -> list[TraceFile]:
    size_bytes = path.stat().st_size if path.is_file() else 0
    members = list_members(path, settings) if path.is_file() else ()
    if len(members) > 1:
        return [TraceFile(path, f"{shown}!{m.name}", m.name, m.size_bytes, named) for m in members]
    return [TraceFile(path, shown, None, size_bytes, named)]


def _of_folder(folder: Path, settings: Settings) -> list[TraceFile]:
    problems: list[OSError] = []
    names = [
        Path(parent) / name
        for parent, folders, files in os.walk(folder, onerror=problems.append)
        for name in sorted(files)
        if folders.sort() is None
    ]
    if problems and not names:
        raise InputError.at(folder, None, f"cannot be read: {problems[0].strerror}", "Ask for read permission")
    traces = [
        file
        for path in names
        if _may_be_trace(path, settings)
        for file in _members(path, str(path), settings, named=False)
    ]
    if not traces:
        kinds = sorted({path.suffix or path.name for path in names})
        found = f"{len(names)} files ({', '.join(kinds[:6])})" if names else "nothing"
        hint = "Expected JSON traces of a profiler (plain, gzip, zstd or zip)"
        raise NotATraceError.at(folder, None, f"no trace in this folder, it holds {found}", hint)
    return traces


def _may_be_trace(path: Path, settings: Settings) -> bool:
    """Tell by its first megabyte whether a file of a folder is a profiler trace."""
    if path.suffix.lower() in _NEVER_TRACES or path.name.startswith(".") or not path.is_file():
        return False
    try:
        with open_stream(path, settings) as stream:
            head = next(stream.blocks(_HEAD_BYTES), b"")
    except InputError:
        return False
    return looks_like_kineto(head)
