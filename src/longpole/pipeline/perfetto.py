"""A run as a trace that the Perfetto viewer opens, from its report and from its traces read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from longpole.digest.digest import row_pieces
from longpole.digest.rank_drawing import draw_laid
from longpole.pipeline.second_reading import run_clock, steady_of
from longpole.report.perfetto.tracks import RankTracks, RowUnits, RunTracks
from longpole.settings import read_settings

if TYPE_CHECKING:
    from longpole.analyses.rungs import DeviceRow
    from longpole.digest.digest import Laid
    from longpole.digest.jobs import Run
    from longpole.digest.steady import Steady
    from longpole.pipeline.reading import ReportOptions
    from longpole.report.document import Report

_DEPTH_MAX: Final = 127  # levels of calls: all that a span's column can count
_THREADS_MAX: Final = 10_000


class ViewerTrace:
    """A trace for the viewer in the making: what the report says is written at once, ranks as they come.

    Args:
        out: Where to.
        options: How the run was read.
        run: Its digests.
        report: The report.

    Attributes:
        ranks: All of the run.
        missing: Those that have not come: their units and ledger are in it, their spans are not.
    """

    def __init__(self, out: BinaryIO, options: ReportOptions, run: Run, report: Report) -> None:
        self._steady = steady_of(run, read_settings(options.settings))
        start_ns = min(self._steady.at(digest.rank, digest.start_ns) for digest in run.digests)
        self._tracks = RunTracks(out, report, _rows(run, report, self._steady), start_ns)
        self.ranks = frozenset(digest.rank for digest in run.digests)
        self.missing = set(self.ranks)

    def take(self, rank: int, laid: Laid, device_rows: list[DeviceRow]) -> None:
        """Write what was recorded on a rank."""
        drawing = draw_laid(laid, device_rows, _DEPTH_MAX, _THREADS_MAX)
        charged = {f"{laid.timeline.device_type}:{row.device}": row_pieces(laid, row) for row in device_rows}
        charged = charged or {"cpu": row_pieces(laid, None)}
        self._tracks.add_rank(RankTracks(rank, drawing, charged, laid.bounds_ns, run_clock(self._steady, rank)))
        self.missing.discard(rank)


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
