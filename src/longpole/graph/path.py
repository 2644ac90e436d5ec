"""The critical path as pieces: what each stretch of it was, where, how sure, and what nothing explains (DESIGN 3.6)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Self, TypeAlias

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE, STAGE_CODE
from longpole.graph.kinds import GRADE_OF_KIND, EdgeKind
from longpole.timeline.intervals import expand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.graph.walk import Steps
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]

UNEXPLAINED: Final = 255
"""In place of a kind: the record does not show what was waited for."""

_SECTIONS: Final = (EdgeKind.SECTION, EdgeKind.FLOOR)
_COLLECTIVE: Final = (EdgeKind.MEMBER, EdgeKind.ARRIVAL, EdgeKind.TRANSFER)
_KEPT_WAITS: Final = (EdgeKind.HAND_OVER, EdgeKind.ISSUE, EdgeKind.ALLOCATION)
_NEVER_ENDS_NS: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of paths, by unit, ascending in time; columns `[N]`.

    Attributes:
        unit: int32: place of the unit.
        rank: int32: place of the rank in the run's graph, -1 where there is none.
        lane: int32: thread or stream, -1 for none.
        start_ns, end_ns: int64 ns on the run's clock.
        object: int8: code into OBJECTS.
        stage: int8: code into STAGES.
        name: int32: code into the rank's names, -1 for none.
        row: int64: the device row or host row that the piece runs on, -1 for none.
        kind: uint8: member of EdgeKind, or UNEXPLAINED.
        grade: uint8: code into GRADES.
        kept: bool: host time that a replay keeps as recorded.
        named: bool: … under an activity that names an object.
    """

    unit: NDArray[np.int32]
    rank: NDArray[np.int32]
    lane: NDArray[np.int32]
    start_ns: Ints
    end_ns: Ints
    object: NDArray[np.int8]
    stage: NDArray[np.int8]
    name: NDArray[np.int32]
    row: Ints
    kind: NDArray[np.uint8]
    grade: NDArray[np.uint8]
    kept: NDArray[np.bool_]
    named: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def dur_ns(self) -> Ints:
        """Return the lengths: `[N]` int64 ns."""
        return self.end_ns - self.start_ns

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return some of the pieces."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def path_pieces(graph: RunGraph, steps: Steps, length_ns: Ints, settings: Settings) -> Pieces:
    """Say of every step of a walk what it was.

    A step longer than its edge by more than `resumes_within_ns` is split: what exceeds the edge is unexplained. Steps
    along a thread are cut where what the thread did changes.

    Args:
        graph: The run.
        steps: The walks.
        length_ns: `[E]` int64 ns: lengths of the edges.
        settings: `resumes_within_ns`.
    """
    return _cut(graph, _plain(graph, _split_excess(steps, length_ns, settings)))


def describe(graph: RunGraph, steps: Steps, *, cut: bool = True) -> Pieces:
    """Say of every step what it was, without comparing its length with its edge's.

    Args:
        graph: The run.
        steps: Steps at the times of the record.
        cut: Cut steps along threads where what the thread did changes.
    """
    whole = _Split(steps.unit, steps.edge, steps.start_ns, steps.end_ns, steps.edge < 0)
    plain = _plain(graph, whole)
    return _cut(graph, plain) if cut else plain


def _cut(graph: RunGraph, plain: Pieces) -> Pieces:
    sections = np.isin(plain.kind, _SECTIONS)
    parts = [plain.take(~sections), *_cut_sections(graph, plain.take(sections))]
    joined = Pieces(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Pieces)})
    return joined.take(np.lexsort((joined.start_ns, joined.unit)))


@dataclass(frozen=True, slots=True)
class _Split:
    unit: NDArray[np.int32]
    edge: Ints
    start_ns: Ints
    end_ns: Ints
    excess: NDArray[np.bool_]


def _split_excess(steps: Steps, length_ns: Ints, settings: Settings) -> _Split:
    """Cut from each step what is longer than its edge: the edge's own length comes first, the rest behind it."""
    lacking = steps.edge < 0
    own_ns = np.where(lacking, 0, length_ns[np.maximum(steps.edge, 0)]) if len(length_ns) else np.zeros(len(lacking))
    dur_ns = steps.end_ns - steps.start_ns
    long = (dur_ns > own_ns + settings.resumes_within_ns) | lacking
    cut_ns = steps.start_ns + np.clip(own_ns, 0, dur_ns).astype(np.int64)
    head = ~long | (cut_ns > steps.start_ns)
    unit = np.concatenate([steps.unit[head], steps.unit[long]])
    edge = np.concatenate([steps.edge[head], steps.edge[long]])
    start_ns = np.concatenate([steps.start_ns[head], cut_ns[long]])
    end_ns = np.concatenate([np.where(long, cut_ns, steps.end_ns)[head], steps.end_ns[long]])
    excess = np.concatenate([np.zeros(int(head.sum()), np.bool_), np.ones(int(long.sum()), np.bool_)])
    keep = end_ns > start_ns
    return _Split(unit[keep], edge[keep], start_ns[keep], end_ns[keep], excess[keep])


def _plain(graph: RunGraph, split: _Split) -> Pieces:
    """Describe steps by the edges they run over, without looking at what threads did meanwhile."""
    n = len(split.unit)
    at = np.maximum(split.edge, 0)
    kind = graph.edges.kind[at] if len(graph.edges) else np.zeros(n, np.uint8)
    kind = np.where(split.edge < 0, UNEXPLAINED, kind)
    point = graph.edges.dst[at] if len(graph.edges) else np.zeros(n, np.int32)
    # An arrival's or a completion's own point belongs to no rank: its source does.
    source = graph.edges.src[at] if len(graph.edges) else point
    point = np.where(point >= graph.base[-1], source, point)
    found = np.searchsorted(graph.base, point, side="right") - 1
    place: NDArray[np.int32] = np.where((split.edge >= 0) & (point < graph.base[-1]), found, -1).astype(np.int32)
    lane, row = np.full(n, -1, np.int32), np.full(n, -1, np.int64)
    name, stage = np.full(n, -1, np.int32), np.full(n, STAGE_CODE["other"], np.int8)
    charged = np.full(n, OBJECT_CODE["host"], np.int8)
    for r in np.unique(place[place >= 0]).tolist():
        mine = np.flatnonzero(place == r)
        own = graph.ranks[r]
        local = point[mine] - int(graph.base[r])
        lane[mine], row[mine] = own.lane[local], own.row[local]
        on_device = own.lane[local] >= own.n_tracks
        device, spans = mine[on_device], own.spans
        rows = own.row[local[on_device]]
        name[device], stage[device] = spans.name[rows], spans.stage[rows]
        runs = np.isin(kind[device], (EdgeKind.DURATION, EdgeKind.TRANSFER))
        charged[device[runs]] = spans.object[rows[runs]]
    charged[np.isin(kind, _COLLECTIVE)] = OBJECT_CODE["collective"]
    charged[split.excess] = OBJECT_CODE["unknown"]
    grade = np.append(np.array(GRADE_OF_KIND, np.uint8), 0)[np.minimum(kind, len(GRADE_OF_KIND))]
    return Pieces(
        unit=split.unit,
        rank=place,
        lane=lane,
        start_ns=split.start_ns,
        end_ns=split.end_ns,
        object=charged,
        stage=stage,
        name=name,
        row=row,
        kind=np.where(split.excess, UNEXPLAINED, kind).astype(np.uint8),
        grade=grade,
        kept=np.isin(kind, _KEPT_WAITS) & ~split.excess,
        named=np.zeros(n, np.bool_),
    )


def _cut_sections(graph: RunGraph, sections: Pieces) -> list[Pieces]:
    """Cut steps along threads where what the thread did changes, and say what that was."""
    parts = []
    key = sections.rank.astype(np.int64) * (1 << 32) + sections.lane
    for code in np.unique(key).tolist():
        mine = sections.take(key == code)
        place, track = code >> 32, code & 0xFFFFFFFF
        rank = graph.ranks[place]
        offset_ns = _offset_at(graph, place)
        parts.append(_cut_by_cover(rank, int(track), mine, offset_ns))
    return parts


def _offset_at(graph: RunGraph, place: int) -> int:
    """Return what was added to a rank's times; a drift moves what a thread did by far less than a segment."""
    point = int(graph.base[place])
    return int(graph.time_ns[point] - graph.ranks[place].time_ns[0]) if len(graph.ranks[place].time_ns) else 0


def _cut_by_cover(rank: RankGraph, track: int, mine: Pieces, offset_ns: int) -> Pieces:
    cover = rank.cover
    low, high = int(cover.first[track]), int(cover.first[track + 1])
    starts = cover.start_ns[low:high] + offset_ns
    first = np.maximum(np.searchsorted(starts, mine.start_ns, side="right") - 1, 0)
    last = np.searchsorted(starts, mine.end_ns, side="left")
    piece, segment = expand(first, last)
    ends = np.append(starts[1:], _NEVER_ENDS_NS)
    cut = mine.take(piece)
    columns = {f.name: getattr(cut, f.name) for f in fields(Pieces)}
    at = low + segment
    return Pieces(
        **columns
        | {
            "start_ns": np.maximum(cut.start_ns, np.where(segment == 0, cut.start_ns, starts[segment])),
            "end_ns": np.minimum(cut.end_ns, ends[segment]),
            "object": cover.object[at],
            "stage": cover.stage[at],
            "name": cover.name[at],
            "kept": np.ones(len(at), np.bool_),
            "named": cover.named[at],
        }
    )
