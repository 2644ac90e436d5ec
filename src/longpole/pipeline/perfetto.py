"""From the traces of a run, read again, and its report to a trace that the Perfetto viewer opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from longpole.digest.across import bring_together
from longpole.digest.digest import row_pieces
from longpole.digest.rank_drawing import draw_laid
from longpole.digest.steady import find_steady
from longpole.pipeline.drawing import lay_out_again, run_clock
from longpole.report.perfetto.tracks import RankTracks, RowUnits, RunTracks
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.digest.jobs import Run
    from longpole.digest.steady import Steady
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report

_DEPTH_MAX: Final = 127  # levels of calls: all that a span's column can count
_THREADS_MAX: Final = 10_000


def write_perfetto(
    out: BinaryIO,
    paths: Sequence[str],
    options: ReportOptions,
    run: Run,
    report: Report,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[int]:
    """Write a run as a trace for the Perfetto viewer.

    Args:
        out: Where to.
        paths: What the report was made from.
        options: With which options.
        run: Its digests.
        report: The report.
        progress: Hears (what is being read, files done, files in all).

    Returns:
        Ranks whose files could not be read again: their units and ledger are in it, their spans are not.

    Raises:
        UsageError: A path is wrong.
    """
    settings = read_settings(options.settings)
    across = bring_together(run.digests, settings, run.recorded)
    steady = find_steady(run.digests, settings, across.clocks if across is not None else None)
    start_ns = min(steady.at(digest.rank, digest.start_ns) for digest in run.digests)
    tracks = RunTracks(out, report, _rows(run, report, steady), start_ns)
    missing = {digest.rank for digest in run.digests}
    for rank, laid, device_rows in lay_out_again(paths, options, run, frozenset(missing), progress):
        drawing = draw_laid(laid, device_rows, _DEPTH_MAX, _THREADS_MAX)
        charged = {f"{laid.timeline.device_type}:{row.device}": row_pieces(laid, row) for row in device_rows}
        charged = charged or {"cpu": row_pieces(laid, None)}
        tracks.add_rank(RankTracks(rank, drawing, charged, laid.bounds_ns, run_clock(steady, rank)))
        missing.discard(rank)
    return sorted(missing)


def _rows(run: Run, report: Report, steady: Steady) -> list[RowUnits]:
    """Return the units of every row with their times on the run's clock, its drift included."""
    units = {(digest.rank, row.device): row.units for digest in run.digests for row in digest.rows}
    found = []
    for entry in report.ranks:
        times = [
            (steady.at(entry.rank, unit.start_ns), steady.at(entry.rank, unit.start_ns + unit.ledger.wall_ns))
            for unit in units[entry.rank, entry.device]
        ]
        found.append(RowUnits(entry, times))
    return found
