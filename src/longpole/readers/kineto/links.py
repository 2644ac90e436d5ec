"""Link device spans to the calls that launched them.

By correlation id; where the exporter wrote none, by the arrow that ends at the span; else by external id, the
first call of an operator with its first span and so on (old ROCm traces carry nothing else).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.readers.correlation import launches_by_correlation
from longpole.timeline.columns import NONE_ID, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.tables import DeviceTable, FlowTable, HostTable

    Ints: TypeAlias = NDArray[np.int64]


def link_launches(host: HostTable, device: DeviceTable, device_track: Ints, flows: FlowTable, names: list[str]) -> Ints:
    """Return `[N]` int64: the host row that launched each device span, NONE_ID where the record does not say.

    Args:
        host: Placed host spans.
        device: Placed device spans; spans of one graph launch share its correlation.
        device_track: `[N]` int64: the track each device span stands on, for the arrows that end there.
        flows: Arrows; kinds that join host to host (`fwdbwd`) find no device span and so link nothing.
        names: All names, for calls that cannot launch.
    """
    calls = np.flatnonzero(host.kind == Kind.RUNTIME)
    launch = launches_by_correlation(host, calls, device)
    missing = launch == NONE_ID
    if missing.any() and len(flows):
        launch = np.where(missing, _by_arrow(host, device, device_track, flows), launch)
        missing = launch == NONE_ID
    bare = missing & (device.correlation == NONE_ID)
    if bare.any():
        launch[bare] = _by_external_id(host, device, calls, np.flatnonzero(bare), names)
    return launch


def _by_arrow(host: HostTable, device: DeviceTable, device_track: Ints, flows: FlowTable) -> Ints:
    """Follow arrows whose target starts with a device span and whose source lies on a host span's start."""
    source = np.flatnonzero(~flows.is_target)
    target = np.flatnonzero(flows.is_target)
    if len(source) == 0 or len(target) == 0:
        return np.full(len(device), NONE_ID, np.int64)
    target_of_span = _match(flows.track[target].astype(np.int64), flows.time_ns[target], device_track, device.start_ns)
    flow_id = np.where(target_of_span >= 0, flows.id[target][np.maximum(target_of_span, 0)], NONE_ID)
    order = np.argsort(flows.id[source], kind="stable")
    ids = flows.id[source][order]
    place = np.minimum(np.searchsorted(ids, flow_id), len(ids) - 1)
    from_row = source[order[place]]
    hit = (flow_id != NONE_ID) & (ids[place] == flow_id)
    on_host = _match(
        host.track.astype(np.int64), host.start_ns, flows.track[from_row].astype(np.int64), flows.time_ns[from_row]
    )
    return np.where(hit & (on_host >= 0), on_host, NONE_ID)


def _match(track: Ints, time_ns: Ints, wanted_track: Ints, wanted_ns: Ints) -> Ints:
    """Return, for each wanted (track, time), the last given row of just that track and time, -1 for none."""
    if len(track) == 0:
        return np.full(len(wanted_track), -1, np.int64)
    low_ns = int(time_ns.min())
    width = int(time_ns.max()) - low_ns + 1
    wanted_track = np.where((wanted_ns >= low_ns) & (wanted_ns < low_ns + width), wanted_track, -1)
    if width > (1 << 62) // (int(max(track.max(), wanted_track.max(initial=0))) + 2):
        return np.full(len(wanted_track), -1, np.int64)
    key = track * width + (time_ns - low_ns)
    order = np.argsort(key, kind="stable")
    wanted = wanted_track * width + (wanted_ns - low_ns)
    place = np.searchsorted(key[order], wanted, side="right") - 1
    hit = (place >= 0) & (wanted_track >= 0)
    hit &= key[order[np.maximum(place, 0)]] == wanted
    return np.where(hit, order[np.maximum(place, 0)], -1).astype(np.int64)


def _by_external_id(
    host: HostTable, device: DeviceTable, calls: NDArray[np.intp], spans: NDArray[np.intp], names: list[str]
) -> Ints:
    """Pair the spans of an operator with its launching calls in order, where their numbers agree."""
    can_launch = np.array([_can_launch(name) for name in names], np.bool_)
    calls = calls[can_launch[host.name[calls]] & (host.external_id[calls] > 0)]
    call_key, call_rank = _ranked(host.external_id[calls], host.start_ns[calls])
    span_key, span_rank = _ranked(device.external_id[spans], device.start_ns[spans])
    index = {
        pair: int(row) for pair, row in zip(zip(call_key.tolist(), call_rank.tolist(), strict=True), calls, strict=True)
    }
    pairs = zip(span_key.tolist(), span_rank.tolist(), strict=True)
    return np.array([index.get(pair, NONE_ID) if pair[0] > 0 else NONE_ID for pair in pairs], np.int64)


def _can_launch(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in ("launch", "memcpy", "memset", "copy", "enqueue", "append"))


def _ranked(key: Ints, time_ns: Ints) -> tuple[Ints, Ints]:
    """Return the keys and, for each row, how many rows of the same key precede it in time."""
    order = np.lexsort((time_ns, key))
    ordered = key[order]
    first = np.searchsorted(ordered, ordered, side="left")
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - first
    return key, rank
