"""What rows of synchronisation say: which call waited, for which stream, up to which launch.

call               ├─ cudaEventSynchronize ─┤     correlation 9
row of sync        ├─ Event Sync, 9, waits for record 5 on stream 13 ─┤
call  ├ cudaEventRecord ┤                         correlation 5: only what was launched before it is waited for

Grade: *recorded*. Kineto writes such rows only where the profiler's synchronisation events were switched on. It keeps
for each event only the last record it saw, so that an old trace may name a record that came after the wait: such a
row is not believed. A row whose event was recorded before the recording began names no record (-1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.timeline.columns import NONE_ID, Kind, SyncKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.ground import Ground

    Ints: TypeAlias = NDArray[np.int64]
    Places: TypeAlias = NDArray[np.int32]

ALL_LANES: Final = -1


@dataclass(frozen=True, slots=True)
class SyncedCalls:
    """Calls that waited for the device, and what for; columns `[C]`, ordered by host row.

    Attributes:
        call: int64: host row.
        lane: int32: the (device, stream) waited for, ALL_LANES, or the number of lanes for a stream without spans.
        before_ns: int64 ns: spans launched before this moment are waited for.
    """

    call: Ints
    lane: Places
    before_ns: Ints


@dataclass(frozen=True, slots=True)
class StreamWaits:
    """Calls that made a stream wait for an event, as far as rows of synchronisation say so; columns `[W]`.

    Attributes:
        call: int64: host row of the call, -1 where it was not recorded.
        wait_ns: int64 ns: when it was made.
        waiting: int32: lane of the stream that waits; the number of lanes for a stream without spans.
        waited: int32: lane on which the event was recorded; the number of lanes where unknown or without spans.
        record_ns: int64 ns: when the event was recorded; the call's own time where no record is named.
        has_record: bool: the row names the record, the record is in the trace, and it came before the wait.
    """

    call: Ints
    wait_ns: Ints
    waiting: Places
    waited: Places
    record_ns: Ints
    has_record: NDArray[np.bool_]


def synced_lanes(ground: Ground) -> tuple[Ints, Places]:
    """Return host rows of calls that waited, and the lane that each waited for; see SyncedCalls."""
    calls = synced_calls(ground)
    return calls.call, calls.lane


def synced_calls(ground: Ground) -> SyncedCalls:
    """Return the calls of Stream, Event and Context Sync rows; event waits whose stream is not known are left out."""
    syncs = ground.timeline.syncs
    call, record = _calls(ground, syncs.correlation), _calls(ground, syncs.record)
    is_event, for_all = syncs.kind == SyncKind.EVENT, syncs.kind == SyncKind.CONTEXT
    stream = np.where(is_event, syncs.waited_stream, syncs.stream)
    lane = np.where(for_all, ALL_LANES, _lane_of(ground, syncs.device, stream)).astype(np.int32)
    start_ns = np.append(ground.timeline.host.start_ns, 0)  # so that there is a place to read where no call was found
    named = is_event & (record != NONE_ID)
    before_ns = np.where(named, start_ns[record], start_ns[call])
    kept = (is_event | for_all | (syncs.kind == SyncKind.STREAM)) & (call != NONE_ID)
    kept &= (for_all | (stream != NONE_ID)) & (before_ns <= start_ns[call])
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(call[rows], kind="stable")]
    rows = rows[np.append(call[rows[1:]] != call[rows[:-1]], True)] if len(rows) else rows
    return SyncedCalls(call[rows], lane[rows], before_ns[rows])


def stream_waits(ground: Ground) -> StreamWaits:
    """Return what Stream Wait Event rows say, in order of time."""
    syncs, host = ground.timeline.syncs, ground.timeline.host
    rows = np.flatnonzero(syncs.kind == SyncKind.STREAM_WAIT)
    call, record = _calls(ground, syncs.correlation[rows]), _calls(ground, syncs.record[rows])
    start_ns = np.append(host.start_ns, 0)
    wait_ns = np.where(call != NONE_ID, start_ns[call], syncs.start_ns[rows])
    record_ns = np.where(record != NONE_ID, start_ns[record], wait_ns)
    return StreamWaits(
        call=call,
        wait_ns=wait_ns,
        waiting=_lane_of(ground, syncs.device[rows], syncs.stream[rows]),
        waited=_lane_of(ground, syncs.device[rows], syncs.waited_stream[rows]),
        record_ns=record_ns,
        has_record=(record != NONE_ID) & (record_ns <= wait_ns),
    )


def _calls(ground: Ground, correlation: Ints) -> Ints:
    """Return `[M]` int64: the runtime call with each correlation, the outermost where several share it; -1 for none."""
    host = ground.timeline.host
    calls = np.flatnonzero((host.kind == Kind.RUNTIME) & (host.correlation != NONE_ID))
    if len(calls) == 0 or len(correlation) == 0:
        return np.full(len(correlation), NONE_ID, np.int64)
    order = calls[np.argsort(host.correlation[calls], kind="stable")]
    place = np.minimum(np.searchsorted(host.correlation[order], correlation), len(order) - 1)
    found = (host.correlation[order[place]] == correlation) & (correlation != NONE_ID)
    return np.where(found, order[place], NONE_ID).astype(np.int64)


def _lane_of(ground: Ground, device: Places, stream: Ints) -> Places:
    """Return `[M]` int32: the lane of each (device, stream); the number of lanes for streams without spans."""
    lane = np.full(len(stream), len(ground.lanes), np.int32)
    for number, (on_device, on_stream) in enumerate(ground.lanes):
        lane[(device == on_device) & (stream == on_stream)] = number
    return lane
