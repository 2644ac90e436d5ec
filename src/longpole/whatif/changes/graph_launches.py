"""Launches are captured once and replayed as a graph, so that the host no longer paces them.

before  host    ├ launch ┤ … ├ launch ┤ … ├ launch ┤ … ├ sync ┤
after   host    ├ graph launch ┤├ sync ┤
        device     ├ k1 ┤├ k2 ┤├ k3 ┤
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.timeline.intervals import intersect, union
from longpole.whatif.composition import Alteration, time_left_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.rank_graph import RankGraph
    from longpole.whatif.draft import Draft

_LAUNCHES: Final = (EdgeKind.LAUNCH, EdgeKind.LAUNCH_IN_ORDER)


def graph_launches(draft: Draft) -> None:
    """Capture the launches of each unit and thread between two calls that wait for the device.

    The first launch starts all of them; host time between the first and the last one goes, but for named activities
    and waits; gaps inside an already captured graph stay.
    """
    graph = draft.graph
    for place, rank in draft.ranks():
        launches = draft.edges_of(place, *_LAUNCHES)
        src = draft.local(place, graph.edges.src[launches])
        group = _groups(rank, src)
        order = np.lexsort((rank.time_ns[src], group))
        first = np.ones(len(order), np.bool_)
        first[1:] = group[order][1:] != group[order][:-1]
        head = np.flatnonzero(first)[np.cumsum(first) - 1] if len(order) else order
        heads, members = launches[order[head]], launches[order]
        followers = members[~first]
        _start_with_head(draft, heads[~first], followers)
        _drop_host_time(draft, place, rank, (src[order], group[order], first))
        streams = draft.edges_of(place, EdgeKind.STREAM)
        captured = streams[np.isin(graph.edges.dst[streams], graph.edges.dst[followers])]
        draft.set_length(captured, _gaps_ns(draft, rank, rank.lane[draft.local(place, graph.edges.dst[captured])]))
        draft.rows += len(followers)


def _gaps_ns(draft: Draft, rank: RankGraph, lane: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the gap before each captured span: its stream's own between queued spans where that was seen."""
    gap_ns = np.full(len(lane), draft.settings.graph_gap_ns, np.int64)
    for (kind, own), constant in rank.constants.items():
        if kind == EdgeKind.STREAM and constant.fitted:
            gap_ns[(lane == own) | (own < 0)] = constant.length_ns
    return gap_ns


def _groups(rank: RankGraph, src: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give launches numbers by thread, unit, and how many waiting calls of the thread came before."""
    track = rank.lane[src].astype(np.int64)
    unit = np.searchsorted(rank.unit_start_ns, rank.time_ns[src], side="right")
    waits = np.zeros(len(src), np.int64)
    for code in np.unique(track).tolist():
        mine = np.flatnonzero(track == code)
        blocked = rank.blocked[rank.host.track[rank.blocked] == code]
        waits[mine] = np.searchsorted(rank.host.start_ns[blocked], rank.time_ns[src[mine]])
    _, number = np.unique(np.stack([track, unit, waits]), axis=1, return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def _start_with_head(draft: Draft, heads: NDArray[np.intp], followers: NDArray[np.intp]) -> None:
    """Let captured spans be launched by the first launch of their graph."""
    graph = draft.graph
    draft.drop(followers)
    if len(followers):
        draft.added.append(
            Edges.of(EdgeKind.LAUNCH, graph.edges.src[heads], graph.edges.dst[followers], draft.length_ns[heads])
        )


def _drop_host_time(
    draft: Draft, place: int, rank: RankGraph, launches: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]
) -> None:
    """Take away host time between the first and the last launch of each graph, but for named activities."""
    src, group, first = launches
    if len(src) == 0:
        return
    graph = draft.graph
    begins = src[first]
    last = np.ones(len(group), np.bool_)
    last[:-1] = group[1:] != group[:-1]
    ends = src[last]
    sections = draft.edges_of(place, EdgeKind.SECTION)
    at = draft.local(place, graph.edges.src[sections])
    inside = np.zeros(len(rank.lane) + 1, np.int64)
    # Points of one thread stand side by side, so that a graph's sections are a range of them.
    np.add.at(inside, begins + 1, 1)
    np.add.at(inside, ends + 1, -1)
    captured = np.cumsum(inside)[at] > 0
    named_ns = _named_ns(draft, place, sections[captured])
    draft.set_length(sections[captured], named_ns)


def _named_ns(draft: Draft, place: int, edges: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how much of each edge lies under a named activity and was left by earlier changes; note what goes."""
    graph, rank = draft.graph, draft.graph.ranks[place]
    src, dst = draft.local(place, graph.edges.src[edges]), draft.local(place, graph.edges.dst[edges])
    named_ns = np.zeros(len(edges), np.int64)
    for track in np.unique(rank.lane[src]).tolist():
        mine = np.flatnonzero(rank.lane[src] == track)
        from_ns, to_ns = rank.time_ns[src[mine]], rank.time_ns[dst[mine]]
        left_ns = time_left_ns(rank.covered(track, rank.cover.named), from_ns, to_ns, draft.earlier(place, track))
        named_ns[mine] = np.rint(left_ns).astype(np.int64)
        gone = intersect(union(from_ns, to_ns), rank.covered(track, ~rank.cover.named))
        draft.alterations.append(Alteration(place, track, gone, 0.0))
    return named_ns
