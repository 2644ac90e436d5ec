"""How much of what bounds it each drawn span used: a share of a peak, for the height of a picture (DESIGN 3.10).

    kernel       the work of its operator's call in the time of that call's kernels, against the peak that is nearest
    collective   bus bytes in its whole time, waiting for its peers included, against the link's peak: a lower bound
    copy         its bytes in its time, against the bus to the host or the memory

A kernel of which neither FLOPs nor bytes are known shows the profiler's estimate of how full its processors were, and
says so. What is not known has a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.operator_work import WHYS, kernel_owners, kernel_work
from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COPY
from longpole.digest.rank_drawing import Use
from longpole.ranks.cost_model import bus_factor
from longpole.records.ledger import Unknown
from longpole.report.resource_peaks import Peaks
from longpole.report.resource_rows import COPY_COLUMN, NO_ADAPTER, NO_HOSTS, POSSIBLE_MAX, SHARE_ABOVE, link_of
from longpole.units import NS_PER_S
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from longpole.analyses.operator_work import KernelWork
    from longpole.analyses.rungs import DeviceRow
    from longpole.costs.operator_work.work import Work
    from longpole.digest.digest import Laid
    from longpole.digest.rank_digest import RankDigest
    from longpole.records.instances import Instances

ESTIMATED: Final = "the warps that fit, the profiler's estimate"
"""How what a share is of begins where it is no share of a peak."""
_NOTHING_COUNTED: Final = "it computes nothing and moves nothing that is counted"
_NO_SIZE: Final = "its bytes were not recorded"
_NO_KIND: Final = "what kind of collective it is was not recorded"
_NO_GROUP: Final = "the size of its group was not recorded"
_NO_FACTOR: Final = "no bytes are counted of its kind"
_NO_RECORD: Final = "the record does not say what it moved"
_COLUMN: Final = {"hbm": "the memory's rate", "pcie": "the host bus's rate", "scale_up": "the links' rate"}


def gauge_of(digest: RankDigest, hosts: Mapping[int, str]) -> Callable[[Laid, DeviceRow], Use]:
    """Return what says how much the spans of a rank's devices used.

    Args:
        digest: The rank: its collectives.
        hosts: Rank -> its host, empty where not recorded.
    """

    def gauge(rank: Laid, row: DeviceRow) -> Use:
        peaks = Peaks.of(rank.timeline.device_name(row.device))
        found = _Found(len(row.spans))
        owners = kernel_owners(rank.timeline, rank.threads, row, rank.recorded)
        _of_kernels(found, kernel_work(rank.timeline, row, owners), rank.timeline.names, peaks)
        _of_copies(found, rank, row, peaks)
        _of_collectives(found, row, digest.instances, hosts, peaks)
        return Use(found.share, found.says, list(found.texts))

    return gauge


class _Found:
    """Shares of the spans of a device, with what they are shares of."""

    def __init__(self, n: int) -> None:
        self.share = np.full(n, np.nan, np.float32)
        self.says = np.full(n, -1, np.int32)
        self.texts: dict[str, int] = {}

    def text(self, says: str) -> int:
        return self.texts.setdefault(says, len(self.texts))

    def set(self, spans: NDArray[np.int64], share: NDArray[np.float64], of: str, why: str = "") -> None:
        """Say what spans used; a share above what is possible is not known, for that reason."""
        possible = share <= POSSIBLE_MAX
        self.share[spans] = np.where(possible, share, np.nan)
        self.says[spans] = np.where(possible, self.text(of), self.text(why or f"it would be more than {of}"))

    def set_unknown(self, spans: NDArray[np.int64], why: str) -> None:
        self.says[spans] = self.text(why)


def _of_kernels(found: _Found, work: KernelWork, names: tuple[str, ...], peaks: Peaks) -> None:
    for code in np.unique(work.why[work.why >= 0]).tolist():
        found.set_unknown(work.kernel[work.why == code], WHYS[code])
    owned = np.flatnonzero(work.call >= 0)
    call = work.call[owned]
    pairs, inverse = np.unique(np.stack([work.work[call], work.name[call]]), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(pairs.shape[1] + 1))
    for place, (one, name) in enumerate(pairs.T.tolist()):
        mine = owned[order[bounds[place] : bounds[place + 1]]]
        time_ns = work.device_ns[work.call[mine]]
        _of_calls(found, work.kernel[mine], time_ns, (work.works[one], names[name]), peaks)
    filled = np.flatnonzero((work.occupancy > 0) & np.isnan(found.share[work.kernel]))
    _estimated(found, work.kernel[filled], work.occupancy[filled])


def _of_calls(
    found: _Found, spans: NDArray[np.int64], time_ns: NDArray[np.int64], call: tuple[Work, str], peaks: Peaks
) -> None:
    """Say what calls of one sort used: the share of the column that they need most of."""
    work, name = call
    needs = [(work.flops, work.processor, work.dtype), (work.moved_bytes, "hbm", "")]
    asked = [(demand, column, peaks.of_column(column, dtype)) for demand, column, dtype in needs if demand]
    known = [(demand / peak.per_s, peak) for demand, _, peak in asked if not isinstance(peak.per_s, Unknown)]
    if not known:
        reasons = [peak.per_s.unknown for _, _, peak in asked if isinstance(peak.per_s, Unknown)]
        found.set_unknown(spans, next(iter(reasons), _NOTHING_COUNTED))
        return
    need_s, peak = max(known, key=lambda one: one[0])
    bound = " at least," if peak.column == "hbm" and work.at_least else ""
    says = f"{_named(peak.column, peak.dtype)}{bound} by {name}"
    if work.at_least and peak.column == "hbm":
        says += ", at least"
    found.set(spans, need_s * NS_PER_S / np.maximum(time_ns, 1), says, SHARE_ABOVE.get(peak.column, ""))


def _named(column: str, dtype: str) -> str:
    if column in ("tensor", "vector"):
        return f"the {column} units' {dtype} peak"
    return _COLUMN[column]


def _estimated(found: _Found, spans: NDArray[np.int64], occupancy: NDArray[np.float64]) -> None:
    """Say how full the processors were where nothing better is known, beside why it is not."""
    texts = list(found.texts)
    for code in np.unique(found.says[spans]).tolist():
        mine = found.says[spans] == code
        why = texts[code] if code >= 0 else _NO_RECORD
        found.set(spans[mine], occupancy[mine], f"{ESTIMATED} (work: {why})")


def _of_copies(found: _Found, rank: Laid, row: DeviceRow, peaks: Peaks) -> None:
    copies = np.flatnonzero(row.rung == RUNG_COPY)
    size, time_ns = row.spans.size_bytes[copies], row.spans.end_ns[copies] - row.spans.start_ns[copies]
    found.set_unknown(copies, _NO_SIZE)
    for code in np.unique(row.spans.name[copies]).tolist():
        direction = rank.book.copy(code).direction
        column = COPY_COLUMN.get(direction)
        mine = np.flatnonzero((row.spans.name[copies] == code) & (size > 0) & (time_ns > 0))
        if column is None or len(mine) == 0:
            continue
        per_s = peaks.of_column(column).per_s
        if isinstance(per_s, Unknown):
            found.set_unknown(copies[mine], per_s.unknown)
            continue
        moved = size[mine] * (2 if direction == "dtod" else 1)  # within a device bytes are read and written
        found.set(copies[mine], moved * NS_PER_S / per_s / time_ns[mine], _COLUMN[column], SHARE_ABOVE.get(column, ""))


def _of_collectives(found: _Found, row: DeviceRow, own: Instances, hosts: Mapping[int, str], peaks: Peaks) -> None:
    mine = np.flatnonzero(row.rung == RUNG_COLLECTIVE)
    found.set_unknown(mine, _NO_RECORD)
    on_device = np.flatnonzero(own.column("on_device") > 0)
    place = np.searchsorted(row.rows, own.column("row")[on_device])
    fits = (place < len(row.rows)) & (row.rows[np.minimum(place, len(row.rows) - 1)] == own.column("row")[on_device])
    place, on_device = place[fits].astype(np.int64), on_device[fits]
    sorts = np.stack([own.column("kind")[on_device].astype(np.int64), own.column("group")[on_device].astype(np.int64)])
    distinct, inverse = np.unique(sorts, axis=1, return_inverse=True)
    for number, (kind, group) in enumerate(distinct.T.tolist()):
        here = inverse.reshape(-1) == number
        _of_sort(found, place[here], own.column("bytes")[on_device[here]], _link(own, kind, group, hosts, peaks), row)


def _link(own: Instances, kind: int, group: int, hosts: Mapping[int, str], peaks: Peaks) -> tuple[float, float] | str:
    """Return bus bytes for each byte of a sort of collectives, and the peak of their link; else why not known."""
    if kind < 0:
        return _NO_KIND
    named = own.groups[group] if 0 <= group < len(own.groups) else None
    size = named.size if named is not None else None
    factor = bus_factor(COLLECTIVE_KINDS[kind], size)
    if factor is None:
        return _NO_FACTOR if size else _NO_GROUP
    column, unclear = link_of(named.members if named is not None else [], hosts)
    if unclear:
        return (NO_ADAPTER if column == "scale_out" else NO_HOSTS).unknown
    per_s = peaks.of_column(column).per_s
    return per_s.unknown if isinstance(per_s, Unknown) else (factor, per_s)


def _of_sort(
    found: _Found,
    spans: NDArray[np.int64],
    size_bytes: NDArray[np.int64],
    link: tuple[float, float] | str,
    row: DeviceRow,
) -> None:
    if isinstance(link, str):
        found.set_unknown(spans, link)
        return
    factor, per_s = link
    time_ns = row.spans.end_ns[spans] - row.spans.start_ns[spans]
    known = (size_bytes > 0) & (time_ns > 0)
    found.set_unknown(spans[~known], _NO_SIZE)
    share = size_bytes[known] * factor * NS_PER_S / per_s / time_ns[known]
    found.set(spans[known], share, f"{_COLUMN['scale_up']}, waiting for peers included")
