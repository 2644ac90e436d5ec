"""Span files of the recorder among the files of a run: which belong together, and how they are read.

A rank may have several: its main process, the workers of its loader, children that it forked. What one host wrote into
one folder is read together, rank by rank where every file says its rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError
from longpole.readers.recorder.sniff import header_of, is_named_like_spans, looks_like_spans
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from longpole.pipeline.trace_file import TraceFile
    from longpole.records.span_file import Header
    from longpole.settings import Settings
    from longpole.timeline.timeline import Timeline

_HEAD_BYTES: Final = 1 << 16


def is_span_file(file: TraceFile, head_of: Callable[[TraceFile], bytes]) -> bool:
    """Tell whether a file is one of the recorder's: by its name, else by its first line."""
    name = (file.member or file.path.name).lower()
    return is_named_like_spans(name) or (".jsonl" in name and looks_like_spans(head_of(file)))


def joined(files: Iterable[TraceFile], head_of: Callable[[TraceFile], bytes]) -> list[TraceFile]:
    """Make one of the span files that are read together, the others behind the first one; traces stay as they are.

    Args:
        files: In order of their names.
        head_of: Reads the beginning of a file; raises InputError where it cannot.
    """
    traces: list[TraceFile] = []
    by_host: dict[tuple[Path, str], list[tuple[TraceFile, Header | None]]] = {}
    for file in files:
        if not file.is_spans:
            traces.append(file)
            continue
        header = _header(file, head_of)
        by_host.setdefault((file.path.parent, header.host if header else ""), []).append((file, header))
    groups = [group for host in by_host.values() for group in _by_rank(host)]
    return [*traces, *(replace(group[0], beside=tuple(group[1:])) for group in groups)]


def _header(file: TraceFile, head_of: Callable[[TraceFile], bytes]) -> Header | None:
    try:
        return header_of(head_of(file))
    except InputError:
        return None


def _by_rank(host: list[tuple[TraceFile, Header | None]]) -> list[list[TraceFile]]:
    ranks = {header.rank if header else None for _, header in host}
    if None in ranks:
        return [[file for file, _ in host]]
    return [[file for file, header in host if header and header.rank == rank] for rank in sorted(ranks, key=str)]


def without_spans_beside_traces(files: list[TraceFile]) -> tuple[list[TraceFile], list[Finding]]:
    """Leave span files out where profiler traces are there too, and say so: one run is told by one kind of record."""
    traces = [file for file in files if not file.is_spans]
    spans = [part for file in files if file.is_spans for part in (file, *file.beside)]
    if not traces or not spans:
        return files, []
    message = (
        f"{format_count(len(spans), 'span file')} of the recorder left out: profiler traces are here, and tell more."
        " Name the span files alone (*.spans.jsonl) for what they say of loader workers and items"
    )
    return traces, [Finding("spans.beside_traces", "note", None, len(spans), Example(spans[0].shown), message)]


def read_span_files(file: TraceFile, settings: Settings) -> list[Timeline]:
    """Read the span files that belong together; one that cannot be read costs only itself.

    Raises:
        InputError: None of them can be read, or none holds a span.
    """
    from longpole.readers.recorder.decode import decode
    from longpole.readers.recorder.lower import lower

    processes, refused = [], []
    for part in (file, *file.beside):
        try:
            processes.append(decode(part.path, part.shown, settings, part.member, size_bytes=part.size_bytes))
        except InputError as error:
            refused.append((part, error))
    if not processes:
        raise refused[0][1]
    timelines = lower(processes, settings)
    if not timelines:
        found = "no unit, span or collective in it: the process recorded nothing, or was killed before its first flush"
        raise InputError.at(file.shown, None, found, "Run it for a few units more")
    return [_with_refused(timelines[0], refused), *timelines[1:]]


def _with_refused(timeline: Timeline, refused: list[tuple[TraceFile, InputError]]) -> Timeline:
    rank = timeline.identity.rank
    found = [Finding("file.refused", "warn", rank, 1, Example(part.shown), str(error)) for part, error in refused]
    return replace(timeline, findings=(*timeline.findings, *found))
