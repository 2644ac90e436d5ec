"""Traces read a second time, for digests keep no spans: once, for all outputs that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from longpole.digest.across import bring_together
from longpole.digest.digest import Selection, lay_out
from longpole.digest.steady import find_steady
from longpole.errors import LongpoleError
from longpole.pipeline.discover import find_traces
from longpole.pipeline.span_files import without_spans_beside_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import read_settings
from longpole.vocabulary.matcher import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import numpy as np

    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.digest import Laid
    from longpole.digest.jobs import Run
    from longpole.digest.steady import Steady
    from longpole.pipeline.reading import ReportOptions
    from longpole.settings import Settings


class Output(Protocol):
    """What shows spans."""

    @property
    def ranks(self) -> Collection[int]:
        """Return the ranks that it shows."""

    def take(self, rank: int, laid: Laid, device_rows: list[DeviceRow]) -> None:
        """Take what was recorded on one of its ranks."""


def read_again(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    outputs: Sequence[Output],
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Read the ranks that outputs show, each once, and hand them on one after the other.

    A file that cannot be read any more costs its own ranks.

    Args:
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        outputs: What shows them.
        progress: Hears (what is being read, files done, files in all).

    Raises:
        UsageError: A path is wrong.
    """
    chosen = frozenset(rank for output in outputs for rank in output.ranks)
    for rank, laid, device_rows in _lay_out_again(paths, options, run, chosen, progress):
        for output in outputs:
            if rank in output.ranks:
                output.take(rank, laid, device_rows)


def steady_of(run: Run, settings: Settings) -> Steady:
    """Return the clocks of a run's ranks, as its report has them."""
    across = bring_together(run.digests, settings, run.recorded)
    return find_steady(run.digests, settings, across.clocks if across is not None else None)


def run_clock(steady: Steady, rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what turns a rank's times into the run's, its clock's drift included."""
    if rank in steady.clocks:
        return steady.clocks[rank].to_run_ns
    offset_ns = steady.offset_ns[rank]
    return lambda times_ns: times_ns + offset_ns


def _lay_out_again(
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    chosen: Collection[int],
    progress: Callable[[str, int, int], None] | None,
) -> Iterator[tuple[int, Laid, list[DeviceRow]]]:
    """Read the chosen ranks' files again, one after the other.

    A file that cannot be read any more costs its own ranks.

    Yields:
        (rank, what its rows have in common, its devices).
    """
    settings = read_settings(options.settings)
    rules = str(options.rules) if options.rules is not None else None
    low, high = options.units or (None, None)
    context = WorkContext(rules, settings, options.step, low, high)
    selection = Selection(step_pattern=options.step, first_unit=low, last_unit=high)
    vocabulary = Vocabulary.load(options.rules)
    named = {(digest.path, digest.rank) for digest in run.digests if not digest.rank_assumed}
    # Files that name no ranks were given free ones in their order when the run was brought together.
    given: dict[str, list[int]] = {}
    for digest in run.digests:
        if digest.rank_assumed:
            given.setdefault(digest.path, []).append(digest.rank)
    wanted = {digest.path for digest in run.digests if digest.rank in chosen}
    files, _ = without_spans_beside_traces(find_traces(paths, settings))
    for place, file in enumerate(files):
        if progress is not None:
            progress(file.shown, place, len(files))
        if file.shown not in wanted and not file.is_spans:
            continue
        try:
            timelines = read_timelines(file, context)
        except LongpoleError:
            continue
        free = iter(given.get(file.shown, ()))
        for timeline in timelines:
            identity = timeline.identity
            is_named = (timeline.source.path, identity.rank) in named
            rank = next(free, None) if identity.rank_assumed else identity.rank if is_named else None
            if rank is not None and rank in chosen:
                yield rank, *lay_out(timeline, vocabulary, settings, selection)
