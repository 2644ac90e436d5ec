"""What the edge rules of one rank stand on: its tables, who launched what, clocks, silent stretches, points."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.analyses.launches import launching_calls
from longpole.analyses.name_book import CALL_CODE
from longpole.analyses.threads import REASON_CODE
from longpole.errors import InvariantError
from longpole.graph.device_clock import DeviceClock, fit_device_clock
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.intervals import Intervals, complement, covered_before, union
from longpole.vocabulary.objects import ACTIVITY_OBJECTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.rungs import DeviceRow
    from longpole.analyses.threads import Threads
    from longpole.graph.points import Points
    from longpole.settings import Settings
    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]

_ACTIVITY_REASONS: Final = [REASON_CODE[name] for name in ACTIVITY_OBJECTS]
_WAITS_FOR_ALL: Final = re.compile(
    r"^(cuda|hip|cu|mu|aclrt|AscendCL@aclrt)?(Device|Ctx|Context)_?Synchronize|synchronizeDevice"
)


@dataclass(frozen=True, slots=True)
class Spans:
    """All device spans of a rank on the host's clock, with what is known of each; columns `[D]`.

    Attributes:
        start_ns, end_ns: int64 ns, moved by the device's clock.
        launch: int64: host row of the launching call, -1 for none.
        by_order: bool: the launch is inferred from order.
        launch_ns: int64 ns: start of that call; the span's own start where there is none.
        lane: int32: number of the span's (device, stream).
        in_graph: bool: a node of a captured graph.
        object: int8: code into OBJECTS.
        stage: int8: code into STAGES.
        unit: int32: place of the unit that launched it, -1 for none.
    """

    start_ns: Ints
    end_ns: Ints
    launch: Ints
    by_order: Flags
    launch_ns: Ints
    lane: Places
    in_graph: Flags
    object: NDArray[np.int8]
    stage: NDArray[np.int8]
    unit: Places


@dataclass(frozen=True, slots=True)
class Silence:
    """Stretches of threads without any record; columns `[G]`, ordered by track, then start.

    Attributes:
        track: int32.
        start_ns, end_ns: int64 ns: from the end of the last record to the start of the next one.
    """

    track: Places
    start_ns: Ints
    end_ns: Ints


@dataclass(slots=True)
class Ground:
    """What the edge rules of one rank stand on.

    Attributes:
        spans: Its device spans.
        clocks: Device number -> how its clock stands to the host's.
        tolerance_ns: By how much clocks may contradict an edge that is kept.
        records: Track -> time under operators, runtime calls and backend spans.
        silence: Stretches without record of threads that launch, compute or communicate.
        points: Set once all rules have said which moments they need.
    """

    timeline: Timeline
    book: NameBook
    threads: Threads
    units: list[Unit]
    rows: list[DeviceRow]
    settings: Settings
    spans: Spans
    clocks: dict[int, DeviceClock]
    tolerance_ns: int
    records: dict[int, Intervals]
    silence: Silence
    lanes: list[tuple[int, int]]
    points: Points | None = None
    _activities: dict[int, Intervals] = field(default_factory=dict)

    def activity(self, track: int) -> Intervals:
        """Return the time of a thread under object activities."""
        if track not in self._activities:
            cover = self.threads.cover(track)
            inside = np.flatnonzero(np.isin(cover.reason, _ACTIVITY_REASONS))
            ends = np.append(cover.start_ns[1:], cover.start_ns[-1:])
            self._activities[track] = union(cover.start_ns[inside], ends[inside])
        return self._activities[track]

    def placed(self) -> Points:
        """Return the points.

        Raises:
            InvariantError: They are not placed yet.
        """
        if self.points is None:
            msg = "a rule asked for points before they were placed"
            raise InvariantError(msg)
        return self.points

    def is_call(self, *calls: str) -> Flags:
        """Return `[H]` bool: runtime calls of the given sorts (`vocabulary.objects.CALLS`)."""
        host = self.timeline.host
        wanted = np.isin(self.book.call, [CALL_CODE[call] for call in calls])
        return (host.kind == Kind.RUNTIME) & wanted[host.name]


class _Made(NamedTuple):
    launch: Ints
    by_order: Flags
    clocks: dict[int, DeviceClock]
    lane: Places


def lay_ground(
    timeline: Timeline,
    book: NameBook,
    threads: Threads,
    units: list[Unit],
    rows: list[DeviceRow],
    settings: Settings,
) -> Ground:
    """Find what all rules need.

    Args:
        timeline: The record of one rank.
        book: Meanings of its names.
        threads: What its threads did.
        units: Its units of work.
        rows: Its devices, each with what its spans are.
        settings: `silence_min_ns`, `clock_tolerance_ns`.
    """
    launch, by_order = _launches(timeline, book, rows)
    clocks = _clocks(timeline, book, rows, launch)
    conflict_ns = max((clock.conflict_ns for clock in clocks.values()), default=0)
    lanes, lane = _lanes(timeline)
    spans = _spans(timeline, book, units, rows, _Made(launch, by_order, clocks, lane))
    records = _records(timeline, book)
    return Ground(
        timeline=timeline,
        book=book,
        threads=threads,
        units=units,
        rows=rows,
        settings=settings,
        spans=spans,
        clocks=clocks,
        tolerance_ns=max(conflict_ns, settings.clock_tolerance_ns),
        records=records,
        silence=_silence(timeline, records, units, settings),
        lanes=lanes,
    )


def _launches(timeline: Timeline, book: NameBook, rows: list[DeviceRow]) -> tuple[Ints, Flags]:
    launch = timeline.device.launch.copy()
    for row in rows:
        launch[row.rows] = launching_calls(timeline, book, row)
    return launch, (launch != NONE_ID) & (timeline.device.launch == NONE_ID)


def _clocks(timeline: Timeline, book: NameBook, rows: list[DeviceRow], launch: Ints) -> dict[int, DeviceClock]:
    host = timeline.host
    waits = (host.kind == Kind.RUNTIME) & (book.call[host.name] == CALL_CODE["sync"])
    for_all = np.array([_WAITS_FOR_ALL.search(name) is not None for name in timeline.names], np.bool_)
    calls = np.flatnonzero(waits & for_all[host.name])
    clocks = {}
    for row in rows:
        linked = row.rows[timeline.device.launch[row.rows] != NONE_ID]
        clocks[row.device] = fit_device_clock(
            host.start_ns[launch[linked]],
            timeline.device.start_ns[linked],
            timeline.device.end_ns[linked],
            host.start_ns[calls] if len(rows) == 1 else host.start_ns[calls[:0]],
            host.end_ns[calls] if len(rows) == 1 else host.end_ns[calls[:0]],
        )
    return clocks


def _lanes(timeline: Timeline) -> tuple[list[tuple[int, int]], Places]:
    """Give the (device, stream) pairs numbers."""
    device, stream = timeline.device.device, timeline.device.stream
    if len(device) == 0:
        return [], np.empty(0, np.int32)
    pairs, lane = np.unique(np.stack([device.astype(np.int64), stream]), axis=1, return_inverse=True)
    return [(int(d), int(s)) for d, s in pairs.T], lane.reshape(-1).astype(np.int32)


def _spans(timeline: Timeline, book: NameBook, units: list[Unit], rows: list[DeviceRow], made: _Made) -> Spans:
    device, host, launch = timeline.device, timeline.host, made.launch
    n = len(device)
    shift_ns = np.zeros(n, np.int64)
    charged, stage = np.zeros(n, np.int8), np.zeros(n, np.int8)
    for row in rows:
        shift_ns[row.rows] = made.clocks[row.device].shift_ns
        charged[row.rows], stage[row.rows] = row.object, row.launch_stage
    start_ns, end_ns = device.start_ns + shift_ns, device.end_ns + shift_ns
    linked = launch != NONE_ID
    launch_ns = start_ns.copy()
    launch_ns[linked] = host.start_ns[launch[linked]]
    in_graph = np.zeros(n, np.bool_)
    in_graph[linked] = (book.call == CALL_CODE["graph_launch"])[host.name[launch[linked]]]
    starts = np.array([unit.start_ns for unit in units], np.int64)
    unit = np.searchsorted(starts, launch_ns, side="right") - 1
    unit = np.where(launch_ns < units[-1].end_ns, unit, -1)
    return Spans(
        start_ns, end_ns, launch, made.by_order, launch_ns, made.lane, in_graph, charged, stage, unit.astype(np.int32)
    )


def _records(timeline: Timeline, book: NameBook) -> dict[int, Intervals]:
    """Return the time under records, of threads that launch, compute or communicate.

    An operator that only waits for a collective is no record: what it does is being silent.
    """
    host = timeline.host
    is_record = (host.kind == Kind.RUNTIME) | (host.kind == Kind.OPERATOR)
    waits = np.array(["wait" in name.lower() for name in timeline.names] or [False], np.bool_)
    is_record &= ~((host.kind == Kind.OPERATOR) & (book.is_collective_op & waits)[host.name])
    is_record |= book.is_backend[host.name]
    rows = np.flatnonzero(is_record)
    first = np.searchsorted(host.track[rows], np.arange(len(timeline.tracks) + 1))
    result = {}
    for track in np.unique(host.track[rows]).tolist():
        mine = rows[first[track] : first[track + 1]]
        covered = union(host.start_ns[mine], host.end_ns[mine])
        if len(covered.start_ns):  # records without a length cover nothing
            result[track] = covered
    return result


def _silence(timeline: Timeline, records: dict[int, Intervals], units: list[Unit], settings: Settings) -> Silence:
    """Find the stretches without record that are long enough to be a wait; a unit's boundary ends a stretch."""
    recorded = timeline.recorded()
    tracks: list[NDArray[np.int32]] = []
    starts: list[Ints] = []
    ends: list[Ints] = []
    cuts = np.array(sorted({unit.start_ns for unit in units} | {units[-1].end_ns}), np.int64)
    for track, covered in records.items():
        gaps = complement(covered, int(recorded.start_ns[0]), int(covered.start_ns[-1]))
        if track == timeline.main_track:
            gaps = _cut(gaps, cuts)
        long = gaps.end_ns - gaps.start_ns >= settings.silence_min_ns
        starts.append(gaps.start_ns[long])
        ends.append(gaps.end_ns[long])
        tracks.append(np.full(int(long.sum()), track, np.int32))
    if not tracks:
        return Silence(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
    return Silence(np.concatenate(tracks), np.concatenate(starts), np.concatenate(ends))


def _cut(gaps: Intervals, cuts_ns: Ints) -> Intervals:
    inside = cuts_ns[covered_before(gaps, cuts_ns + 1) - covered_before(gaps, cuts_ns) > 0]
    start_ns, end_ns = np.concatenate([gaps.start_ns, inside]), np.concatenate([gaps.end_ns, inside])
    return Intervals(np.sort(start_ns), np.sort(end_ns))
