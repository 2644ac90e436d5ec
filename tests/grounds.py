"""What the edge rules stand on, laid from a script or a timeline; every runtime call is a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longpole.analyses.name_book import NameBook
from longpole.analyses.one_offs import setup_rows
from longpole.analyses.rungs import device_row
from longpole.analyses.threads import Threads
from longpole.graph.ground import lay_ground
from longpole.graph.kinds import PointKind
from longpole.graph.points import Mark, place_points
from longpole.settings import Settings
from longpole.timeline.boundaries import find_units, marker_rows
from longpole.timeline.columns import NONE_ID, Kind, SyncKind
from longpole.timeline.tables import SyncTable
from longpole.timeline.timeline import find_main_track
from tests.build import VOCABULARY

if TYPE_CHECKING:
    from longpole.graph.edges import Edges
    from longpole.graph.ground import Ground
    from longpole.timeline.timeline import Timeline
    from tests.build import HostSpan, Script

NO_MARKS = Mark(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Sync:
    """A row of synchronisation: `call` waited, or made `stream` wait, for the event that `record` put on a stream."""

    kind: SyncKind
    call: HostSpan
    stream: int = NONE_ID
    waited_stream: int = NONE_ID
    record: HostSpan | None = None
    device: int = 0


def with_syncs(script: Script, *rows: Sync) -> Timeline:
    """Return the script's timeline with rows of synchronisation; their calls get correlations from 901 on."""
    calls = [call for row in rows for call in (row.call, row.record) if call is not None]
    for number, call in enumerate(calls, 901):
        call.correlation = number if call.correlation == NONE_ID else call.correlation
    records = [row.record.correlation if row.record is not None else NONE_ID for row in rows]
    table = SyncTable(
        start_ns=np.array([row.call.start_ns for row in rows], np.int64),
        end_ns=np.array([row.call.end_ns for row in rows], np.int64),
        kind=np.array([row.kind for row in rows], np.uint8),
        device=np.array([row.device for row in rows], np.int32),
        stream=np.array([row.stream for row in rows], np.int64),
        waited_stream=np.array([row.waited_stream for row in rows], np.int64),
        correlation=np.array([row.call.correlation for row in rows], np.int64),
        record=np.array(records, np.int64),
        event=np.arange(len(rows), dtype=np.uint32),
    )
    return replace(script.timeline(), syncs=table)


def lay(timeline: Timeline, settings: Settings | None = None) -> Ground:
    """Lay the ground of a timeline and place its points."""
    settings = settings or Settings()
    units = find_units(timeline, VOCABULARY, None)
    timeline = replace(timeline, main_track=find_main_track(timeline.host, timeline.tracks, marker_rows(units)))
    book = NameBook(timeline, VOCABULARY)
    threads = Threads(timeline, book, setup_rows(timeline, book, settings))
    rows = [device_row(timeline, book, threads, device, settings) for device in timeline.devices()]
    ground = lay_ground(timeline, book, threads, units, rows, settings)
    calls = np.flatnonzero(timeline.host.kind == Kind.RUNTIME).astype(np.int64)
    device_ns = (ground.spans.start_ns, ground.spans.end_ns)
    ground.points = place_points(
        timeline.host, calls, NO_MARKS, device_ns, ground.spans.lane + len(timeline.tracks), np.empty(0, np.int64)
    )
    return ground


def lines(ground: Ground, edges: Edges) -> list[tuple[str, str]]:
    """Return edges as (what is waited for, what waits), each as its name and, of a call, its start in µs."""
    return sorted(in_order(ground, edges))


def in_order(ground: Ground, edges: Edges) -> list[tuple[str, str]]:
    """Return what `lines` returns, in the order of the edges."""
    return [(_name(ground, u), _name(ground, v)) for u, v in zip(edges.src, edges.dst, strict=True)]


def _name(ground: Ground, point: int) -> str:
    points, timeline = ground.points, ground.timeline
    assert points is not None
    row, kind = int(points.row[point]), PointKind(int(points.kind[point]))
    if kind in (PointKind.DEVICE_START, PointKind.DEVICE_END):
        return timeline.names[timeline.device.name[row]]
    return f"{timeline.names[timeline.host.name[row]]} {timeline.host.start_ns[row] // 1000}"
