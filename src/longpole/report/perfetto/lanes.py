"""Which lane a span is drawn on: on a lane, spans are apart or one inside the other, for a viewer loses all others.

recorded   ├──── a ────┤         ├── c ──┤
                ├──── b ────┤       ├ d ┤
lane 1     ├──── a ────┤         ├── c ──┤
                                    ├ d ┤        inside c: where spans are calls
lane 2          ├──── b ────┤
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.timeline.nesting import apart_lanes, nest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

_ROUNDS: Final = 8  # of taking out spans that cross others; what is left then gets lanes without any nesting


def call_lanes(start_ns: Ints, end_ns: Ints) -> Ints:
    """Return a lane for each of a thread's spans, on which it lies inside of others or apart from them.

    Args:
        start_ns: `[N]` int64.
        end_ns: `[N]` int64, at least the start.

    Returns:
        `[N]` int64, from 0 without holes; nearly always all 0.
    """
    lane = np.zeros(len(start_ns), np.int64)
    left = np.lexsort((-end_ns, start_ns))
    for number in range(_ROUNDS):
        crosses = nest(start_ns[left], end_ns[left]).end_ns != end_ns[left]
        lane[left] = number
        left = left[crosses]
        if len(left) == 0:
            return lane
    lane[left] = _ROUNDS + apart_lanes(start_ns[left], end_ns[left])
    return lane


def event_places(start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
    """Return where begins and ends of a lane's spans stand in the order in which a reader opens and closes them.

    At one instant what began earlier ends first, the innermost one before what it lies in; then spans begin, the
    longest one first; a span without length comes last and ends at once.

    Args:
        start_ns: `[N]` int64.
        end_ns: `[N]` int64, at least the start; spans are apart or one inside the other.

    Returns:
        `[N]` and `[N]` int64: places among the 2 N events.
    """
    n = len(start_ns)
    preorder = np.empty(n, np.int64)
    preorder[np.lexsort((-end_ns, start_ns))] = np.arange(n)
    empty = start_ns == end_ns
    time_ns = np.concatenate([start_ns, end_ns])
    kind = np.concatenate([np.where(empty, 2, 1), np.where(empty, 2, 0)])
    turn = np.concatenate([2 * preorder, np.where(empty, 2 * preorder + 1, -preorder)])
    places = np.empty(2 * n, np.int64)
    places[np.lexsort((turn, kind, time_ns))] = np.arange(2 * n)
    return places[:n], places[n:]
