"""Event waits that nothing records: a span that starts when another stream is done, in unit after unit.

thread     ├launch A┤ ├launch B┤ ├stream wait┤ ├launch K┤
stream 13     ├── A ──┤├──── B ────┤
stream 7                           └→├─ K ─┤        lag of B: 2 µs; lag of A: longer, and another one in every unit

Grade: *inferred*, confirmed and untested apart. Evidence: the calls that make streams wait, which name neither event
nor stream. K is the first span that a thread launches on its stream after such a call; the last spans launched on
every other stream before that call are candidates for what it waited for. The same K of different units are put
together: by its stream, its full name, and which one of that name in the unit it is. A candidate, told by its stream
and its rank from the last, is accepted where K never starts before it ends, but for `coincident_before_ns`, and

- K starts within `resumes_within_ns` of its end in at least `event_confirmed_share` of the units where K is late, that
  is where neither the return of its launch nor its own stream explains its start; or, where K is late more than once,
  within `event_lag_max_share` of the time by which it is late (*confirmed*);
- or K is never late, and the candidate is the most recent one on its stream (*untested*).

The smallest median lag wins, confirmed before untested; over the units where K is late, where there are such. A wait
whose stream and event a row of synchronisation records is left to `event_recorded`; one of which it records only the
streams is looked for among those. Nodes of captured graphs other
than the first wait inside their graph, whose recorded gaps are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.graph.rules.event_recorded import device_edges
from longpole.graph.rules.stream_queues import lateness, later_nodes, search_in_groups, stream_queues
from longpole.graph.rules.sync_rows import stream_waits
from longpole.timeline.columns import NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]
    Flags: TypeAlias = NDArray[np.bool_]

_NEVER_NS: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Waiters:
    """Spans that may have waited for an event; columns `[K]`, ordered by group.

    Attributes:
        row: int64: device row.
        wait_ns: int64 ns: start of the call that made a stream wait.
        waited: int32: lane that it waited for, -1 where nothing says which.
        late_ns: int64 ns: how long after its launch and its stream it starts.
        group: int64, ascending from 0: the same span of different units.
        first: `[G]` int64: where each group begins.
    """

    row: Ints
    wait_ns: Ints
    waited: Places
    late_ns: Ints
    group: Ints
    first: Ints


@dataclass(slots=True)
class _Best:
    """The best candidate of each waiter so far; columns `[K]`."""

    source: Ints
    is_confirmed: Flags
    lag_ns: Ints


def find(ground: Ground, taken: Flags) -> Edges:
    """Return the edges of waits that are inferred.

    Args:
        ground: The rank.
        taken: `[D]` bool: spans whose wait is recorded.
    """
    waiters, best = find_rows(ground, taken)
    found = np.flatnonzero(best.source >= 0)
    sure, rest = found[best.is_confirmed[found]], found[~best.is_confirmed[found]]
    return Edges.join(
        [
            device_edges(ground, EdgeKind.EVENT_CONFIRMED, best.source[sure], waiters.row[sure]),
            device_edges(ground, EdgeKind.EVENT_UNTESTED, best.source[rest], waiters.row[rest]),
        ]
    )


def find_rows(ground: Ground, taken: Flags) -> tuple[Waiters, _Best]:
    """Return the spans that may have waited, and what for: `source` is a device row, -1 for none."""
    spans, settings = ground.spans, ground.settings
    waiters = find_waiters(ground, taken)
    n = len(waiters.row)
    best = _Best(np.full(n, -1, np.int64), np.zeros(n, np.bool_), np.full(n, _NEVER_NS))
    if n == 0:
        return waiters, best
    queues = stream_queues(spans, len(ground.lanes))
    own = spans.lane[waiters.row]
    device = np.array([device for device, _ in ground.lanes])
    for lane in range(len(ground.lanes)):
        elsewhere = (own != lane) & (device[own] == device[lane]) & ((waiters.waited < 0) | (waiters.waited == lane))
        last = queues.launched_before(np.full(n, lane, np.int32), waiters.wait_ns)
        for rank in range(settings.event_candidates):
            place = last - 1 - rank
            exists = elsewhere & (place >= queues.first[lane])
            if not exists.any():
                break
            _try(ground, waiters, best, np.where(exists, queues.row[place], -1), is_latest=rank == 0)
    return waiters, best


def _try(ground: Ground, waiters: Waiters, best: _Best, source: Ints, *, is_latest: bool) -> None:
    """Accept one candidate of every group, or not, and keep it where it is the best so far."""
    spans, group = ground.spans, waiters.group
    exists = source >= 0
    lag_ns = spans.start_ns[waiters.row] - spans.end_ns[source]
    possible = lag_ns >= -ground.settings.coincident_before_ns
    # Edges that are a little backward in time must not close a circle: starts ascend along all of them.
    possible &= spans.start_ns[source] < spans.start_ns[waiters.row]
    tested = exists & (waiters.late_ns > ground.settings.late_start_ns)
    confirmed = _confirmed(ground, waiters, tested, lag_ns)
    untested = is_latest & ~np.logical_or.reduceat(tested, waiters.first)
    accepted = (confirmed | untested) & ~np.logical_or.reduceat(exists & ~possible, waiters.first)
    confirmed &= accepted
    # Of a confirmed group only the instances that tell something set the lag.
    counted = np.flatnonzero(np.where(confirmed[group], tested, exists & accepted[group]))
    median_ns = np.abs(_medians(len(confirmed), group[counted], lag_ns[counted]))[group]
    better = (confirmed[group] == best.is_confirmed) & (median_ns < best.lag_ns)
    better |= confirmed[group] & ~best.is_confirmed
    better &= exists & accepted[group]
    best.source[better] = source[better]
    best.is_confirmed[better] = confirmed[group][better]
    best.lag_ns[better] = median_ns[better]


def _confirmed(ground: Ground, waiters: Waiters, tested: Flags, lag_ns: Ints) -> Flags:
    """Return `[G]` bool: groups whose late instances, in sufficient number, start soon after the candidate's end."""
    settings, first = ground.settings, waiters.first
    n_tested = np.add.reduceat(tested, first, dtype=np.int64)
    enough = settings.event_confirmed_share * n_tested
    soon = tested & (lag_ns <= settings.resumes_within_ns)
    # What is late by milliseconds may well wait for room on the device after the event, if it does so repeatedly.
    nearly = tested & (lag_ns <= np.maximum(settings.resumes_within_ns, settings.event_lag_max_share * waiters.late_ns))
    by_soon = np.add.reduceat(soon, first, dtype=np.int64) >= enough
    by_share = (n_tested > 1) & (np.add.reduceat(nearly, first, dtype=np.int64) >= enough)
    return (n_tested > 0) & (by_soon | by_share)


def _medians(n_groups: int, group: Ints, value: Ints) -> Ints:
    """Return `[G]` int64: the lower median of each group's values."""
    order = np.lexsort((value, group))
    bounds = np.searchsorted(group[order], np.arange(n_groups + 1))
    count = np.diff(bounds)
    median = np.full(n_groups, _NEVER_NS)
    has = count > 0
    median[has] = value[order[bounds[:-1][has] + (count[has] - 1) // 2]]
    return median


def find_waiters(ground: Ground, taken: Flags) -> Waiters:
    """Return the spans that may have waited for an event."""
    row, wait_ns, waited = _first_after_waits(ground)
    kept = ~taken[row] & ~later_nodes(ground.spans)[row]
    row, wait_ns, waited = row[kept], wait_ns[kept], waited[kept]
    group = _groups(ground, row)
    order = np.argsort(group, kind="stable")
    row, wait_ns, waited, group = row[order], wait_ns[order], waited[order], group[order]
    first = np.flatnonzero(np.diff(group, prepend=-1)).astype(np.int64)
    return Waiters(row, wait_ns, waited, lateness(ground)[row], group, first)


def _first_after_waits(ground: Ground) -> tuple[Ints, Ints, Places]:
    """Return the spans that come first on their thread and stream after a stream's wait, when that was called, on what.

    What is waited for is a lane, -1 where nothing says which.
    """
    spans, host = ground.spans, ground.timeline.host
    call, waiting, waited = _waits(ground)
    linked = np.flatnonzero(spans.launch != NONE_ID)
    if len(call) == 0 or len(linked) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    # Calls are searched by thread, and by stream where it is known for whom they were made.
    n_lanes, by_stream = len(ground.lanes), waiting[0] >= 0
    call_group = host.track[call].astype(np.int64) * n_lanes + (waiting if by_stream else 0)
    order = np.lexsort((host.start_ns[call], call_group))
    call, waited, call_group = call[order], waited[order], call_group[order]
    first = np.searchsorted(call_group, np.arange(len(ground.timeline.tracks) * n_lanes + 1)).astype(np.int64)
    track = host.track[spans.launch[linked]].astype(np.int64)
    order = np.lexsort((spans.start_ns[linked], spans.launch_ns[linked], spans.lane[linked], track))
    row, track = linked[order].astype(np.int64), track[order]
    group = track * n_lanes + (spans.lane[row] if by_stream else 0)
    before = search_in_groups(first, host.start_ns[call], group, spans.launch_ns[row])
    same = np.zeros(len(row), np.bool_)
    same[1:] = (track[1:] == track[:-1]) & (spans.lane[row[1:]] == spans.lane[row[:-1]])
    previous = np.where(same, np.roll(before, 1), first[group])
    found = before > previous
    last = before[found] - 1
    return row[found], host.start_ns[call[last]], waited[last]


def _waits(ground: Ground) -> tuple[Ints, Places, Places]:
    """Return the calls of waits that no row records in full, and the lanes that wait and are waited for, -1 for any.

    Where there are rows at all, every call that matters has one: Kineto leaves out those for streams on which nothing
    ran. A row without a record still names both streams.
    """
    recorded = stream_waits(ground)
    if len(recorded.call) == 0:
        call = np.flatnonzero(ground.is_call("stream_wait")).astype(np.int64)
        unknown = np.full(len(call), -1, np.int32)
        return call, unknown, unknown
    n_lanes = len(ground.lanes)
    partly = (recorded.call != NONE_ID) & ~recorded.has_record
    partly &= (recorded.waiting < n_lanes) & (recorded.waited < n_lanes)
    return recorded.call[partly], recorded.waiting[partly], recorded.waited[partly]


def _groups(ground: Ground, row: Ints) -> Ints:
    """Give the spans numbers so that the same one of different units has the same number: `[K]` int64, from 0."""
    if len(row) == 0:
        return np.empty(0, np.int64)
    spans = ground.spans
    kind = spans.lane[row].astype(np.int64) * len(ground.timeline.names) + ground.timeline.device.name[row]
    # What follows the last unit is no more a part of what precedes the first than of any unit.
    unit = np.where(spans.launch_ns[row] >= ground.units[-1].end_ns, len(ground.units), spans.unit[row])
    order = np.lexsort((spans.start_ns[row], spans.launch_ns[row], unit, kind))
    opens = np.append(True, (kind[order][1:] != kind[order][:-1]) | (unit[order][1:] != unit[order][:-1]))
    begins = np.flatnonzero(opens)
    ordinal = np.empty(len(row), np.int64)
    ordinal[order] = np.arange(len(row)) - np.repeat(begins, np.diff(begins, append=len(row)))
    _, number = np.unique(kind, return_inverse=True)
    return np.unique(number.reshape(-1) * (int(ordinal.max()) + 1) + ordinal, return_inverse=True)[1].reshape(-1)
