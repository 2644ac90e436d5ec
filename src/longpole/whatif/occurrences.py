"""Occurrences of an activity on the thread that carries the units: where each begins and ends in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longpole.timeline.intervals import Intervals
from longpole.whatif.composition import time_left_ns

if TYPE_CHECKING:
    from longpole.whatif.composition import Alteration
    from longpole.whatif.draft import Draft


class Occurrence(NamedTuple):
    """One stretch of an activity.

    Attributes:
        before: Point of the run's graph in front of its beginning.
        lead_ns: From that point to its beginning, as far as earlier changes left it.
        behind: Point behind its end.
        lag_ns: From its end to that point, as far as earlier changes left it.
        dur_ns: How long it takes after earlier changes.
        begin_ns: When it began, on the run's clock.
    """

    before: int
    lead_ns: int
    behind: int
    lag_ns: int
    dur_ns: int
    begin_ns: int


def find_occurrences(draft: Draft, place: int, track: int, time: Intervals) -> list[Occurrence]:
    """Return the stretches of an activity on one thread of a rank that lie between points of its graph.

    Args:
        draft: The run.
        place: Place of the rank.
        track: The thread.
        time: Its time under the activity, in the rank's own time.
    """
    graph, rank = draft.graph, draft.graph.ranks[place]
    base = int(graph.base[place])
    points = np.flatnonzero((rank.lane == track) & (np.arange(len(rank.lane)) < _host_points(draft, place)))
    at_ns = rank.time_ns[points]
    earlier = draft.earlier(place, track)
    result = []
    for begin_ns, end_ns in zip(time.start_ns.tolist(), time.end_ns.tolist(), strict=True):
        first = int(np.searchsorted(at_ns, begin_ns, side="right")) - 1
        last = int(np.searchsorted(at_ns, end_ns, side="left"))
        if first < 0 or last >= len(points):
            continue
        before, behind = int(points[first]), int(points[last])
        result.append(
            Occurrence(
                before + base,
                _left_ns(int(rank.time_ns[before]), begin_ns, earlier),
                behind + base,
                _left_ns(end_ns, int(rank.time_ns[behind]), earlier),
                _left_ns(begin_ns, end_ns, earlier),
                int(graph.time_ns[before + base]) + begin_ns - int(rank.time_ns[before]),
            )
        )
    return result


def _left_ns(from_ns: int, to_ns: int, earlier: list[Alteration]) -> int:
    if not earlier or to_ns <= from_ns:
        return to_ns - from_ns
    begin_ns, end_ns = np.array([from_ns]), np.array([to_ns])
    return round(float(time_left_ns(Intervals(begin_ns, end_ns), begin_ns, end_ns, earlier)[0]))


def _host_points(draft: Draft, place: int) -> int:
    """Return how many of a rank's points lie on threads; they come first."""
    rank = draft.graph.ranks[place]
    return int((rank.lane >= rank.n_tracks).argmax()) if rank.has_device else len(rank.lane) - len(rank.completion)
