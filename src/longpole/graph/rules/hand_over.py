"""A thread that is silent while another one works waits for that other one (DESIGN 3.6, hand-over).

main        ├─ forward ─┤ ······ silent ······ ├─ optimizer
backward                  ├── evaluate … ──┤
edge                                       └──►           grade: inferred

Evidence: operators or runtime calls of both threads; no arrow is needed. Works in both directions, between main
thread, autograd threads and the threads of a communication library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.timeline.intervals import covered_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HandOvers:
    """Silences that are waits for other threads; columns `[W]`.

    Attributes:
        silence: int64: places in `Ground.silence`.
        track: int32: the thread waited for.
        end_ns: int64 ns: end of its last record before the silent thread resumed.
    """

    silence: Ints
    track: NDArray[np.int32]
    end_ns: Ints


def find(ground: Ground) -> HandOvers:
    """Find the silences in which another thread worked for at least half of the time and ended before their end."""
    silence, settings = ground.silence, ground.settings
    n = len(silence.start_ns)
    latest_ns = np.full(n, -(1 << 62), np.int64)
    waited_for = np.full(n, -1, np.int32)
    needed_ns = settings.silence_covered_share * (silence.end_ns - silence.start_ns)
    free = _outside_activities(ground)
    for track, records in ground.records.items():
        covered_ns = covered_before(records, silence.end_ns) - covered_before(records, silence.start_ns)
        last = np.searchsorted(records.end_ns, silence.end_ns, side="right") - 1
        end_ns = np.where(last >= 0, records.end_ns[np.maximum(last, 0)], -(1 << 62))
        fits = free & (silence.track != track) & (covered_ns >= needed_ns) & (end_ns > silence.start_ns)
        better = fits & (end_ns > latest_ns)
        latest_ns[better], waited_for[better] = end_ns[better], track
    found = np.flatnonzero(waited_for >= 0)
    return HandOvers(found.astype(np.int64), waited_for[found], latest_ns[found])


def _outside_activities(ground: Ground) -> NDArray[np.bool_]:
    """Return which silences lie, for the most part, outside of object activities: those explain themselves."""
    silence = ground.silence
    free = np.ones(len(silence.start_ns), np.bool_)
    for track in np.unique(silence.track).tolist():
        mine = np.flatnonzero(silence.track == track)
        activity = ground.activity(track)
        start_ns, end_ns = silence.start_ns[mine], silence.end_ns[mine]
        inside_ns = covered_before(activity, end_ns) - covered_before(activity, start_ns)
        free[mine] = 2 * inside_ns < end_ns - start_ns
    return free
