"""What a viewer's trace shows of a run: its tracks, top down.

critical path                ├ input · rank 1 ┤ host · rank 0 ├ ┤      the unit that the report shows in full
    rank 1 · thread 1234     ├────── wait ────┤                        its pieces, an arrow wherever the row changes
    rank 0 · stream 7                         ├────── gemm ─────┤
integrity                    what is wrong with the evidence
rank 0                       ├── step 3 ──────────┼── step 4 ─         its units
    cuda:0 charged to        ├ compute ┼ input ┼─                      what the ledger charges each instant to
    cuda:0 stream 7          ├── gemm ──┤                              what was recorded, lanes that never overlap
    cuda:0 exposed per unit  a counter of ns for each object, one value a unit
    main thread …
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from longpole.digest.rank_drawing import IDLE, STREAM
from longpole.records.critical_path import CriticalPath
from longpole.report.perfetto.lanes import call_lanes
from longpole.report.perfetto.overview import EVIDENCE, add_integrity, add_path
from longpole.report.perfetto.writer import TraceWriter, TrackSpans
from longpole.timeline.nesting import apart_lanes
from longpole.units import format_ns
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.analyses.pieces import Pieces
    from longpole.digest.rank_drawing import Lane, RankDrawing, Spans
    from longpole.report.document import ClockEntry, RankEntry, Report, UnitEntry

    Times = Callable[[np.ndarray], np.ndarray]

_UNIT: Final = "unit"
_OUTSIDE: Final = "head or tail"
_OF_DEVICE: Final = 100_000  # places of a device's rows; threads come behind all devices
_COUNTERS: Final = _OF_DEVICE - 1
_BEHIND_DEVICES: Final = 1_000_000_000
_ABOUT_COUNTER: Final = (
    "Exposed time of each unit: what the ledger charges to it. The values add up to the report's figure for this row. "
    "An object without a counter is charged nothing, on no rank."
)
_ABOUT_CHARGED: Final = (
    "What the ledger charges each instant to, and why the device was idle. Lengths are in the run's clock."
)
_LEDGER_FIGURE: Final = re.compile(r"/ranks/(\d+)/ledger/")
_OF_OPERATIONS: Final = ("service_ns", "hidden_ns", "waiting_ns")  # no part of what adds up to a unit


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
        self._writer = TraceWriter(out, [*OBJECTS, _UNIT, _OUTSIDE, EVIDENCE], max(-first_ns, 0))
        self._objects = self._writer.category_codes(OBJECTS)
        self._digits = len(str(max((row.entry.rank for row in rows), default=0)))
        self._ranks: dict[int, int] = {}
        self._orders = _device_orders(rows)
        if isinstance(path, CriticalPath):
            add_path(self._writer, path, self._name)
        ends_ns = [end_ns for row in rows for _, end_ns in row.spans_ns]
        add_integrity(self._writer, report.integrity, (first_ns, max([first_ns, *ends_ns])))
        self._counted = _exposed_anywhere(rows)
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
        for number, lane in enumerate(tracks.drawing.lanes):
            if lane.kind != IDLE:
                block = self._orders.get((tracks.rank, lane.device), _BEHIND_DEVICES)
                self._add_lane(tracks, number, block + 1 + number, names)
        for device, pieces in tracks.charged.items():
            self._add_charged(tracks, device, pieces, self._orders.get((tracks.rank, device), 1))

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
        """Write the units on the rank's own row; those that overlap others get rows below it."""
        start_ns, end_ns = (np.array(times, np.int64) for times in zip(*row.spans_ns, strict=True))
        lanes = apart_lanes(start_ns, end_ns)
        rank = self._ranks[row.entry.rank]
        beside = [self._writer.add_track(f"units ({n + 1})", rank) for n in range(1, int(lanes.max(initial=0)) + 1)]
        tracks = [rank, *beside]
        for place in np.lexsort((end_ns, start_ns)).tolist():
            unit = row.entry.units[place]
            times_ns = int(start_ns[place]), int(end_ns[place])
            category = _UNIT if _is_counted(unit) else _OUTSIDE
            self._writer.add_span(tracks[lanes[place]], times_ns, unit.name, category, _unit_notes(unit))

    def _add_counters(self, row: RowUnits, voided: str) -> None:
        """Write a counter of each object: its exposed time in each unit, and 0 behind the last one."""
        units = [(unit, *times) for unit, times in zip(row.entry.units, row.spans_ns, strict=True) if _is_counted(unit)]
        if not units or not self._counted:
            return
        about = f"{_ABOUT_COUNTER} {voided}".strip()
        name = f"{row.entry.device} exposed per unit"
        order = self._orders[row.entry.rank, row.entry.device] + _COUNTERS
        group = self._writer.add_track(name, self._ranks[row.entry.rank], order, about)
        for place, name in enumerate(self._counted):
            track = self._writer.add_track(name, group, place, about, counts_ns_beside="exposed")
            for unit, start_ns, _ in units:
                self._writer.add_count(track, start_ns, unit.exposed_ns.get(name, 0))
            self._writer.add_count(track, max(end_ns for _, _, end_ns in units), 0)

    def _name(self, rank: int) -> str:
        return f"rank {rank:0{self._digits}}"  # a viewer sorts by name


def _of_lane(spans: Spans, lane: int) -> Spans:
    first, last = np.searchsorted(spans.lane, [lane, lane + 1])
    return spans.take(np.arange(first, last))


def _label(lane: Lane, part: int) -> str:
    return f"{lane.label} ({part + 1})" if part else lane.label


def _device_orders(rows: Sequence[RowUnits]) -> dict[tuple[int, str], int]:
    """Return for each device of each rank where its block of rows begins."""
    orders: dict[tuple[int, str], int] = {}
    seen: dict[int, int] = {}
    for row in rows:
        place = seen[row.entry.rank] = seen.get(row.entry.rank, 0) + 1
        orders[row.entry.rank, row.entry.device] = place * _OF_DEVICE
    return orders


def _exposed_anywhere(rows: Sequence[RowUnits]) -> list[str]:
    """Return the objects that a unit of any row was exposed to, so that rows of all ranks can be compared."""
    units = [unit for row in rows for unit in row.entry.units if _is_counted(unit)]
    return [name for name in OBJECTS if any(unit.exposed_ns.get(name, 0) for unit in units)]


def _is_counted(unit: UnitEntry) -> bool:
    return unit.kind not in ("head", "tail")


def _unit_notes(unit: UnitEntry) -> dict[str, int | str]:
    notes: dict[str, int | str] = {"kind": unit.kind, "steady": "yes" if unit.steady else "no"}
    notes["wall_ns"] = unit.wall_ns
    notes["period_ns"] = unit.period_ns if isinstance(unit.period_ns, int) else f"not known: {unit.period_ns.unknown}"
    notes["completion_ns"] = unit.completion_ns
    return notes | {f"exposed {name}_ns": exposed_ns for name, exposed_ns in unit.exposed_ns.items() if exposed_ns}


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
