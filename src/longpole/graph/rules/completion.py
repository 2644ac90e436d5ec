"""When a unit is complete: its host end, the one before it, and the ends of all device spans that it launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.timeline.groups import closes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


def times(ground: Ground) -> Ints:
    """Return when each unit was complete: `[U]` int64 ns on the host's clock (DESIGN 3.2)."""
    done_ns = np.array([unit.end_ns for unit in ground.units], np.int64)
    spans = ground.spans
    mine = spans.unit >= 0
    np.maximum.at(done_ns, spans.unit[mine], spans.end_ns[mine])
    return np.maximum.accumulate(done_ns)


def find(ground: Ground, unit_ends: NDArray[np.int32], leaves: NDArray[np.bool_]) -> Edges:
    """Join host ends, device spans and earlier completions to completions.

    Of a unit's spans on one stream only the last one to end is joined, and those that nothing else follows: the others
    end before.

    Args:
        ground: The rank.
        unit_ends: `[U]` int32: points of the units' host ends.
        leaves: `[D]` bool: spans whose end no other edge leaves.
    """
    points, spans = ground.placed(), ground.spans
    done = points.completion
    mine = np.flatnonzero(spans.unit >= 0)
    mine = mine[np.lexsort((spans.end_ns[mine], spans.lane[mine], spans.unit[mine]))]
    unit, lane = spans.unit[mine], spans.lane[mine]
    chosen = mine[closes(unit, lane) | leaves[mine]]
    return Edges.join(
        [
            Edges.of(EdgeKind.COMPLETION, unit_ends, done),
            Edges.of(EdgeKind.COMPLETION, done[:-1], done[1:]),
            Edges.of(EdgeKind.COMPLETION, points.device_start[chosen] + 1, done[spans.unit[chosen]]),
        ]
    )
