"""From paths to digests: find the files, take from the cache what is there, digest the rest."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.digest.cache import Cache, entry_key
from longpole.errors import InputError, LongpoleError, UsageError
from longpole.pipeline.discover import find_traces
from longpole.pipeline.span_files import without_spans_beside_traces
from longpole.pipeline.version import package_version
from longpole.records.critical_path import GRAPH_VERSION
from longpole.report.document import SelectionEntry
from longpole.timeline.integrity import Example, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import ProcessPoolExecutor

    from longpole.digest.rank_digest import RankDigest
    from longpole.pipeline.trace_file import TraceFile
    from longpole.pipeline.work import Work, WorkContext
    from longpole.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What to report on, and how.

    Attributes:
        step: Regular expression for the markers of units.
        units: First and last unit number, both included, either may be None.
        ranks: Only these ranks.
        rules: The user's own naming rules.
        settings: The user's own thresholds.
        use_cache: Read and write the cache.
        verify_cache: Hash whole files instead of samples.
        unit: Name of the unit whose path is shown in full; the one with the longest period where None.
        job: Which of several runs, from 1.
        processes: How many processes may work at once; None for one per core.
        collective_record: What collectives take, as nccl-tests or `longpole bench collectives` measured it.
    """

    step: str | None = None
    units: tuple[int | None, int | None] | None = None
    ranks: frozenset[int] | None = None
    rules: Path | None = None
    settings: Path | None = None
    use_cache: bool = True
    verify_cache: bool = False
    unit: str | None = None
    job: int | None = None
    processes: int | None = None
    collective_record: Path | None = None


def graph_folder(options: ReportOptions, held: ExitStack) -> Path:
    """Return where graphs are kept: the cache, or a folder that goes away with `held`."""
    if options.use_cache:
        return Cache.default().folder
    return Path(held.enter_context(tempfile.TemporaryDirectory(prefix="longpole-")))


def read_digests(
    paths: Sequence[str],
    options: ReportOptions,
    settings: Settings,
    progress: Callable[[str, int, int], None] | None = None,
    graph_folder: Path | None = None,
    *,
    graphs_needed: bool = False,
) -> tuple[list[RankDigest], list[Finding]]:
    """Read every file that the paths lead to; what cannot be used costs only itself.

    Args:
        paths: Files, folders and patterns.
        options: What to read, and how.
        settings: Thresholds.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.
        graph_folder: Keep the graphs of the ranks that are read here.
        graphs_needed: Read files again whose graphs are not there any more.

    Returns:
        The digests in order of file names, and findings about files that could not be used.

    Raises:
        InputError: No file could be used; the message is the first file's.
    """
    from longpole.pipeline.work import Work, WorkContext

    files, left_out = without_spans_beside_traces(find_traces(paths, settings))
    rules = str(options.rules) if options.rules is not None else None
    low, high = options.units or (None, None)
    context = WorkContext(
        rules, settings, options.step, low, high, str(graph_folder) if graph_folder is not None else None
    )
    keys = _keys(files, context, options) if options.use_cache else {}
    cache = Cache.default()
    done: dict[int, list[RankDigest]] = {}
    for place, key in keys.items():
        stored = cache.read(key)
        if stored is not None and (not graphs_needed or has_graphs(stored, graph_folder)):
            done[place] = stored
    todo = [
        Work(place, file, keys.get(place, f"file-{place}")) for place, file in enumerate(files) if place not in done
    ]
    failed: dict[int, LongpoleError] = {}
    for place, outcome in _carry_out(todo, context, options, progress):
        if isinstance(outcome, LongpoleError):
            failed[place] = outcome
            continue
        done[place] = outcome
        if place in keys:
            cache.write(keys[place], outcome)
    _raise_usage(failed)
    if not done:
        raise next(iter(failed.values())) if len(failed) == 1 else _all_refused(failed)
    refused = [*left_out, *(_refusal(files[place], error) for place, error in sorted(failed.items()))]
    return [digest for place in sorted(done) for digest in done[place]], refused


def has_graphs(digests: list[RankDigest], folder: Path | None) -> bool:
    """Tell whether the graphs of all ranks are in a folder; without one none is asked for."""
    return folder is None or all(digest.graph and (folder / digest.graph).is_file() for digest in digests)


def _keys(files: list[TraceFile], context: WorkContext, options: ReportOptions) -> dict[int, str]:
    from longpole.pipeline.work import context_digest

    common = f"{package_version()}|{GRAPH_VERSION}|{context_digest(context)}"
    keys = {}
    for place, file in enumerate(files):
        try:
            key = _key(file, common, options)
        except OSError:
            continue
        if key is not None:
            keys[place] = key
    return keys


def _key(file: TraceFile, common: str, options: ReportOptions) -> str | None:
    """Return the key of a file, and of all that is read together with it; None where one cannot be kept."""
    key: str | None = common
    for part in file.parts():
        if key is not None:
            key = entry_key(part.path, part.member or "", f"{key}|{part.shown}", whole_file=options.verify_cache)
    return key


def _carry_out(
    todo: list[Work],
    context: WorkContext,
    options: ReportOptions,
    progress: Callable[[str, int, int], None] | None,
) -> Iterator[tuple[int, list[RankDigest] | LongpoleError]]:
    """Digest files: several at once in other processes, a large single one by chunks, small ones right here."""
    from longpole.pipeline.work import carry_out, carry_out_remote

    if not todo:
        return
    processes = options.processes or os.cpu_count() or 1
    total_bytes = sum(work.file.stored_bytes() for work in todo)
    meter = _Meter(total_bytes, progress)
    parallel = processes > 1 and sum(work.file.decoded_bytes() for work in todo) >= context.settings.parallel_min_bytes
    with ExitStack() as held:
        pool = held.enter_context(_pool(processes)) if parallel else None
        if pool is not None and len(todo) > 1:
            yield from carry_out_remote(pool, todo, context, meter)
        else:
            for work in todo:
                yield carry_out(work, context, meter, pool)


def _pool(processes: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


class _Meter:
    """Adds up what has been read of all files."""

    def __init__(self, total_bytes: int, progress: Callable[[str, int, int], None] | None) -> None:
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self._progress = progress

    def tell(self, label: str, more_bytes: int) -> None:
        """Hear that more bytes are done."""
        self.done_bytes += more_bytes
        if self._progress is not None:
            self._progress(label, min(self.done_bytes, self.total_bytes), self.total_bytes)


def choose_ranks(digests: list[RankDigest], options: ReportOptions) -> list[RankDigest]:
    """Return the digests of the ranks that are asked for.

    Raises:
        UsageError: None of them is there.
    """
    return digests if options.ranks is None else _only_ranks(digests, options.ranks)


def _only_ranks(digests: list[RankDigest], ranks: frozenset[int]) -> list[RankDigest]:
    chosen = [digest for digest in digests if digest.rank in ranks]
    if not chosen:
        have = ", ".join(str(rank) for rank in sorted({digest.rank for digest in digests}))
        msg = f"--rank: none of the ranks {', '.join(map(str, sorted(ranks)))} is here; there are {have}"
        raise UsageError(msg)
    return chosen


def selection_of(options: ReportOptions) -> SelectionEntry:
    """Return which part of the run was asked for."""
    units = None
    if options.units is not None:
        low, high = options.units
        units = f"{'' if low is None else low}..{'' if high is None else high}"
    return SelectionEntry(units, sorted(options.ranks) if options.ranks is not None else None, options.step)


def _raise_usage(failed: dict[int, LongpoleError]) -> None:
    """Let a wrong option fail the whole call: it is not a file's fault."""
    for error in failed.values():
        if isinstance(error, UsageError):
            raise error


def _all_refused(failed: dict[int, LongpoleError]) -> InputError:
    lines = [f"none of {len(failed)} files could be used:"]
    lines += [f"  {error}" for error in list(failed.values())[:8]]
    if len(failed) > 8:
        lines.append(f"  … and {len(failed) - 8} more")
    return InputError("\n".join(lines))


def _refusal(file: TraceFile, error: LongpoleError) -> Finding:
    return Finding("file.refused", "warn", None, 1, Example(file.shown), str(error), ["/collectives"])
