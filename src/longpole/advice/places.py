"""Where a person should look: the longest stretch, a call, a device span; as evidence points at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.records.findings import Place

if TYPE_CHECKING:
    from longpole.advice.scene import RankView
    from longpole.timeline.intervals import Intervals


def longest(view: RankView, time: Intervals, track: int | None = None) -> Place:
    """Return the longest stretch of some time of a thread (the main one), with the longest span inside it."""
    track = view.main if track is None else track
    if len(time.start_ns) == 0 or track < 0:
        return Place(view.rank)
    at = int((time.end_ns - time.start_ns).argmax())
    start_ns, end_ns = int(time.start_ns[at]), int(time.end_ns[at])
    host = view.graph.host
    low, high = int(host.first[track]), int(host.first[track + 1])
    inside = low + np.flatnonzero((host.start_ns[low:high] >= start_ns) & (host.end_ns[low:high] <= end_ns))
    name = ""
    if len(inside):
        row = inside[np.argmax(host.end_ns[inside] - host.start_ns[inside])]
        name = view.graph.names[int(host.name[row])]
    return Place(view.rank, name, view.on_run(start_ns), view.graph.lane_names[track], unit_at(view, start_ns))


def call(view: RankView, row: int) -> Place:
    """Return a host row."""
    host = view.graph.host
    start_ns = int(host.start_ns[row])
    name, thread = view.graph.names[int(host.name[row])], view.graph.lane_names[int(host.track[row])]
    return Place(view.rank, name, view.on_run(start_ns), thread, unit_at(view, start_ns))


def span(view: RankView, row: int) -> Place:
    """Return a device row."""
    spans = view.graph.spans
    start_ns = int(view.device_start_ns[row])
    stream = view.graph.lane_names[view.graph.n_tracks + int(spans.lane[row])]
    name = view.graph.names[int(spans.name[row])]
    return Place(view.rank, name, view.on_run(start_ns), stream, unit_at(view, start_ns))


def unit_at(view: RankView, time_ns: int) -> str:
    """Return the name of the unit in which a moment of a rank lies, empty for none."""
    place = int(view.unit_of(np.array([time_ns], np.int64))[0]) if len(view.graph.units) else -1
    return view.graph.units[place] if place >= 0 else ""
