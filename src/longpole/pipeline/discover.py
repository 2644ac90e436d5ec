"""Find the trace files behind the paths that a user named."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError, NotATraceError, UsageError
from longpole.pipeline.span_files import is_span_file, joined
from longpole.pipeline.trace_file import TraceFile
from longpole.readers.container import list_members, open_stream
from longpole.readers.kineto.foreign import describe_foreign
from longpole.readers.kineto.sniff import looks_like_kineto
from longpole.readers.nsys.sniff import NOT_EXPORTED, is_report, looks_like_export, looks_like_sqlite
from longpole.readers.recorder.sniff import is_named_like_spans, looks_like_spans
from longpole.readers.spelling import show_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.settings import Settings

_HEAD_BYTES: Final = 1 << 20
_SELDOM_TRACES: Final = (  # text that may quote a trace
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
    files = sorted(found.values(), key=lambda file: (file.shown, file.member or ""))
    return joined((_marked(file, settings) for file in files), lambda file: _head_of(file, settings))


def _marked(file: TraceFile, settings: Settings) -> TraceFile:
    """Mark a file that is no profiler's trace in JSON."""
    try:
        if is_span_file(file, lambda one: _head_of(one, settings)):
            return replace(file, form="spans")
        # A pipe can be read once only, and a database cannot come through one.
        is_nsys = is_report(file.path.name) or (file.path.is_file() and looks_like_sqlite(_head_of(file, settings)))
        return replace(file, form="nsys") if is_nsys else file
    except InputError:
        return file


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
    """Return a file, or the members of an archive; an archive that cannot be opened stands for itself."""
    size_bytes = path.stat().st_size if path.is_file() else 0
    try:
        members = list_members(path, settings) if path.is_file() else ()
    except InputError:
        members = ()
    if len(members) > 1:
        return [
            TraceFile(path, f"{shown}!{show_controls(m.name)}", m.name, m.size_bytes, named, packed=True)
            for m in members
        ]
    packed = bool(members) and members[0].kind != "plain"
    return [TraceFile(path, shown, None, size_bytes, named, packed)]


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
    visible = [path for path in names if not path.name.startswith(".") and path.is_file()]
    files = [file for path in visible for file in _members(path, str(path), settings, named=False)]
    traces = [file for file in files if _may_be_trace(file, settings)]
    if not traces:
        raise _no_trace(folder, names, settings)
    # A folder that cannot be listed is read like a file: its refusal is then said with the others'.
    closed = [TraceFile(Path(p.filename), str(p.filename), None, 0, named=False) for p in problems if p.filename]
    return traces + closed


def _may_be_trace(file: TraceFile, settings: Settings) -> bool:
    """Tell by its first megabyte whether a file of a folder is a profiler trace.

    A file that is named like one and cannot be read is kept: its refusal must be said.
    """
    try:
        head = _head_of(file, settings)
    except InputError:
        return bool(_JSON_NAME.search(file.path.name)) or is_named_like_spans(file.path.name)
    if file.path.suffix.lower() in _SELDOM_TRACES and head.lstrip()[:1] not in (b"{", b"["):
        return False
    has_long_header = len(head) == _HEAD_BYTES and any(key in head for key in _HEADER_KEYS)
    if looks_like_spans(head) or is_named_like_spans(file.path.name) or looks_like_export(head):
        return True
    return looks_like_kineto(head) or has_long_header or bool(_TRACE_NAME.search(file.path.name))


_JSON_NAME: Final = re.compile(r"\.json\b", re.IGNORECASE)
_TRACE_NAME: Final = re.compile(r"\.trace\.json\b", re.IGNORECASE)
_HEADER_KEYS: Final = (b'"distributedInfo"', b'"deviceProperties"', b'"schemaVersion"')


def _head_of(file: TraceFile, settings: Settings) -> bytes:
    with open_stream(file.path, settings, member=file.member) as stream:
        return next(stream.blocks(_HEAD_BYTES), b"")


def _no_trace(folder: Path, names: list[Path], settings: Settings) -> InputError:
    """Say what a folder without a trace holds, and what the first file of a known kind is."""
    kinds = sorted({path.suffix or path.name for path in names})
    found = f"{len(names)} files ({', '.join(kinds[:6])})" if names else "nothing"
    found = f"no trace in this folder, it holds {found}"
    for path in names[:_DESCRIBED_MAX]:
        described = _described(path, settings)
        if described.startswith("this is"):
            found += f"; {path.relative_to(folder)}: {described}"
            break
    return NotATraceError.at(folder, None, found, _EXPECTED)


_EXPECTED: Final = (
    "Expected JSON traces of a profiler (plain, gzip, zstd or zip), exports of Nsight Systems, or span files of the"
    " recorder"
)
_DESCRIBED_MAX: Final = 50


def _described(path: Path, settings: Settings) -> str:
    if not path.is_file():
        return ""
    if is_report(path.name):
        return NOT_EXPORTED
    try:
        return describe_foreign(_head_of(TraceFile(path, str(path), None, 0, named=False), settings))
    except InputError:
        return ""
