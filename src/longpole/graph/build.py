"""Build the graph of one rank: points, then the edges of every rule, then constants and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.analyses.name_book import OBJECT_CODE
from longpole.analyses.pieces import RUNG_COMPUTE
from longpole.analyses.threads import NO_RECORD, REASON_CODE
from longpole.graph.constants import fit_constants, with_constants
from longpole.graph.edges import Edges
from longpole.graph.kinds import EDGES, EdgeKind, PointKind
from longpole.graph.points import Mark, place_points
from longpole.graph.rank_graph import Cover, DeviceSpans, HostSpans, RankGraph
from longpole.graph.rules import (
    blocking_call,
    coincident_start,
    completion,
    device_order,
    event_inferred,
    event_recorded,
    hand_over,
    implied_wait,
    issue,
    launch_queue,
    program_order,
)
from longpole.graph.rules.implied_wait import ImpliedWaits
from longpole.graph.sweep import circle_edges, sort_edges, topological_order
from longpole.timeline.columns import NONE_ID, Kind
from longpole.timeline.groups import opens
from longpole.vocabulary.objects import ACTIVITY_OBJECTS, IDLE_REASONS, charged_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground
    from longpole.graph.rules.blocking_call import Blocks
    from longpole.graph.rules.hand_over import HandOvers

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]


class Entries(NamedTuple):
    """Where instances of collectives are in the tables: `[I]` rows, and whether of the device table."""

    row: Ints
    on_device: NDArray[np.bool_]


class _Found(NamedTuple):
    """What the rules found before points were placed."""

    handed: HandOvers
    implied: ImpliedWaits
    blocks: Blocks
    queued: Ints
    issuing: Ints
    issued: Ints
    backend: Ints


def build_graph(ground: Ground, entries: Entries) -> RankGraph:
    """Build the graph of one rank.

    Args:
        ground: What the rules stand on.
        entries: Its collectives, in the order of the digest's instances.
    """
    found = _look(ground)
    marks = _place(ground, found)
    edges = _edges(ground, found, marks)
    points = ground.placed()
    edges = _without_circles(points.time_ns, edges)
    constants = fit_constants(points.time_ns, points.lane, edges, ground.settings)
    edges = Edges(edges.src, edges.dst, edges.kind, with_constants(edges, points.lane, constants))
    order = topological_order(points.time_ns, edges.src, edges.dst)
    edges = edges.take(sort_edges(order, edges.src))
    timeline = ground.timeline
    return RankGraph(
        rank=timeline.identity.rank,
        time_ns=points.time_ns,
        point_kind=points.kind,
        lane=points.lane,
        row=points.row,
        edges=edges,
        constants=constants,
        completion=points.completion,
        units=tuple(unit.name for unit in ground.units),
        unit_start_ns=np.array([unit.start_ns for unit in ground.units], np.int64),
        names=timeline.names,
        lane_names=_lane_names(ground),
        streams=tuple(stream for _, stream in ground.lanes),
        n_tracks=len(timeline.tracks),
        main_track=timeline.main_track,
        spans=_device_spans(ground),
        cover=_cover(ground),
        host=_host_spans(ground),
        entry=_points_of(points.device_start, points.call_start, entries),
        exit=_points_of(points.device_start + 1, points.call_end, entries),
        call_start=points.call_start,
        call_end=points.call_end,
        blocked=np.unique(np.concatenate([found.blocks.call, found.queued])),
        orphans=_orphans(ground, edges),
        late_spans=_late_spans(ground),
        shift_ns={device: clock.shift_ns for device, clock in ground.clocks.items()},
        conflict_ns={device: clock.conflict_ns for device, clock in ground.clocks.items()},
        said=ground.timeline.told.names if ground.timeline.told is not None else {},
        is_told=ground.timeline.told is not None,
    )


def _look(ground: Ground) -> _Found:
    issuing, issued = issue.find(ground)
    implied, blocks, queued = implied_wait.find(ground), blocking_call.find(ground), launch_queue.waits(ground)
    handed = hand_over.find(ground, implied.silence, np.concatenate([blocks.call, queued]))
    # What another thread did explains a silence better than a device that happened to run dry.
    alone = ~np.isin(implied.silence, handed.silence)
    return _Found(
        _not_issued(ground, handed, issued),
        ImpliedWaits(implied.silence[alone], implied.span[alone]),
        blocks,
        queued,
        issuing,
        issued,
        issue.backend_rows(ground),
    )


def _not_issued(ground: Ground, handed: HandOvers, issued: Ints) -> HandOvers:
    """Drop hand-overs to backend spans whose issuing call is known: that is what the library's thread waited for."""
    host, silence = ground.timeline.host, ground.silence
    started = {(int(host.track[row]), int(host.start_ns[row])) for row in issued.tolist()}
    places = handed.silence.tolist()
    keep = [(int(silence.track[s]), int(silence.end_ns[s])) not in started for s in places]
    rows = np.flatnonzero(np.array(keep, np.bool_))
    return handed.take(rows)


class _Marks(NamedTuple):
    """Points of the marks: beginnings and ends of silences that are waits, records handed over from, unit ends."""

    begins: Places
    ends: Places
    silence: Ints
    handed_from: Places
    unit_ends: Places


def _place(ground: Ground, found: _Found) -> _Marks:
    """Choose the moments that become points, and number them."""
    spans, timeline, silence = ground.spans, ground.timeline, ground.silence
    calls = np.unique(
        np.concatenate(
            [
                spans.launch[spans.launch != NONE_ID],
                blocking_call.candidates(ground),
                found.blocks.call,
                found.queued,
                found.issuing,
                found.backend,
            ]
        )
    )
    waits = np.unique(np.concatenate([found.handed.silence, found.implied.silence]))
    starts = _behind_calls(ground, calls)
    n_waits, n_handed = len(waits), len(found.handed.silence)
    begin_ns = silence.start_ns.copy()
    begin_ns[found.handed.silence] = found.handed.begin_ns
    marks = Mark(
        time_ns=np.concatenate([begin_ns[waits], silence.end_ns[waits], found.handed.end_ns, starts]),
        track=np.concatenate(
            [
                silence.track[waits],
                silence.track[waits],
                found.handed.track,
                np.full(len(starts), timeline.main_track, np.int32),
            ]
        ).astype(np.int32),
        phase=np.concatenate(
            [
                np.full(n_waits, 1, np.int8),
                np.full(n_waits, 2, np.int8),
                np.ones(n_handed, np.int8),
                np.full(len(starts), 2, np.int8),  # behind the end of a silence at the same instant
            ]
        ),
        row=np.full(2 * n_waits + n_handed + len(starts), -1, np.int64),
    )
    n_tracks = len(timeline.tracks)
    ground.points = place_points(
        timeline.host,
        calls,
        marks,
        (spans.start_ns, spans.end_ns),
        spans.lane + np.int32(n_tracks),
        completion.times(ground),
    )
    mark = ground.points.mark
    return _Marks(
        begins=mark[:n_waits],
        ends=mark[n_waits : 2 * n_waits],
        silence=waits,
        handed_from=mark[2 * n_waits : 2 * n_waits + n_handed],
        unit_ends=mark[2 * n_waits + n_handed + 1 :],
    )


_ROUNDING_NS: Final = 1000  # exporters write times in whole microseconds, or start and length rounded one by one


def _behind_calls(ground: Ground, calls: Ints) -> Ints:
    """Return the units' starts and the last one's end, each behind a call of the main thread that it cuts by rounding.

    A boundary a hair before the end of a call that waited would hide what the call waited for.
    """
    bounds_ns = np.array([unit.start_ns for unit in ground.units] + [ground.units[-1].end_ns], np.int64)
    host = ground.timeline.host
    mine = calls[host.track[calls] == ground.timeline.main_track]
    mine = mine[np.argsort(host.end_ns[mine], kind="stable")]
    if len(mine) == 0:
        return bounds_ns
    at = np.searchsorted(host.end_ns[mine], bounds_ns, side="right")
    next_call = mine[np.minimum(at, len(mine) - 1)]
    start_ns, end_ns = host.start_ns[next_call], host.end_ns[next_call]
    cut = (at < len(mine)) & (start_ns < bounds_ns) & (bounds_ns < end_ns) & (end_ns <= bounds_ns + _ROUNDING_NS)
    return np.where(cut, end_ns, bounds_ns)


def _edges(ground: Ground, found: _Found, marks: _Marks) -> Edges:
    points, blocks = ground.placed(), found.blocks
    end_of_silence = dict(zip(marks.silence.tolist(), marks.ends.tolist(), strict=True))
    handed_to = np.array([end_of_silence[s] for s in found.handed.silence.tolist()], np.int32)
    implied_to = np.array([end_of_silence[s] for s in found.implied.silence.tolist()], np.int32)
    backend = points.call_start[found.backend], points.call_end[found.backend]
    silent = _silences(ground, found, marks)
    device = device_order.find(ground)
    recorded = event_recorded.find(ground)
    taken = np.zeros(len(ground.spans.start_ns), np.bool_)
    taken[points.row[recorded.dst]] = True
    inferred = event_inferred.find(ground, taken)
    taken[points.row[inferred.dst]] = True
    parts = [
        program_order.find(ground, _floors(ground, found), silent, backend),
        device,
        recorded,
        inferred,
        coincident_start.find(ground, taken),
        launch_queue.find(ground),
        *_returns(ground, blocks),
        Edges.of(
            EdgeKind.HAND_OVER,
            marks.handed_from,
            handed_to,
            points.time_ns[handed_to] - points.time_ns[marks.handed_from],
        ),
        Edges.of(EdgeKind.IMPLIED_WAIT, points.device_start[found.implied.span] + 1, implied_to),
        Edges.of(
            EdgeKind.ISSUE,
            points.call_start[found.issuing],
            points.call_start[found.issued],
            issue.lags(ground, found.issuing, found.issued)[0],
        ),
    ]
    leaves = np.ones(len(taken), np.bool_)
    for part in parts:
        leaving = part.src[points.kind[part.src] == PointKind.DEVICE_END]
        leaves[points.row[leaving]] = False
    return Edges.join([*parts, completion.find(ground, marks.unit_ends, leaves)])


def _silences(ground: Ground, found: _Found, marks: _Marks) -> tuple[Places, Places]:
    """Return where silences that are waits begin and end, those of idle backend threads included."""
    points = ground.placed()
    _, busy = issue.lags(ground, found.issuing, found.issued)
    before = points.call_start[found.issued[~busy]]
    previous = before - 1
    same = (previous >= 0) & (points.lane[np.maximum(previous, 0)] == points.lane[before])
    idle = same & (points.kind[np.maximum(previous, 0)] != PointKind.CALL_START)
    return np.concatenate([marks.begins, previous[idle]]), np.concatenate([marks.ends, before[idle]])


def _floors(ground: Ground, found: _Found) -> tuple[Ints, Ints]:
    """Return the calls that waited, and what each takes by itself."""
    host, blocks = ground.timeline.host, found.blocks
    default_ns = EDGES[EdgeKind.RETURN].default_ns or 0
    floor_ns = program_order.own_floors(ground, blocks.call, blocks.idle, default_ns)
    own_ns = host.end_ns[blocks.call] - ground.spans.end_ns[blocks.span]
    floor_ns = np.where(blocks.allocates, np.maximum(own_ns, 0), floor_ns)
    queued = np.setdiff1d(found.queued, blocks.call)
    dur_ns = host.end_ns[queued] - host.start_ns[queued]
    usual_ns = _usual_launch_ns(ground)
    return np.concatenate([blocks.call, queued]), np.concatenate([floor_ns, np.minimum(dur_ns, usual_ns)])


def _usual_launch_ns(ground: Ground) -> int:
    host = ground.timeline.host
    launches = np.flatnonzero(ground.is_call("launch"))
    return int(np.median(host.end_ns[launches] - host.start_ns[launches])) if len(launches) else 0


def _returns(ground: Ground, blocks: Blocks) -> list[Edges]:
    points, host, spans = ground.placed(), ground.timeline.host, ground.spans
    result = []
    for kind, mask in (
        (EdgeKind.RETURN_RECORDED, blocks.recorded & ~blocks.allocates),
        (EdgeKind.RETURN, ~blocks.recorded & ~blocks.allocates),
        (EdgeKind.ALLOCATION, blocks.allocates),
    ):
        call, span = blocks.call[mask], blocks.span[mask]
        own_ns = np.maximum(host.end_ns[call] - spans.end_ns[span], 0)
        result.append(Edges.of(kind, points.device_start[span] + 1, points.call_end[call], own_ns))
    would = blocks.idle_span >= 0
    call, span = blocks.idle[would], blocks.idle_span[would]
    own_ns = host.end_ns[call] - spans.end_ns[span]
    result.append(Edges.of(EdgeKind.RETURN, points.device_start[span] + 1, points.call_end[call], own_ns))
    return result


def _without_circles(time_ns: Ints, edges: Edges) -> Edges:
    """Drop edges that clocks contradict and that close a circle: nothing can wait for itself."""
    backward = time_ns[edges.src] > time_ns[edges.dst]
    level = time_ns[edges.src] == time_ns[edges.dst]
    if not (backward | level).any():
        return edges
    for _ in range(_MAX_CIRCLES):
        inside = circle_edges(len(time_ns), edges.src, edges.dst)
        if len(inside) == 0:
            break
        length_ns = time_ns[edges.dst[inside]] - time_ns[edges.src[inside]]
        soft = np.isin(edges.kind[inside], _SOFT)
        worst = inside[np.where(soft, length_ns, 1 << 60).argmin()]
        # All contradicted edges of circles go at once, the one most contradicted in any case.
        bad = inside[soft & (length_ns < 0)]
        keep = np.ones(len(edges), np.bool_)
        keep[bad] = False
        keep[worst] = False
        edges = edges.take(keep)
    return edges


_MAX_CIRCLES = 1000
_SOFT = [
    int(kind)
    for kind in EdgeKind
    if kind not in (EdgeKind.SECTION, EdgeKind.FLOOR, EdgeKind.SILENT, EdgeKind.DURATION, EdgeKind.COMPLETION)
]


def _orphans(ground: Ground, edges: Edges) -> int:
    """Count points without an edge into them, but the first of each thread and spans from before the record."""
    points = ground.placed()
    without = np.ones(len(points.time_ns), np.bool_)
    without[edges.dst] = False
    host = np.arange(len(without)) < points.n_host
    first = np.ones(len(without), np.bool_)
    first[1:] = points.lane[1:] != points.lane[:-1]
    starts = points.kind == PointKind.DEVICE_START
    unlaunched = np.zeros(len(without), np.bool_)
    unlaunched[points.device_start[ground.spans.launch == NONE_ID]] = True
    # A span without a launch that nothing precedes on its stream was launched before the record began.
    first_on_stream = np.zeros(len(without), np.bool_)
    order = np.lexsort((ground.spans.start_ns, ground.spans.lane))
    first_on_stream[points.device_start[order[opens(ground.spans.lane[order])]]] = True
    excused = (host & first) | (starts & unlaunched & first_on_stream)
    return int((without & ~excused).sum())


def _late_spans(ground: Ground) -> int:
    """Count device spans that end more than a median unit after the host end of the second unit that follows theirs.

    DESIGN 3.2 counts all that end after it. A host that runs two units ahead reaches that by a little on a healthy
    record (AMD's ResNet with checkpointing, 0.39 ms of 16 ms, and its replay is 0.24 % off); see decision 0016.
    """
    ends = np.array([unit.end_ns for unit in ground.units], np.int64)
    usual_ns = int(np.median([unit.end_ns - unit.start_ns for unit in ground.units]))
    spans = ground.spans
    mine = (spans.unit >= 0) & (spans.unit + 2 < len(ends))
    return int((spans.end_ns[mine] > ends[spans.unit[mine] + 2] + usual_ns).sum())


def _points_of(device: Places, host: Places, entries: Entries) -> Places:
    result = np.full(len(entries.row), -1, np.int32)
    result[entries.on_device] = device[entries.row[entries.on_device]]
    result[~entries.on_device] = host[entries.row[~entries.on_device]]
    return result


def _device_spans(ground: Ground) -> DeviceSpans:
    device, spans, points = ground.timeline.device, ground.spans, ground.placed()
    n = len(device)
    collective, compute = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    overlapped = np.zeros(n, np.bool_)
    for row in ground.rows:
        compute[row.rows] = row.rung == RUNG_COMPUTE
        collective[row.rows] = row.object == OBJECT_CODE["collective"]
        overlapped[row.rows] = _overlapped(spans.start_ns[row.rows], spans.end_ns[row.rows])
    return DeviceSpans(
        points.device_start,
        spans.launch,
        device.name,
        spans.lane,
        spans.unit,
        spans.object,
        spans.stage,
        collective,
        compute,
        overlapped,
        device.kind == Kind.COPY,
    )


def _overlapped(start_ns: Ints, end_ns: Ints) -> NDArray[np.bool_]:
    """Return which spans run at the same time as another one: `[N]` bool."""
    begun = np.searchsorted(np.sort(start_ns), end_ns, side="left")
    ended = np.searchsorted(np.sort(end_ns), start_ns, side="right")
    return begun - ended > 1


def _cover(ground: Ground) -> Cover:
    """Put the segments of all threads together, each with what waiting for it is charged to."""
    charged = np.array([OBJECT_CODE[charged_to(reason)] for reason in IDLE_REASONS] + [OBJECT_CODE["host"]], np.int8)
    host, operators = ground.timeline.host, len(ground.timeline.device) == 0
    named = np.zeros(len(IDLE_REASONS) + 1, np.bool_)
    named[[REASON_CODE[name] for name in ACTIVITY_OBJECTS]] = True
    parts: list[tuple[NDArray[np.generic], ...]] = []
    counts = []
    for track in range(len(ground.timeline.tracks)):
        rows = ground.threads.rows_of(track)
        if rows.start == rows.stop:
            counts.append(0)
            continue
        cover = ground.threads.cover(track)
        reason = np.where(cover.reason == NO_RECORD, len(IDLE_REASONS), cover.reason)
        object_code = charged[reason]
        if operators:
            object_code = np.where(cover.operator & ~named[reason], OBJECT_CODE["compute"], object_code)
        decider = np.where(named[reason], cover.decider, cover.innermost)
        name = np.where(decider >= 0, host.name[np.maximum(decider, 0)], -1)
        parts.append((cover.start_ns, object_code.astype(np.int8), cover.stage, name.astype(np.int32), named[reason]))
        counts.append(len(reason))
    empty = [np.empty(0, dtype) for dtype in (np.int64, np.int8, np.int8, np.int32, np.bool_)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else empty
    return Cover(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), *columns)


def _host_spans(ground: Ground) -> HostSpans:
    host = ground.timeline.host
    first = np.searchsorted(host.track, np.arange(len(ground.timeline.tracks) + 1)).astype(np.int64)
    return HostSpans(host.start_ns, host.end_ns, host.name, host.track, first)


def _lane_names(ground: Ground) -> tuple[str, ...]:
    threads = [track.name or f"thread {track.tid}" for track in ground.timeline.tracks]
    several = len({device for device, _ in ground.lanes}) > 1
    streams = [f"device {d} stream {s}" if several else f"stream {s}" for d, s in ground.lanes]
    return (*threads, *streams)
