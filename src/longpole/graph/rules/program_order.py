"""What a thread does one after the other (DESIGN 3.6, program order).

thread   ●─ section ─●─ call ─●─ section ─● ····· silent ····· ●─ section ─●
kept         yes        yes        yes              0               yes

What lies between two points of a thread is kept as recorded, unless the thread waited there: inside a call that
blocked on the device only the call's own floor counts, in a silence that is a wait nothing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]


def find(
    ground: Ground, floors: tuple[Ints, Ints], silent: tuple[Places, Places], backends: tuple[Places, Places]
) -> Edges:
    """Join consecutive points of each thread.

    Args:
        ground: The rank.
        floors: `[B]` host rows of calls that waited and what each takes by itself, ns.
        silent: `[W]` points at the beginning and the end of silences that are waits.
        backends: `[G]` start and end points of backend spans, which wait and move bytes.
    """
    points = ground.placed()
    n = points.n_host
    src = np.flatnonzero(points.lane[: n - 1] == points.lane[1:n]) if n else np.empty(0, np.intp)
    length_ns = points.time_ns[src + 1] - points.time_ns[src]
    kind = np.full(len(src), EdgeKind.SECTION, np.uint8)
    # Without any thread the units' boundaries stand on none, and what lies between them was done by nobody.
    nobody = points.lane[src] < 0
    kind[nobody], length_ns[nobody] = EdgeKind.SILENT, 0
    edge_at = np.full(n + 1, -1, np.int64)
    edge_at[src] = np.arange(len(src))
    for first, last in zip(*silent, strict=True):
        inside = edge_at[first:last]
        kind[inside], length_ns[inside] = EdgeKind.SILENT, 0
    for first, last in zip(*backends, strict=True):
        inside = edge_at[first:last]
        kind[inside] = EdgeKind.MEMBER
    for row, floor_ns in zip(floors[0].tolist(), floors[1].tolist(), strict=True):
        inside = edge_at[points.call_start[row] : points.call_end[row]]
        kind[inside], length_ns[inside] = EdgeKind.FLOOR, 0
        length_ns[inside[0]] = floor_ns
    return Edges(src.astype(np.int32), (src + 1).astype(np.int32), kind, length_ns)


def own_floors(ground: Ground, call: Ints, idle: Ints, default_ns: int) -> Ints:
    """Return what calls that waited take by themselves: the median of their namesakes that did not wait.

    Never fitted on calls that waited (DESIGN 3.7); where too few namesakes did not, the default, and never longer than
    the call itself.

    Args:
        ground: The rank.
        call: `[B]` host rows of calls that waited.
        idle: Host rows of calls that could have waited and did not.
        default_ns: Where there is no sample.
    """
    host, settings = ground.timeline.host, ground.settings
    floor_ns = np.full(len(call), default_ns, np.int64)
    for name in np.unique(host.name[call]).tolist():
        samples = idle[host.name[idle] == name]
        if len(samples) >= settings.clean_min_count:
            own_ns = int(np.median(host.end_ns[samples] - host.start_ns[samples]))
            if own_ns <= settings.constant_max_ns:
                floor_ns[host.name[call] == name] = own_ns
    return np.minimum(floor_ns, host.end_ns[call] - host.start_ns[call])
