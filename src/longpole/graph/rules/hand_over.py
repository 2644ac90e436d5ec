"""A thread that is silent while another one works waits for that other one (DESIGN 3.6, hand-over).

main        ├─ forward ─┤ ······ silent ······ ├─ optimizer
backward                  ├── evaluate … ──┤
edge                                       └──►           grade: inferred

Evidence: operators or runtime calls of both threads; no arrow is needed. Works in both directions, between main
thread, autograd threads and the threads of a communication library.

A thread that launches for the main one does nothing by itself: its silences are waits for the main thread whatever that
did meanwhile, records or none, and end when the main thread gets to it. So what the main thread spends before, in a
loader or a pause without record, stays the main thread's own time (docs/decisions/0022).

main        ├ optimizer ┤ pause ├ forward ┤ python ┊·· waits ··├
backward  ┤ ············ driven by main ·········· ├─ evaluate ─┤
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from longpole.analyses.name_book import STAGE_CODE
from longpole.timeline.columns import NONE_ID
from longpole.timeline.intervals import Intervals, covered_before, union

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
        end_ns: int64 ns: end of its last record before the silent thread resumed; when it resumed, where it is driven.
        begin_ns: int64 ns: when the silent thread began to wait.
    """

    silence: Ints
    track: NDArray[np.int32]
    end_ns: Ints
    begin_ns: Ints

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return some of them."""
        return type(self)(self.silence[rows], self.track[rows], self.end_ns[rows], self.begin_ns[rows])


def find(ground: Ground, implied: Ints, calls: Ints) -> HandOvers:
    """Find the silences in which another thread worked for at least half of the time and ended before their end.

    Of a thread that the main one drives, the time counts from where it resumes: what froze the main thread before, such
    as a lock that a third thread held, is no part of that wait.

    Args:
        ground: The rank.
        implied: Silences that are waits for a device, unless another thread explains them.
        calls: Host rows of calls that waited for a device.
    """
    silence, settings = ground.silence, ground.settings
    n = len(silence.start_ns)
    latest_ns = np.full(n, -(1 << 62), np.int64)
    waited_for = np.full(n, -1, np.int32)
    begin_ns = silence.start_ns.copy()
    free, launching = _outside_activities(ground), _launching(ground)
    for track, records in ground.records.items():
        since_ns = _resumed(ground, records) if track in launching else silence.start_ns
        covered_ns = covered_before(records, silence.end_ns) - covered_before(records, since_ns)
        needed_ns = settings.silence_covered_share * (silence.end_ns - since_ns)
        last = np.searchsorted(records.end_ns, silence.end_ns, side="right") - 1
        end_ns = np.where(last >= 0, records.end_ns[np.maximum(last, 0)], -(1 << 62))
        fits = free & (silence.track != track) & (covered_ns >= needed_ns) & (end_ns > silence.start_ns)
        better = fits & (end_ns > latest_ns)
        latest_ns[better], waited_for[better], begin_ns[better] = end_ns[better], track, since_ns[better]
    _drive(ground, _waiting(ground, implied, calls, waited_for, begin_ns), waited_for, latest_ns)
    found = np.flatnonzero(waited_for >= 0)
    return HandOvers(found.astype(np.int64), waited_for[found], latest_ns[found], begin_ns[found])


def _launching(ground: Ground) -> list[int]:
    """Return the threads other than the main one that launch device work and run backward."""
    launch, timeline = ground.spans.launch, ground.timeline
    tracks = np.unique(timeline.host.track[launch[launch != NONE_ID]])
    named = ground.book.stage[timeline.host.name] == STAGE_CODE["backward"]
    backward = np.union1d(timeline.host.track[timeline.backward], timeline.host.track[named])
    return [track for track in np.intersect1d(tracks, backward).tolist() if track != timeline.main_track]


def _resumed(ground: Ground, records: Intervals) -> Ints:
    """Return when each silence of the main thread became a wait for a thread that it drives.

    It is the main thread's own time, or another thread's, until that thread resumes; silences of other threads, and
    those in which it works from the beginning, are waits from their start.
    """
    silence = ground.silence
    start_ns = silence.start_ns
    if len(records.start_ns) == 0:
        return start_ns
    active = covered_before(records, start_ns + 1) > covered_before(records, start_ns)
    at = np.searchsorted(records.start_ns, start_ns, side="left")
    next_ns = records.start_ns[np.minimum(at, len(records.start_ns) - 1)]
    own = (silence.track == ground.timeline.main_track) & ~active & (at < len(records.start_ns))
    return np.where(own & (next_ns < silence.end_ns), next_ns, start_ns)


def _waiting(ground: Ground, implied: Ints, calls: Ints, waited_for: NDArray[np.int32], begin_ns: Ints) -> Intervals:
    """Return when the main thread waited: for another thread, or for a device in silence or in a call."""
    silence, host, main = ground.silence, ground.timeline.host, ground.timeline.main_track
    handed = np.flatnonzero((silence.track == main) & (waited_for >= 0))
    alone = implied[waited_for[implied] < 0]
    mine = calls[host.track[calls] == main]
    return union(
        np.concatenate([begin_ns[handed], silence.start_ns[alone], host.start_ns[mine]]),
        np.concatenate([silence.end_ns[handed], silence.end_ns[alone], host.end_ns[mine]]),
    )


def _drive(ground: Ground, waiting: Intervals, waited_for: NDArray[np.int32], latest_ns: Ints) -> None:
    """Let silences of threads that launch for the main one be waits for it, in place.

    Where the main thread waits for something itself just then, nothing says that it drives.
    """
    silence, main = ground.silence, ground.timeline.main_track
    if main < 0:
        return
    launching = _launching(ground)
    for track in launching:
        # A busy thread of other business, such as one that pins memory, drives nothing.
        mine = np.flatnonzero(~np.isin(waited_for, launching) & (silence.track == track))
        at_ns = silence.end_ns[mine]
        driven = mine[covered_before(waiting, at_ns) == covered_before(waiting, at_ns - 1)]
        waited_for[driven], latest_ns[driven] = main, silence.end_ns[driven]


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
