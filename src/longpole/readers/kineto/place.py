"""Take out of a rank's rows what cannot be placed in time, and complain of each kind (DESIGN 3.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.timeline.columns import DEVICE_KINDS, HOST_KINDS, Kind
from longpole.timeline.placing import duplicates, overlong_on_stream, overrunning, strays, unclosed_frames, untimed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.readers.kineto.complaints import Complaints
    from longpole.readers.kineto.rows import Rows
    from longpole.settings import Settings


def place(rows: Rows, complaints: Complaints, settings: Settings) -> None:
    """Take rows that cannot be placed out, cut those that are too long, and complain of each kind."""
    raw = rows.raw
    raw_unfinished = np.zeros(len(rows.kind), np.bool_)
    if "unfinished" in raw.sparse:
        raw_unfinished[raw.sparse["unfinished"][0]] = True
    placeable = np.isin(rows.kind, [int(k) for k in (*DEVICE_KINDS, *HOST_KINDS)]) & rows.mine
    no_time = untimed(rows.start_ns, rows.end_ns, rows.kind) & rows.mine
    n_device = len(rows.of(DEVICE_KINDS))
    remark = f"; {n_device - int(no_time.sum()):,} of {n_device:,} device spans have a time"
    complaints.rows("kernel.time.missing", "warn", np.flatnonzero(no_time), IDLE_VOIDS, remark)
    rows.mine = rows.mine & ~no_time
    _complain_of_lengths(rows, complaints)
    _drop_strays(rows, complaints, settings)
    placeable &= rows.mine
    frames = np.flatnonzero(placeable)
    late = np.zeros(len(rows.kind), np.bool_)
    late[frames] = unclosed_frames(rows.end_ns[frames], rows.kind[frames], raw_unfinished[frames])
    complaints.rows("python.frame.unclosed", "note", np.flatnonzero(late), [])
    rows.mine = rows.mine & ~late
    _drop_duplicates(rows, complaints)
    _cut_overlong(rows, complaints, settings)
    placed = np.flatnonzero(placeable & rows.mine)
    overrun = np.zeros(len(rows.kind), np.bool_)
    on_device = np.isin(rows.kind, [int(k) for k in DEVICE_KINDS])
    least_ns = np.where(on_device[placed], settings.overrun_min_ns, settings.host_overrun_min_ns)
    overrun[placed] = overrunning(rows.start_ns[placed], rows.end_ns[placed], least_ns, settings)
    overrun[placed] |= rows.end_ns[placed] - rows.start_ns[placed] > settings.span_max_ns
    complaints.rows("kernel.duration.impossible", "warn", np.flatnonzero(overrun & on_device), IDLE_VOIDS)
    complaints.rows("host.duration.impossible", "warn", np.flatnonzero(overrun & ~on_device), [])
    rows.mine = rows.mine & ~overrun


IDLE_VOIDS: Final = ["@/ledger/device/idle_ns", "@/device_span/idle_ns"]


def _complain_of_lengths(rows: Rows, complaints: Complaints) -> None:
    """Complain of kernels without a length where most have none: whole microseconds round few of them to 0."""
    kernels = rows.of((Kind.KERNEL,))
    no_length = kernels[rows.end_ns[kernels] == rows.start_ns[kernels]]
    if 2 * len(no_length) > len(kernels):
        remark = f"; {len(no_length):,} of {len(kernels):,} kernels have a start and no length, and count as no time"
        complaints.rows("kernel.time.missing", "warn", no_length, IDLE_VOIDS, remark)


def _drop_strays(rows: Rows, complaints: Complaints, settings: Settings) -> None:
    """Leave out rows that lie absurdly far from the record."""
    some = rows.of((*DEVICE_KINDS, *HOST_KINDS))
    bad = some[strays(rows.start_ns[some], rows.end_ns[some], settings)]
    on_device = np.isin(rows.kind[bad], [int(kind) for kind in DEVICE_KINDS])
    complaints.rows("event.time.stray", "warn", bad, IDLE_VOIDS if on_device.any() else [])
    rows.mine[bad] = False


def _drop_duplicates(rows: Rows, complaints: Complaints) -> None:
    """Leave out rows that repeat another in every recorded field."""
    span = rows.raw.span
    twice = np.zeros(len(rows.kind), np.bool_)
    for kinds in (DEVICE_KINDS, HOST_KINDS):
        some = rows.of(kinds)
        stream = rows.on_device(some).stream if kinds is DEVICE_KINDS else some[:0]
        columns = ("external_id", "correlation", "name", "track")
        keys = (*(span[name][some] for name in columns), rows.end_ns[some], rows.start_ns[some])
        twice[some[duplicates((*keys, stream) if len(stream) else keys)]] = True
    complaints.rows("event.duplicate", "note", np.flatnonzero(twice), [])
    rows.mine = rows.mine & ~twice


def _cut_overlong(rows: Rows, complaints: Complaints, settings: Settings) -> None:
    some = rows.of(DEVICE_KINDS)
    if len(some) == 0:
        return
    on_device = rows.on_device(some)
    lane = _lanes(on_device.device, on_device.stream)
    found = overlong_on_stream(
        lane, rows.start_ns[some], rows.end_ns[some], rows.raw.span["correlation"][some], settings
    )
    bad = some[found.row]
    excess_ns = int((rows.end_ns[bad] - found.end_ns).sum())
    remark = f"; cut where their stream goes on, {excess_ns:,} ns left out"
    complaints.rows("kernel.duration.impossible", "warn", bad, IDLE_VOIDS, remark)
    rows.end_ns[bad] = found.end_ns


def _lanes(device: NDArray[np.int64], stream: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return a number for each stream of each device."""
    device_codes = np.unique(device, return_inverse=True)[1].reshape(-1)
    streams, stream_codes = np.unique(stream, return_inverse=True)
    return (device_codes * len(streams) + stream_codes.reshape(-1)).astype(np.int32)
