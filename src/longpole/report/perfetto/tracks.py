"""What a viewer's trace shows of a run: its tracks, top down.

critical path                         the unit that the report shows in full
    rank 0 · thread 1234   ├── wait ──┤          ├─ launch ┤
    rank 1 · stream 7                 ├─ gemm ───┤         an arrow wherever the path changes its row
rank 0
    units                  ├── step 3 ──────────┼── step 4 ─
    exposed per unit, cuda:0                     a counter of ns for each object, one value a unit
    main thread …          what was recorded, lanes that never overlap
    cuda:0 charged to      ├ compute ┼ input ┼─  what the ledger charges each instant to
    cuda:0 stream 7        ├── gemm ──┤
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from longpole.digest.rank_drawing import IDLE, STREAM
from longpole.records.critical_path import CriticalPath
from longpole.report.perfetto.lanes import apart_lanes, call_lanes
from longpole.report.perfetto.writer import TraceWriter, TrackSpans
from longpole.units import format_ns
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.analyses.pieces import Pieces
    from longpole.digest.rank_drawing import Lane, RankDrawing, Spans
    from longpole.records.critical_path import PathPiece
    from longpole.records.ledger import Unknown
    from longpole.report.document import ClockEntry, RankEntry, Report, UnitEntry

    Times = Callable[[np.ndarray], np.ndarray]

_UNIT: Final = "unit"
_ORDER_OF_DEVICE: Final = 100_000  # behind all threads
_ABOUT_COUNTER: Final = (
    "Exposed time of each unit: what the ledger charges to it. The values add up to the report's figure for this row."
)
_ABOUT_CHARGED: Final = (
    "What the ledger charges each instant to, and why the device was idle. Lengths are in the run's clock."
)
_LEDGER_FIGURE: Final = re.compile(r"/ranks/(\d+)/ledger/")
_OF_OPERATIONS: Final = ("service_ns", "hidden_ns", "waiting_ns")  # no part of what adds up to a unit
_NO_RANK: Final = "in no rank's record"


@dataclass(frozen=True, slots=True)
class RowUnits:
    """The units of one device row of a rank.

    Attributes:
        entry: The row, as the report has it.
        spans_ns: Start and end of each of its units in the run's time, head and tail included.
    """

    entry: RankEntry
    spans_ns: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RankTracks:
    """What was recorded on a rank, read again.

    Attributes:
        rank: The rank.
        drawing: All its spans.
        charged: Device -> what each instant of it is charged to.
        bounds_ns: `[U]` int64: where its units begin and end, in its own time.
        to_run_ns: What turns its times into the run's.
    """

    rank: int
    drawing: RankDrawing
    charged: Mapping[str, Pieces]
    bounds_ns: NDArray[np.int64]
    to_run_ns: Times


class RunTracks:
    """Writes the tracks of a run: those of the report at once, those of the ranks' records one by one.

    Args:
        out: Where to.
        report: The report.
        rows: The units of every row, in the report's order.
        start_ns: The earliest time of the run, in its own time.
    """

    def __init__(self, out: BinaryIO, report: Report, rows: Sequence[RowUnits], start_ns: int) -> None:
        path = report.critical_path
        pieces = path.pieces if isinstance(path, CriticalPath) else []
        first_ns = min([start_ns, *(piece.start_ns for piece in pieces)])
        self._writer = TraceWriter(out, [*OBJECTS, _UNIT], max(-first_ns, 0))
        self._objects = self._writer.category_codes(OBJECTS)
        self._digits = len(str(max((row.entry.rank for row in rows), default=0)))
        self._ranks: dict[int, int] = {}
        self._add_path(path)
        self._add_integrity(report, start_ns)
        clocks = {entry.rank: entry for entry in report.clock}
        voids = _voids(report)
        for place, row in enumerate(rows):
            if row.entry.rank not in self._ranks:
                about = _clock_words(clocks.get(row.entry.rank))
                self._ranks[row.entry.rank] = self._writer.add_track(self._name(row.entry.rank), about=about)
                self._add_units(row)
            self._add_counters(row, voids.get(place, ""))

    def add_rank(self, tracks: RankTracks) -> None:
        """Write what was recorded on a rank."""
        names = self._writer.codes_of(tracks.drawing.names)
        lanes = sorted(enumerate(tracks.drawing.lanes), key=lambda one: (one[1].device, one[1].kind != IDLE, one[0]))
        devices = [lane.device for _, lane in lanes if lane.kind == IDLE]
        orders = {device: _ORDER_OF_DEVICE * (place + 1) for place, device in enumerate(devices)}
        for number, lane in lanes:
            if lane.kind != IDLE:
                self._add_lane(tracks, number, orders.get(lane.device, 100) + 1 + number, names)
        for device, pieces in tracks.charged.items():
            self._add_charged(tracks, device, pieces, orders.get(device, 50))

    def _add_lane(self, tracks: RankTracks, number: int, order: int, names: np.ndarray) -> None:
        """Write one lane, as several where its spans cross each other."""
        lane, spans = tracks.drawing.lanes[number], _of_lane(tracks.drawing.spans, number)
        start_ns, end_ns = tracks.to_run_ns(spans.start_ns), tracks.to_run_ns(spans.end_ns)
        split = apart_lanes(start_ns, end_ns) if lane.kind == STREAM else call_lanes(start_ns, end_ns)
        for part in range(int(split.max(initial=-1)) + 1):
            mine = np.flatnonzero(split == part)
            track = self._writer.add_track(_label(lane, part), self._ranks[tracks.rank], order)
            codes = self._objects[spans.object[mine]]
            found = TrackSpans(start_ns[mine], end_ns[mine], names[spans.name[mine]], codes, spans.size_bytes[mine])
            self._writer.add_spans(track, found)

    def _add_charged(self, tracks: RankTracks, device: str, pieces: Pieces, order: int) -> None:
        """Write what each instant is charged to: neighbours that are charged alike as one, but never across units."""
        if len(pieces) == 0:
            return
        track = self._writer.add_track(f"{device} charged to", self._ranks[tracks.rank], order, _ABOUT_CHARGED)
        names = self._writer.codes_of([*OBJECTS, *IDLE_REASONS])
        code = np.where(pieces.reason >= 0, len(OBJECTS) + pieces.reason.astype(np.int64), pieces.object)
        changes = (code[1:] != code[:-1]) | (pieces.object[1:] != pieces.object[:-1])
        first = np.flatnonzero(np.append(True, changes | np.isin(pieces.start_ns[1:], tracks.bounds_ns)))
        start_ns = tracks.to_run_ns(pieces.start_ns)[first]
        end_ns = tracks.to_run_ns(pieces.end_ns)[np.append(first[1:], len(pieces)) - 1]
        none = np.full(len(first), -1, np.int64)
        codes = self._objects[pieces.object[first]]
        self._writer.add_spans(track, TrackSpans(start_ns, end_ns, names[code[first]], codes, none))

    def _add_units(self, row: RowUnits) -> None:
        start_ns, end_ns = (np.array(times, np.int64) for times in zip(*row.spans_ns, strict=True))
        lanes = apart_lanes(start_ns, end_ns)
        tracks = [
            self._writer.add_track("units", self._ranks[row.entry.rank], 0)
            for _ in range(int(lanes.max(initial=0)) + 1)
        ]
        for place in np.lexsort((end_ns, start_ns)).tolist():
            unit = row.entry.units[place]
            times_ns = int(start_ns[place]), int(end_ns[place])
            self._writer.add_span(tracks[lanes[place]], times_ns, unit.name, _UNIT, _unit_notes(unit))

    def _add_counters(self, row: RowUnits, voided: str) -> None:
        """Write a counter of each object: its exposed time in each unit, and 0 behind the last one."""
        units = [(unit, *times) for unit, times in zip(row.entry.units, row.spans_ns, strict=True) if _is_counted(unit)]
        if not units:
            return
        about = f"{_ABOUT_COUNTER} {voided}".strip()
        name = f"{row.entry.device} exposed per unit"
        group = self._writer.add_track(name, self._ranks[row.entry.rank], 10, about)
        for place, name in enumerate(OBJECTS):
            track = self._writer.add_track(name, group, place, about, counts_ns_beside="exposed")
            for unit, start_ns, _ in units:
                self._writer.add_count(track, start_ns, unit.exposed_ns.get(name, 0))
            self._writer.add_count(track, max(end_ns for _, _, end_ns in units), 0)

    def _add_path(self, path: CriticalPath | Unknown) -> None:
        if not isinstance(path, CriticalPath):
            return
        about = (
            f"{path.says} Unit {path.unit}, {format_ns(path.period_ns)}; an arrow wherever the path changes its row."
        )
        group = self._writer.add_track("critical path", about=about)
        tracks = {
            key: self._writer.add_track(self._path_label(key), group, order)
            for order, key in enumerate(sorted({_row_of(piece) for piece in path.pieces}, key=_path_order))
        }
        rows = [_row_of(piece) for piece in path.pieces]
        for place, piece in enumerate(path.pieces):
            arrives = place if place and rows[place - 1] != rows[place] else 0
            leaves = place + 1 if place + 1 < len(rows) and rows[place + 1] != rows[place] else 0
            times_ns = piece.start_ns, piece.start_ns + piece.dur_ns
            name = piece.name or piece.reason or piece.object
            self._writer.add_span(
                tracks[rows[place]], times_ns, name, piece.object, _piece_notes(piece), (arrives, leaves)
            )

    def _name(self, rank: int) -> str:
        return f"rank {rank:0{self._digits}}"  # a viewer sorts by name

    def _path_label(self, key: tuple[int | None, str]) -> str:
        rank, track = key
        return _NO_RANK if rank is None else f"{self._name(rank)} · {track}" if track else self._name(rank)

    def _add_integrity(self, report: Report, start_ns: int) -> None:
        if not report.integrity:
            return
        track = self._writer.add_track("integrity", about="What is wrong with the evidence, and what that voids.")
        for finding in report.integrity:
            notes: dict[str, int | str] = {"severity": finding.severity, "says": finding.message}
            notes |= {"count": finding.count}
            notes |= {"rank": finding.rank} if finding.rank is not None else {}
            notes |= {"voids": " ".join(finding.voids)} if finding.voids else {}
            self._writer.add_instant(track, start_ns, finding.code, notes)


def _of_lane(spans: Spans, lane: int) -> Spans:
    first, last = np.searchsorted(spans.lane, [lane, lane + 1])
    return spans.take(np.arange(first, last))


def _label(lane: Lane, part: int) -> str:
    return f"{lane.label} ({part + 1})" if part else lane.label


def _is_counted(unit: UnitEntry) -> bool:
    return unit.kind not in ("head", "tail")


def _unit_notes(unit: UnitEntry) -> dict[str, int | str]:
    notes: dict[str, int | str] = {"kind": unit.kind, "steady": "yes" if unit.steady else "no"}
    notes["wall_ns"] = unit.wall_ns
    notes["period_ns"] = unit.period_ns if isinstance(unit.period_ns, int) else f"not known: {unit.period_ns.unknown}"
    notes["completion_ns"] = unit.completion_ns
    return notes | {f"exposed {name}_ns": exposed_ns for name, exposed_ns in unit.exposed_ns.items() if exposed_ns}


def _row_of(piece: PathPiece) -> tuple[int | None, str]:
    return (None, "") if piece.rank is None else (piece.rank, piece.track)


def _path_order(key: tuple[int | None, str]) -> tuple[bool, int, str]:
    rank, track = key
    return rank is None, rank or 0, track


def _piece_notes(piece: PathPiece) -> dict[str, int | str]:
    notes: dict[str, int | str] = {"object": piece.object, "grade": piece.grade, "why here": piece.reason}
    return notes | ({"rank": piece.rank, "track": piece.track} if piece.rank is not None else {})


def _clock_words(clock: ClockEntry | None) -> str:
    if clock is None:
        return ""
    if clock.method == "none":
        return "This rank's clock could not be aligned with the others': its times count from its own start."
    unsure = clock.uncertainty_ns
    known = f"uncertain by {format_ns(unsure)}" if isinstance(unsure, int) else f"uncertainty: {unsure.unknown}"
    return f"Clock: {clock.method.replace('_', ' ')}, {known}."


def _voids(report: Report) -> dict[int, str]:
    """Say of rows which figures of their ledger are void: counters keep their integers, as the report does.

    Returns:
        Place of the row in the report -> why.
    """
    found: dict[int, dict[str, None]] = {}
    for entry in report.unknown:
        match = _LEDGER_FIGURE.match(entry.at)
        if match is not None and not entry.at.endswith(_OF_OPERATIONS):
            found.setdefault(int(match[1]), {})[entry.why] = None
    return {place: f"Not known: {'; '.join(why)}." for place, why in found.items()}
