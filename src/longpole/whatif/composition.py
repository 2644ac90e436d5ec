"""What a replayed path is made of, by object: steps along threads are looked up in what was recorded there.

A replayed step has the place of its edge on the record, but another time and maybe another length. Its composition is
the recorded one, less what changes took out of it, stretched to the step's length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.path import Pieces, describe
from longpole.graph.walk import Steps
from longpole.timeline.intervals import Intervals, covered_before, intersect
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.run_graph import RunGraph

    Ints: TypeAlias = NDArray[np.int64]


class OnThread(NamedTuple):
    """The selected time of one thread."""

    track: int
    time: Intervals


class Sections(NamedTuple):
    """Edges along threads and the selected part of each.

    Attributes:
        edge: `[N]` edges of the run's graph.
        inside_ns: `[N]` int64 ns: how much of each is selected.
        begins: `[N]` int64: how many selected stretches begin in it.
    """

    edge: NDArray[np.intp]
    inside_ns: Ints
    begins: Ints


class Alteration(NamedTuple):
    """Time of one thread of one rank, in the rank's own time, and which share of it a change left."""

    place: int
    track: int
    time: Intervals
    factor: float


def time_left_ns(time: Intervals, from_ns: Ints, to_ns: Ints, earlier: list[Alteration]) -> NDArray[np.float64]:
    """Return how much of some time of a thread, between moments, earlier changes left: `[N]` float64 ns.

    Args:
        time: Of the thread, in its rank's own time.
        from_ns: `[N]` int64 ns.
        to_ns: `[N]` int64 ns.
        earlier: Changes of that thread's time, in the order in which they were made.
    """
    left_ns = (covered_before(time, to_ns) - covered_before(time, from_ns)).astype(np.float64)
    for place, change in enumerate(earlier):
        if len(time.start_ns) == 0 or not _meet(time, change.time):
            continue
        both = intersect(time, change.time)
        if len(both.start_ns):
            left_ns -= (1 - change.factor) * time_left_ns(both, from_ns, to_ns, earlier[:place])
    return left_ns


def _meet(a: Intervals, b: Intervals) -> bool:
    """Tell at little cost that two sets have nothing in common: a change of each unit makes many that have not."""
    if len(b.start_ns) == 0:
        return False
    return bool(a.start_ns[0] < b.end_ns[-1] and b.start_ns[0] < a.end_ns[-1])


@dataclass(frozen=True, slots=True)
class Composition:
    """Parts of replayed paths; columns `[N]`.

    Attributes:
        unit: int32: place of the unit.
        part_ns: float64 ns.
        object: int8: code into OBJECTS.
        rank: int32: place of the rank, -1 for none.
        kept: bool: host time kept as recorded.
        named: bool: … under an activity that names an object.
        kind: uint8: member of EdgeKind.
    """

    unit: NDArray[np.int32]
    part_ns: NDArray[np.float64]
    object: NDArray[np.int8]
    rank: NDArray[np.int32]
    kept: NDArray[np.bool_]
    named: NDArray[np.bool_]
    kind: NDArray[np.uint8]

    def by_object_ns(self) -> NDArray[np.float64]:
        """Return the sums by object: `[len(OBJECTS)]` float64 ns."""
        return np.bincount(self.object, self.part_ns, len(OBJECTS)).astype(np.float64)


def compose(graph: RunGraph, steps: Steps, alterations: list[Alteration]) -> Composition:
    """Say what replayed steps are made of; those without a recorded edge come last, in order.

    Args:
        graph: The run as recorded; the steps' edges are its edges, -1 where a step has none.
        steps: Steps of a replayed path.
        alterations: Time on threads that changes shortened.
    """
    edges, some = graph.edges, np.flatnonzero(steps.edge >= 0)
    edge = steps.edge[some]
    start_ns, end_ns = graph.time_ns[edges.src[edge]], graph.time_ns[edges.dst[edge]]
    recorded = end_ns > start_ns
    looked = Steps(some[recorded].astype(np.int32), edge[recorded], start_ns[recorded], end_ns[recorded])
    pieces = describe(graph, looked)
    left_ns = _left_ns(graph, pieces, alterations)
    step = pieces.unit  # numbers of steps stand in the column of units
    sums = np.bincount(step, left_ns, len(steps.edge))
    empty = sums[step] <= 0
    whole_ns = (steps.end_ns - steps.start_ns).astype(np.float64)
    # A step whose every piece a change took away is still as long as it is: it keeps what it was.
    weights = np.where(empty, pieces.dur_ns.astype(np.float64), left_ns)
    sums = np.bincount(step, weights, len(steps.edge))
    part_ns = weights / np.maximum(sums[step], 1e-12) * whole_ns[step]
    rest = np.ones(len(steps.edge), np.bool_)
    rest[step] = False
    last = np.flatnonzero(rest)
    last = last[np.argsort(steps.edge[last] < 0, kind="stable")]
    others = _bare(graph, steps, last)
    return Composition(
        unit=np.concatenate([steps.unit[step], steps.unit[last]]),
        part_ns=np.concatenate([part_ns, whole_ns[last]]),
        object=np.concatenate([pieces.object, others.object]),
        rank=np.concatenate([pieces.rank, others.rank]),
        kept=np.concatenate([pieces.kept, others.kept]),
        named=np.concatenate([pieces.named, others.named]),
        kind=np.concatenate([pieces.kind, others.kind]),
    )


def _bare(graph: RunGraph, steps: Steps, rows: NDArray[np.intp]) -> Pieces:
    """Describe steps whose edges took no time on the record, or that have no edge."""
    nothing = Steps(
        rows.astype(np.int32), steps.edge[rows], np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
    )
    return describe(graph, nothing, cut=False)


def _left_ns(graph: RunGraph, pieces: Pieces, alterations: list[Alteration]) -> NDArray[np.float64]:
    """Return how much of each piece changes left."""
    left_ns = pieces.dur_ns.astype(np.float64)
    along = np.isin(pieces.kind, (EdgeKind.SECTION, EdgeKind.FLOOR))
    for change in alterations:
        mine = np.flatnonzero(along & (pieces.rank == change.place) & (pieces.lane == change.track))
        if len(mine) == 0:
            continue
        offset_ns = int(graph.time_ns[int(graph.base[change.place])] - graph.ranks[change.place].time_ns[0])
        from_ns, to_ns = pieces.start_ns[mine] - offset_ns, pieces.end_ns[mine] - offset_ns
        inside_ns = covered_before(change.time, to_ns) - covered_before(change.time, from_ns)
        left_ns[mine] *= 1 - inside_ns / (to_ns - from_ns) * (1 - change.factor)
    return np.maximum(left_ns, 0.0)
