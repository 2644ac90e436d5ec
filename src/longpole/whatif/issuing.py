"""What the host does for a collective besides the collective itself: issuing it, and resuming when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.kinds import EdgeKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.whatif.draft import Draft


def issuing_sections(draft: Draft, place: int, wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the edges along the calls that issued or launched some of a rank's collectives.

    Args:
        draft: The run.
        place: Place of the rank.
        wanted: `[I]` bool: which of its collectives.
    """
    graph, rank = draft.graph, draft.graph.ranks[place]
    own = draft.instances[rank.rank]
    on_device = wanted & own.on_device.astype(np.bool_)
    issues = draft.edges_of(place, EdgeKind.ISSUE)
    mine = issues[np.isin(draft.local(place, graph.edges.dst[issues]), rank.entry[wanted & ~on_device])]
    calls = np.concatenate(
        [rank.spans.launch[own.row[on_device]], rank.row[draft.local(place, graph.edges.src[mine])]]
    ).astype(np.int64)
    calls = calls[calls >= 0]
    calls = calls[rank.call_start[calls] >= 0]
    depth = np.zeros(len(rank.lane) + 1, np.int64)
    np.add.at(depth, rank.call_start[calls], 1)
    np.add.at(depth, rank.call_end[calls], -1)
    sections = draft.edges_of(place, EdgeKind.SECTION)
    return sections[np.cumsum(depth)[draft.local(place, graph.edges.src[sections])] > 0]


def resumptions(draft: Draft, place: int, wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the edges by which threads resume when some of a rank's collectives on the host's own threads are over.

    Args:
        draft: The run.
        place: Place of the rank.
        wanted: `[I]` bool: which of its collectives.
    """
    graph, rank = draft.graph, draft.graph.ranks[place]
    on_host = wanted & ~draft.instances[rank.rank].on_device.astype(np.bool_)
    exits = rank.exit[on_host]
    over = set(zip(rank.lane[exits].tolist(), rank.time_ns[exits].tolist(), strict=True))
    edges = draft.edges_of(place, EdgeKind.HAND_OVER)
    src = draft.local(place, graph.edges.src[edges])
    from_them = [at in over for at in zip(rank.lane[src].tolist(), rank.time_ns[src].tolist(), strict=True)]
    return edges[np.array(from_them, np.bool_)] if len(edges) else edges
