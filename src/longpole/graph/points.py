"""The points of one rank: starts and ends of calls, marks on threads, starts and ends of device spans, completions.

thread  ──●call start──●call end──────●mark──…     ordered by thread, then time
device          ●start════●end                      start and end of span d stand side by side
unit                                   ●completion
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.graph.kinds import PointKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.tables import HostTable

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]

NO_POINT: Final = -1


@dataclass(frozen=True, slots=True)
class Mark:
    """Moments of threads that are no call's start or end: unit boundaries, edges of silent stretches.

    Attributes:
        time_ns: `[M]` int64 ns.
        track: `[M]` int32.
        phase: `[M]` int8: where several things happen at one instant: 1 after what ends, 2 before what starts.
        row: `[M]` int64: a host row that names the moment, -1 for none.
    """

    time_ns: Ints
    track: Places
    phase: NDArray[np.int8]
    row: Ints


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one rank, host points first, by thread and time, then device points, then completions.

    Attributes:
        time_ns: `[P]` int64 ns since the file's base; device points on the host's clock.
        kind: `[P]` uint8: members of PointKind.
        lane: `[P]` int32: the thread's track; `n_tracks +` the stream's number for device points; -1 for completions.
        row: `[P]` int64: host or device row, -1 for none; the unit's place for completions.
        n_host: Number of host points.
        call_start, call_end: `[H]` int32: points of each host row, NO_POINT where it is no point.
        mark: `[M]` int32: points of the marks, in the order given.
        device_start: `[D]` int32: start point of each device row; its end point is the next one.
        completion: `[U]` int32: completion points of the units.
    """

    time_ns: Ints
    kind: NDArray[np.uint8]
    lane: Places
    row: Ints
    n_host: int
    call_start: Places
    call_end: Places
    mark: Places
    device_start: Places
    completion: Places


def place_points(
    host: HostTable,
    calls: Ints,
    marks: Mark,
    device_ns: tuple[Ints, Ints],
    stream_lane: Places,
    completion_ns: Ints,
) -> Points:
    """Give the points of a rank their numbers.

    At one instant of a thread come first the ends, inner ones before outer ones, then marks, then the starts, outer
    ones before inner ones; an empty call ends right behind its own start.

    Args:
        host: The host table, ordered by track, start, longer first.
        calls: `[C]` host rows that become points, ascending.
        marks: Other moments of threads.
        device_ns: Starts and ends of all device rows, `[D]` int64 each, on the host's clock.
        stream_lane: `[D]` int32: lane of each device row's stream.
        completion_ns: `[U]` int64 ns: when each unit was complete.
    """
    n_calls, n_marks = len(calls), len(marks.time_ns)
    start_ns, end_ns = host.start_ns[calls], host.end_ns[calls]
    empty = end_ns == start_ns
    order = np.arange(n_calls, dtype=np.int64)
    time_ns = np.concatenate([start_ns, end_ns, marks.time_ns])
    track = np.concatenate([host.track[calls], host.track[calls], marks.track])
    phase = np.concatenate([np.full(n_calls, 3, np.int8), np.where(empty, 3, 0).astype(np.int8), marks.phase])
    # Later rows end first where several end at one instant: rows are ordered outer before inner.
    rank = np.concatenate([2 * order, np.where(empty, 2 * order + 1, -order), np.arange(n_marks)])
    sequence = np.lexsort((rank, phase, time_ns, track))
    number = np.empty(len(sequence), np.int32)
    number[sequence] = np.arange(len(sequence), dtype=np.int32)
    kinds = np.concatenate(
        [
            np.full(n_calls, PointKind.CALL_START, np.uint8),
            np.full(n_calls, PointKind.CALL_END, np.uint8),
            np.full(n_marks, PointKind.MARK, np.uint8),
        ]
    )
    rows = np.concatenate([calls, calls, marks.row])
    n_host, n_device = len(sequence), len(device_ns[0])
    pairs = np.empty(2 * n_device, np.int64)
    pairs[0::2], pairs[1::2] = device_ns
    device_kinds = np.tile(np.array([PointKind.DEVICE_START, PointKind.DEVICE_END], np.uint8), n_device)
    n_units = len(completion_ns)
    call_start, call_end = np.full(len(host), NO_POINT, np.int32), np.full(len(host), NO_POINT, np.int32)
    call_start[calls], call_end[calls] = number[:n_calls], number[n_calls : 2 * n_calls]
    return Points(
        time_ns=np.concatenate([time_ns[sequence], pairs, completion_ns]),
        kind=np.concatenate([kinds[sequence], device_kinds, np.full(n_units, PointKind.COMPLETION, np.uint8)]),
        lane=np.concatenate(
            [track[sequence].astype(np.int32), np.repeat(stream_lane, 2), np.full(n_units, -1, np.int32)]
        ).astype(np.int32),
        row=np.concatenate([rows[sequence], np.repeat(np.arange(n_device), 2), np.arange(n_units)]).astype(np.int64),
        n_host=n_host,
        call_start=call_start,
        call_end=call_end,
        mark=number[2 * n_calls :],
        device_start=(n_host + 2 * np.arange(n_device)).astype(np.int32),
        completion=(n_host + 2 * n_device + np.arange(n_units)).astype(np.int32),
    )
