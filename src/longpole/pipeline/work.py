"""One file's share of the work, here or in another process: read, lower, digest."""

from __future__ import annotations

import hashlib
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from longpole.errors import InputError, LongpoleError
from longpole.pipeline.span_files import read_span_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from longpole.digest.rank_digest import RankDigest
    from longpole.pipeline.trace_file import TraceFile
    from longpole.settings import Settings
    from longpole.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Work:
    """A file to digest, its place among all files, and under which name the graphs of its ranks are kept."""

    place: int
    file: TraceFile
    key: str = ""


@dataclass(frozen=True, slots=True)
class WorkContext:
    """What all files have in common."""

    rules: str | None
    settings: Settings
    step_pattern: str | None
    first_unit: int | None
    last_unit: int | None
    graph_folder: str | None = None


class Meter(Protocol):
    """Hears how much has been read."""

    def tell(self, label: str, more_bytes: int) -> None:
        """Hear that more bytes are done."""


def context_digest(context: WorkContext) -> str:
    """Return a hash of all that a digest depends on besides its file."""
    from longpole.vocabulary.matcher import Vocabulary

    vocabulary = Vocabulary.load(Path(context.rules) if context.rules else None)
    text = f"{vocabulary.digest}|{context.settings}|{context.step_pattern}|{context.first_unit}|{context.last_unit}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def carry_out(
    work: Work, context: WorkContext, meter: Meter | None, pool: Executor | None
) -> tuple[int, list[RankDigest] | LongpoleError]:
    """Digest one file; an error that concerns the file is returned, not raised.

    Args:
        work: The file.
        context: What all files have in common.
        meter: Hears of progress.
        pool: Processes to decode chunks in, None to do all here.
    """
    try:
        return work.place, digest_file(work.file, context, meter, pool, work.key)
    except LongpoleError as error:
        return work.place, error
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return work.place, InputError.at(work.file.shown, None, f"cannot be read: {reason}", "Check the file")


def carry_out_remote(
    pool: Executor, todo: list[Work], context: WorkContext, meter: Meter
) -> Iterator[tuple[int, list[RankDigest] | LongpoleError]]:
    """Digest files in other processes, and yield each as it is done."""
    futures = {pool.submit(carry_out, work, context, None, None): work for work in todo}
    for future in as_completed(futures):
        meter.tell(futures[future].file.shown, futures[future].file.stored_bytes())
        yield future.result()


def read_timelines(
    file: TraceFile, context: WorkContext, meter: Meter | None = None, pool: Executor | None = None
) -> list[Timeline]:
    """Read a file into the timelines of the ranks in it.

    Raises:
        InputError: The file cannot be used.
    """
    if file.form != "trace":
        if meter is not None:
            meter.tell(file.shown, file.stored_bytes())
        return _read_other(file, context.settings)
    from longpole.readers.kineto.lower import lower
    from longpole.readers.kineto.read import read_raw

    scaled = _Scaled(file, meter) if meter is not None else None
    raw, breaks = read_raw(file.path, context.settings, member=file.member, pool=pool, progress=scaled)
    return lower(raw, breaks, file.shown, file.size_bytes, context.settings)


def _read_other(file: TraceFile, settings: Settings) -> list[Timeline]:
    """Read a file that is no profiler's trace in JSON."""
    if file.is_spans:
        return read_span_files(file, settings)
    from longpole.readers.nsys.lower import read_nsys

    return read_nsys(file.path, file.shown, file.size_bytes, settings, file.member)


def digest_file(
    file: TraceFile,
    context: WorkContext,
    meter: Meter | None = None,
    pool: Executor | None = None,
    key: str = "",
) -> list[RankDigest]:
    """Read a file and digest the ranks in it; their graphs go into the context's folder where there is one.

    Raises:
        InputError: The file cannot be used.
        UsageError: The selection matches nothing in it.
    """
    from longpole.digest.digest import Selection, digest, digest_with_graph
    from longpole.graph.store import write_graph
    from longpole.vocabulary.matcher import Vocabulary

    selection = Selection(step_pattern=context.step_pattern, first_unit=context.first_unit, last_unit=context.last_unit)
    vocabulary = Vocabulary.load(Path(context.rules) if context.rules else None)
    timelines = read_timelines(file, context, meter, pool)
    if context.graph_folder is None:
        return [digest(timeline, vocabulary, context.settings, selection) for timeline in timelines]
    digests = []
    for number, timeline in enumerate(timelines):
        measured, graph = digest_with_graph(timeline, vocabulary, context.settings, selection)
        name = f"{key or f'file-{number}'}-{number}.graph"
        with suppress(OSError):  # without room for it the digest still stands
            write_graph(Path(context.graph_folder) / name, graph)
            measured = msgspec.structs.replace(measured, graph=name)
        digests.append(measured)
    return digests


class _Scaled:
    """Turns decoded bytes into a share of the stored ones, for archives grow by an unknown factor."""

    def __init__(self, file: TraceFile, meter: Meter) -> None:
        self._file = file
        self._meter = meter
        self._told_bytes = 0

    def __call__(self, done_bytes: int) -> None:
        """Hear how many bytes of decoded text have been read so far."""
        stored = min(done_bytes, self._file.size_bytes)
        if stored > self._told_bytes:
            self._meter.tell(self._file.shown, stored - self._told_bytes)
            self._told_bytes = stored
