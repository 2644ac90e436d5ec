"""The graph of one rank: points, edges in sweeping order, and what a change must know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.kinds import GRADE_OF_KIND, EdgeKind
from longpole.timeline.intervals import Intervals, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.constants import Constant
    from longpole.graph.edges import Edges
    from longpole.vocabulary.declared import Declared

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cover:
    """What threads did, by segments in which nothing changes; columns `[S]`, ordered by track, then time.

    Attributes:
        first: `[T + 1]` int64: segments of track t are `first[t]:first[t + 1]`; each ends where the next one starts.
        start_ns: int64 ns.
        object: int8: code into OBJECTS: what a wait for this piece is charged to.
        stage: int8: code into STAGES.
        name: int32: the named activity, else the innermost span; code into the names, -1 where there is no record.
        named: bool: under an activity that names an object.
    """

    first: Ints
    start_ns: Ints
    object: NDArray[np.int8]
    stage: NDArray[np.int8]
    name: Places
    named: Flags


@dataclass(frozen=True, slots=True)
class HostSpans:
    """All host spans, for changes that select by name; columns `[H]`, ordered by track, then start."""

    start_ns: Ints
    end_ns: Ints
    name: Places
    track: Places
    first: Ints


@dataclass(frozen=True, slots=True)
class DeviceSpans:
    """All device spans; columns `[D]`.

    Attributes:
        point: int32: start point; the end point is the next one.
        launch: int64: host row of the launching call, -1 for none.
        name, lane, unit: int32.
        object, stage: int8.
        collective: bool: a collective or point-to-point transfer.
        compute: bool: on the compute rung.
        overlapped: bool: another span of the device runs at the same time.
        is_copy: bool: a copy between memories.
    """

    point: Places
    launch: Ints
    name: Places
    lane: Places
    unit: Places
    object: NDArray[np.int8]
    stage: NDArray[np.int8]
    collective: Flags
    compute: Flags
    overlapped: Flags
    is_copy: Flags


@dataclass(frozen=True, slots=True)
class RankGraph:
    """The graph of one rank.

    Attributes:
        rank: The rank.
        time_ns: `[P]` int64 ns: recorded times since the file's base, device points on the host's clock.
        point_kind: `[P]` uint8: members of PointKind.
        lane: `[P]` int32: track, `n_tracks +` stream, -1.
        row: `[P]` int64: host or device row, unit, -1.
        edges: Ordered for sweeping; `length_ns` is final, constants included.
        constants: (kind code, lane) -> the constant used.
        completion: `[U]` int32: completion points of the units.
        units: Names of the units.
        unit_start_ns: `[U]` int64 ns.
        names: What name codes stand for.
        lane_names: Threads, then streams, for people.
        streams: Stream number of each lane behind the threads.
        n_tracks: Number of threads among the lanes.
        main_track: The thread that carries the units, -1 for none.
        spans: Device spans.
        cover: What threads did.
        host: Host spans.
        entry: `[I]` int32: point at which each instance of a collective begins, in the order of the digest's instances.
        exit: `[I]` int32: point at which it ends.
        call_start, call_end: `[H]` int32: points of host rows, -1 for none.
        blocked: `[B]` int64: host rows of calls that waited for the device, ascending.
        orphans: Points without an edge into them that should have one.
        late_spans: Device spans that end so long after their unit that units cannot be told apart.
        shift_ns: Device -> what was added to its times.
        conflict_ns: Device -> how far no constant fits.
        said: Name code -> what the program itself says of the spans that bear it; empty where a profiler looked on.
        is_told: The program itself wrote the record: a thread without a span did something that it does not name.
    """

    rank: int
    time_ns: Ints
    point_kind: NDArray[np.uint8]
    lane: Places
    row: Ints
    edges: Edges
    constants: dict[tuple[int, int], Constant]
    completion: Places
    units: tuple[str, ...]
    unit_start_ns: Ints
    names: tuple[str, ...]
    lane_names: tuple[str, ...]
    streams: tuple[int, ...]
    n_tracks: int
    main_track: int
    spans: DeviceSpans
    cover: Cover
    host: HostSpans
    entry: Places
    exit: Places
    call_start: Places
    call_end: Places
    blocked: Ints
    orphans: int
    late_spans: int
    shift_ns: dict[int, int]
    conflict_ns: dict[int, int]
    said: dict[int, Declared] = field(default_factory=dict)
    is_told: bool = False

    @property
    def has_device(self) -> bool:
        """Tell whether the rank recorded device spans."""
        return len(self.spans.point) > 0

    def grade(self) -> NDArray[np.uint8]:
        """Return the grade of each edge: `[E]` code into GRADES."""
        return np.array(GRADE_OF_KIND, np.uint8)[self.edges.kind]

    def floors_ns(self) -> Ints:
        """Return the times before which no point happens: recorded ones for points without an edge into them."""
        from longpole.graph.sweep import NEVER_NS

        floor_ns = self.time_ns.copy()
        floor_ns[self.edges.dst] = NEVER_NS
        return floor_ns

    def covered(self, track: int, chosen: Flags) -> Intervals:
        """Return the time of a thread in which the masked segments of `cover` are in force."""
        low, high = int(self.cover.first[track]), int(self.cover.first[track + 1])
        mine = low + np.flatnonzero(chosen[low:high])
        ends = np.append(self.cover.start_ns[1:], self.cover.start_ns[-1:])
        ends[self.cover.first[1:][self.cover.first[1:] > 0] - 1] = _NEVER_ENDS_NS
        # Before its first and after its last record a thread goes on; kept short enough for lengths to be summed.
        return union(np.maximum(self.cover.start_ns[mine], -_NEVER_ENDS_NS), ends[mine])

    def under_names(self, track: int, chosen: Flags) -> Intervals:
        """Return the time of a thread under spans whose name code is masked."""
        low, high = int(self.host.first[track]), int(self.host.first[track + 1])
        mine = low + np.flatnonzero(chosen[self.host.name[low:high]])
        return union(self.host.start_ns[mine], self.host.end_ns[mine])


_NEVER_ENDS_NS = 1 << 60
SECTION_KINDS = (EdgeKind.SECTION, EdgeKind.FLOOR)
