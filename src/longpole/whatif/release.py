"""Calls that waited for the device no longer hold the host up; what they kept in order stays in order.

before  host     ├ launch a ┤├── synchronize: waits for a ──┤├ launch b ┤
        device        ═══════════ a ═══════════╗                 ═ b ═
after   host     ├ launch a ┤├ synchronize ┤├ launch b ┤
        device        ═══════════ a ═══════════╗═ b ═     as if the stream waited in the host's place
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind, PointKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.draft import Draft


def release(draft: Draft, place: int, waits: NDArray[np.intp]) -> None:
    """Drop waits of calls for the device; on each stream, the next span that the thread launches waits instead.

    Without that, work that the synchronisation kept in order could run at once: a record shows which order there was,
    never that it was not needed. Calls that wait for the copy that they launched themselves only drop the wait: their
    stream keeps the order.

    Args:
        draft: Altered in place.
        place: Place of the rank.
        waits: Edges from device spans to ends of calls.
    """
    draft.drop(waits)
    graph, rank = draft.graph, draft.graph.ranks[place]
    if len(waits) == 0 or not rank.has_device:
        return
    src = graph.edges.src[waits]
    from_device = rank.point_kind[draft.local(place, src)] == PointKind.DEVICE_END
    call = rank.row[draft.local(place, graph.edges.dst[waits])]
    launched = np.isin(call, rank.spans.launch)
    mine = np.flatnonzero(from_device & ~launched & (call >= 0))
    for lane in np.unique(rank.spans.lane).tolist():
        target, some = _next_spans(draft, place, lane, call[mine])
        chosen = mine[some]
        if len(chosen) == 0:
            continue
        # A span that began before what was waited for had ended did not wait for it.
        late = graph.time_ns[target] >= graph.time_ns[src[chosen]]
        lengths = np.zeros(int(late.sum()), np.int64)
        draft.added.append(Edges.of(EdgeKind.EVENT_RECORDED, src[chosen[late]], target[late], lengths))


def _next_spans(
    draft: Draft, place: int, lane: int, calls: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the start of the next span of a stream that each call's thread launched behind it, and where one is."""
    rank = draft.graph.ranks[place]
    spans, track = rank.spans, rank.host.track
    rows = np.flatnonzero((spans.lane == lane) & (spans.launch >= 0))
    rows = rows[np.argsort(spans.launch[rows], kind="stable")]
    launches = spans.launch[rows]
    at = np.searchsorted(launches, calls, side="right")
    inside = at < len(rows)
    at = np.minimum(at, max(len(rows) - 1, 0))
    if len(rows) == 0:
        return np.empty(0, np.int64), np.zeros(len(calls), np.bool_)
    some = inside & (track[launches[at]] == track[calls])
    return spans.point[rows[at[some]]].astype(np.int64) + int(draft.graph.base[place]), some
