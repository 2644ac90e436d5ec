"""Which calls waited for the device, and for which span (DESIGN 3.6, blocking call).

host     ├──────── cudaStreamSynchronize ────────┤
device      ├─ a ─┤├──────── b ────────┤             launched before the call
edge                                   └────────►     b's end → the call's return

`*Synchronize`: the span that ends last of those launched before the call and ending no later than its return, on the
stream that a synchronisation row names (recorded), else on any (ordered). A copy whose call outlasts it blocks on that
copy, whatever the call's name. Allocation and release: the last span that ends inside the call (inferred).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.rules.sync_rows import synced_calls
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.groups import closes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Calls that waited for the device; columns `[B]`, ordered by call, no call inside another one.

    Attributes:
        call: int64: host rows.
        span: int64: device rows whose end each call waited for.
        recorded: bool: a synchronisation row says what was waited for.
        allocates: bool: the call allocates or releases; what follows the wait is its own work.
        idle: `[I]` int64: host rows of calls that could have waited and did not.
        idle_span: `[I]` int64: what each of those would have waited for, had it taken longer; -1 where not known.
    """

    call: Ints
    span: Ints
    recorded: NDArray[np.bool_]
    allocates: NDArray[np.bool_]
    idle: Ints
    idle_span: Ints


def candidates(ground: Ground) -> Ints:
    """Return the host rows of all calls that may wait, ascending."""
    host, settings = ground.timeline.host, ground.settings
    long = host.end_ns - host.start_ns > settings.allocation_min_ns
    chosen = ground.is_call("sync") | (ground.is_call("alloc", "free") & long)
    return np.flatnonzero(chosen).astype(np.int64)


def find(ground: Ground) -> Blocks:
    """Find the calls that waited for the device, and what for."""
    call = candidates(ground)
    lane = np.full(len(call), -1, np.int32)
    before_ns = ground.timeline.host.start_ns[call]
    synced = synced_calls(ground)
    recorded = np.isin(call, synced.call)
    place = np.searchsorted(synced.call, call[recorded])
    lane[recorded], before_ns[recorded] = synced.lane[place], synced.before_ns[place]
    span = _last_ended(ground, call, lane, before_ns)
    allocates = ground.is_call("alloc", "free")[call]
    copies, copied = _blocking_copies(ground)
    call = np.concatenate([call, copies])
    span = np.concatenate([span, copied])
    recorded = np.concatenate([recorded & ~allocates, np.ones(len(copies), np.bool_)])
    allocates = np.concatenate([allocates, np.zeros(len(copies), np.bool_)])
    keep = _outermost(ground, call)
    call, span, recorded, allocates = call[keep], span[keep], recorded[keep], allocates[keep]
    waited = span >= 0
    idle = call[~waited & ~allocates]
    return Blocks(call[waited], span[waited], recorded[waited], allocates[waited], idle, _would_wait_for(ground, idle))


def _would_wait_for(ground: Ground, idle: Ints) -> Ints:
    """Return, for calls that did not wait, the span that ended last before them; -1 for waits for an event.

    On the record that changes nothing. Once the host is faster or the device slower, the call does wait: without it, a
    what-if would let the host run ahead through a synchronisation. Only spans that ended clearly before the call, so
    that no constant moves the unchanged replay.
    """
    host, spans = ground.timeline.host, ground.spans
    found = np.full(len(idle), -1, np.int64)
    if len(idle) == 0 or len(spans.start_ns) == 0:
        return found
    names = [ground.timeline.names[int(code)].lower() for code in host.name[idle].tolist()]
    whole = np.array(["event" not in name for name in names], np.bool_)
    order = np.argsort(spans.end_ns, kind="stable")
    at = np.searchsorted(spans.end_ns[order], host.start_ns[idle] - ground.settings.clean_margin_ns, side="right") - 1
    mine = whole & (at >= 0)
    found[mine] = order[at[mine]]
    late = found >= 0
    late[late] &= _earliest_launch_ns(ground)[found[late]] < host.start_ns[idle[late]]
    return np.where(late, found, -1)


def _last_ended(ground: Ground, call: Ints, lane: NDArray[np.int32], before_ns: Ints) -> Ints:
    """Return, for each call, the span launched before a moment that ends last within it, -1 where none does."""
    host, spans = ground.timeline.host, ground.spans
    found = np.full(len(call), -1, np.int64)
    earliest_ns = _earliest_launch_ns(ground)
    for code in np.unique(lane).tolist():
        rows = np.flatnonzero(spans.lane == code) if code >= 0 else np.arange(len(spans.start_ns))
        rows = rows[np.argsort(spans.end_ns[rows], kind="stable")]
        ends_ns, launch_ns = spans.end_ns[rows], earliest_ns[rows]
        mine = np.flatnonzero(lane == code)
        start_ns, until_ns = host.start_ns[call[mine]], host.end_ns[call[mine]] + ground.tolerance_ns
        place = np.searchsorted(ends_ns, until_ns, side="right") - 1
        moments = zip(mine.tolist(), place.tolist(), start_ns.tolist(), before_ns[mine].tolist(), strict=True)
        for k, last, begun, asked in moments:
            at = last
            while at >= 0 and ends_ns[at] > begun and launch_ns[at] >= asked:
                at -= 1
            if at >= 0 and ends_ns[at] > begun:
                found[k] = rows[at]
    return found


def _earliest_launch_ns(ground: Ground) -> Ints:
    """Return when each span was launched at the earliest: one without a launch, with the one before it on its stream.

    A stream runs in the order of its launches, so a call that waits for the one may wait for the other too (case B044).
    """
    spans = ground.spans
    known_ns = np.where(spans.launch == NONE_ID, _LONG_AGO_NS, spans.launch_ns)
    if (known_ns == spans.launch_ns).all():
        return spans.launch_ns
    order = np.lexsort((spans.start_ns, spans.lane))
    earliest_ns = spans.launch_ns.copy()
    for rows in np.split(order, np.flatnonzero(np.diff(spans.lane[order])) + 1):
        unlinked = spans.launch[rows] == NONE_ID
        earliest_ns[rows[unlinked]] = np.maximum.accumulate(known_ns[rows])[unlinked]
    return earliest_ns


_LONG_AGO_NS = -(1 << 62)


def _blocking_copies(ground: Ground) -> tuple[Ints, Ints]:
    """Return copies' calls that outlast their copies, and those copies."""
    host, spans, settings = ground.timeline.host, ground.spans, ground.settings
    copies = np.flatnonzero((ground.timeline.device.kind == Kind.COPY) & (spans.launch != NONE_ID) & ~spans.in_graph)
    call = spans.launch[copies]
    long = host.end_ns[call] - host.start_ns[call] > settings.blocking_copy_min_ns
    late = host.end_ns[call] + ground.tolerance_ns >= spans.end_ns[copies]
    # A call that ends long before its copy does not wait, whatever the tolerance.
    chosen = long & late & (spans.end_ns[copies] > host.start_ns[call])
    call, copies = call[chosen], copies[chosen]
    order = np.lexsort((spans.end_ns[copies], call))
    last = closes(call[order])
    return call[order][last], copies[order][last].astype(np.int64)


def _outermost(ground: Ground, call: Ints) -> NDArray[np.intp]:
    """Return the places of calls that lie in no other one of them, ordered by host row."""
    host = ground.timeline.host
    order = np.argsort(call, kind="stable")
    keep = []
    reach_ns, track = -(1 << 62), -1
    for place in order.tolist():
        row = int(call[place])
        if host.track[row] != track:
            reach_ns, track = -(1 << 62), int(host.track[row])
        if host.start_ns[row] >= reach_ns or host.end_ns[row] > reach_ns:
            keep.append(place)
            reach_ns = int(host.end_ns[row])
    return np.array(keep, np.intp)
