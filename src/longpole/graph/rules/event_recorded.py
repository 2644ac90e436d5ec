"""Event waits that rows of synchronisation record: a stream waited until an event on another one was reached.

thread     ├launch A┤ ├record┤ ├launch B┤ ├stream wait┤ ├launch K┤
stream 13     ├──── A ────┤├── B ──┤
stream 7                  └──────────────────────→├─ K ─┤       K waits for A, not for B

Grade: *recorded*. Evidence: a "Stream Wait Event" row, the call that made the wait, and the call that recorded the
event. A is the last span launched on the event's stream before the record, all of a captured graph where A is in one;
K is the first span launched on the waiting stream after the wait. The wait holds everything after it on that stream;
stream order carries it on from K. Same rule as HTA's (`critical_path_analysis.py`, `_get_cuda_event_record_df`,
`_get_cuda_stream_wait_event_df`), but HTA looks for K only among the launches of the waiting call's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.rules.stream_queues import last_nodes, stream_queues
from longpole.graph.rules.sync_rows import stream_waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


def find(ground: Ground) -> Edges:
    """Return the edges from ends of spans to starts of spans that waited for them."""
    source, target = find_rows(ground)
    return device_edges(ground, EdgeKind.EVENT_RECORDED, source, target)


def find_rows(ground: Ground) -> tuple[Ints, Ints]:
    """Return device rows `[E]` int64 of the spans waited for and of those that waited, each pair once."""
    spans = ground.spans
    waits = stream_waits(ground)
    kept = np.flatnonzero(waits.has_record & (waits.waiting < len(ground.lanes)) & (waits.waited < len(ground.lanes)))
    kept = kept[waits.waiting[kept] != waits.waited[kept]]
    queues = stream_queues(spans, len(ground.lanes))
    waited, waiting = waits.waited[kept], waits.waiting[kept]
    before = queues.launched_before(waited, waits.record_ns[kept])
    after = queues.launched_before(waiting, waits.wait_ns[kept])
    exist = (before > queues.first[waited]) & (after < queues.first[waiting + 1])
    source = last_nodes(spans)[queues.row[before[exist] - 1]]
    target = queues.row[after[exist]]
    forward = spans.end_ns[source] - spans.start_ns[target] <= ground.tolerance_ns
    pairs = np.unique(np.stack([target[forward], source[forward]]), axis=1)
    return pairs[1], pairs[0]


def device_edges(ground: Ground, kind: EdgeKind, source: Ints, target: Ints) -> Edges:
    """Return edges from the ends of device rows to the starts of others."""
    start = ground.placed().device_start
    return Edges.of(kind, start[source] + 1, start[target])
