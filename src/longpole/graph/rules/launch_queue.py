"""Launches, copies and memsets that waited for room in the device's queue.

thread    ├launch┤├launch┤ … ├────── launch ──────┤├launch┤      1,022 spans are outstanding at its return
stream 7     ├── A ──┤├── B ──┤├──── C ────┤└→                   C's end made room

Grade: *inferred*. Evidence: how long launches take, and how many spans were launched and not ended at their return.
A queue that is full holds the same number every time: a launch waits for room where it is longer than `queue_min_ns`
and `queue_factor` median launches, and the number outstanding at its return lies within `queue_depth_share` of that
number's median over such launches, which must exceed `queue_min_depth`. It waited for the latest end before its
return, which must lie inside the call. Copies and memsets take places in the same queue: they wait for room where as
many are outstanding as at the launches that wait, unless they last as long as what they launched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.graph.edges import Edges
from longpole.graph.kinds import EdgeKind
from longpole.timeline.columns import NONE_ID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]


def find(ground: Ground) -> Edges:
    """Return the edges from the span that made room to the return of the call that waited for it."""
    source, call = find_rows(ground)
    points = ground.placed()
    return Edges.of(EdgeKind.LAUNCH_QUEUE, points.device_start[source] + 1, points.call_end[call])


def waits(ground: Ground) -> Ints:
    """Return `[E]` int64, ascending: host rows of calls that waited for room."""
    return find_rows(ground)[1]


def find_rows(ground: Ground) -> tuple[Ints, Ints]:
    """Return device rows of the spans that made room, and host rows of the calls that waited, `[E]` int64."""
    sources, calls = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    device = ground.timeline.device.device
    for number in np.unique(device).tolist():
        rows = np.flatnonzero((device == number) & (ground.spans.launch != NONE_ID))
        source, call = _on_device(ground, rows)
        sources.append(source)
        calls.append(call)
    source, call = np.concatenate(sources), np.concatenate(calls)
    order = np.argsort(call, kind="stable")
    return source[order], call[order]


def _on_device(ground: Ground, rows: NDArray[np.intp]) -> tuple[Ints, Ints]:
    spans, host, settings = ground.spans, ground.timeline.host, ground.settings
    none = np.empty(0, np.int64)
    call = np.unique(spans.launch[rows])
    is_launch = ground.is_call("launch")[call]
    if not is_launch.any():
        return none, none
    dur_ns = host.end_ns[call] - host.start_ns[call]
    slow = dur_ns > max(settings.queue_min_ns, settings.queue_factor * float(np.median(dur_ns[is_launch])))
    slow &= is_launch | _may_wait(ground, rows, call)
    call, is_launch = call[slow], is_launch[slow]
    by_end = rows[np.argsort(spans.end_ns[rows], kind="stable")]
    ended = np.searchsorted(spans.end_ns[by_end], host.end_ns[call], side="right")
    outstanding = np.searchsorted(np.sort(spans.launch_ns[rows]), host.end_ns[call], side="right") - ended
    usual = float(np.median(outstanding[is_launch])) if is_launch.any() else 0.0
    if usual <= settings.queue_min_depth:
        return none, none
    full = (np.abs(outstanding - usual) <= settings.queue_depth_share * usual) & (ended > 0)
    source = by_end[ended - 1]
    full &= spans.end_ns[source] > host.start_ns[call]
    return source[full].astype(np.int64), call[full].astype(np.int64)


def _may_wait(ground: Ground, rows: NDArray[np.intp], call: Ints) -> NDArray[np.bool_]:
    """Tell which calls are copies or memsets that return before what they launched ends.

    Others of them wait for that end, or for a copy of pageable memory, and not for room.
    """
    spans, host = ground.spans, ground.timeline.host
    mine = np.searchsorted(call, spans.launch[rows])
    ends_ns = np.full(len(call), np.iinfo(np.int64).max)
    np.minimum.at(ends_ns, mine, spans.end_ns[rows])
    return ground.is_call("copy", "memset")[call] & (ends_ns > host.end_ns[call] + ground.tolerance_ns)
