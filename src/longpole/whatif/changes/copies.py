"""Copies that the host waits for become asynchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.whatif.selection import BLOCKING

if TYPE_CHECKING:
    from longpole.whatif.draft import Draft


def async_copy(draft: Draft) -> None:
    """Let calls of copies return without waiting; the copies stay where they are on their streams."""
    graph = draft.graph
    for place, rank in draft.ranks():
        copies = np.flatnonzero(rank.spans.is_copy & (rank.spans.launch >= 0))
        into = draft.edges_of(place, *BLOCKING)
        # A call that waits for the span that it launched itself is a copy's, whether its size was recorded or not.
        span = rank.row[draft.local(place, graph.edges.src[into])]
        call = rank.row[draft.local(place, graph.edges.dst[into])]
        own = call[rank.spans.launch[span] == call]
        calls = np.union1d(np.intersect1d(rank.blocked, rank.spans.launch[copies]), own)
        ends = rank.call_end[calls]
        waits = into[np.isin(draft.local(place, graph.edges.dst[into]), ends)]
        draft.drop(waits)
        draft.rows += len(waits)
