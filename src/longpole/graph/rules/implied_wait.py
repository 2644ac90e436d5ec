"""A long silence of the main thread that ends as the device runs dry was a wait for it (DESIGN 3.6, implied wait).

main     ├ launch ┤ ········ silent ········ ├ next call
device        ├──────── last span ────────┤  at most 20 µs
edge                                      └─►                grade: inferred

Evidence: that the span was launched before the silence began. Some waits leave no record: a driver's lock, a library
that spins on an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.timeline.intervals import covered_before, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ImpliedWaits:
    """Silences that are waits for a device; columns `[W]` int64.

    Attributes:
        silence: Places in `Ground.silence`.
        span: The device rows waited for.
    """

    silence: Ints
    span: Ints


def find(ground: Ground) -> ImpliedWaits:
    """Find the silences of the main thread that end as a device runs dry."""
    silence, settings, spans = ground.silence, ground.settings, ground.spans
    main = ground.timeline.main_track
    long = silence.end_ns - silence.start_ns >= settings.implied_wait_min_ns
    mine = np.flatnonzero((silence.track == main) & long)
    span = np.full(len(mine), -1, np.int64)
    if len(mine) == 0 or len(spans.start_ns) == 0:
        return ImpliedWaits(mine[:0].astype(np.int64), span[:0])
    mine = mine[_outside(ground, mine)]
    span = np.full(len(mine), -1, np.int64)
    for row in ground.rows:
        start_ns, end_ns = spans.start_ns[row.rows], spans.end_ns[row.rows]
        dry_ns = union(start_ns, end_ns).end_ns
        if len(dry_ns) == 0:  # spans without a length leave no time at which the device runs
            continue
        order = np.argsort(end_ns, kind="stable")
        place = np.searchsorted(dry_ns, silence.end_ns[mine] + ground.tolerance_ns, side="right") - 1
        at_ns = dry_ns[np.maximum(place, 0)]
        lag_ns = silence.end_ns[mine] - at_ns
        last = row.rows[order[np.searchsorted(end_ns[order], at_ns, side="right") - 1]]
        fits = (place >= 0) & (lag_ns <= settings.resumes_within_ns) & (at_ns > silence.start_ns[mine])
        fits &= spans.launch_ns[last] < silence.start_ns[mine]
        span = np.where(fits & (span < 0), last, span)
    found = span >= 0
    return ImpliedWaits(mine[found].astype(np.int64), span[found])


def _outside(ground: Ground, mine: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which silences lie, for the most part, outside of object activities."""
    silence, activity = ground.silence, ground.activity(ground.timeline.main_track)
    start_ns, end_ns = silence.start_ns[mine], silence.end_ns[mine]
    inside_ns = covered_before(activity, end_ns) - covered_before(activity, start_ns)
    return 2 * inside_ns < end_ns - start_ns
