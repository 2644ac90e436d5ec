"""How much slower kernels run beside a collective than alone, where the same kernel ran both ways (DESIGN 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE
from longpole.records.collectives import ComputeOverlap
from longpole.timeline.columns import NONE_ID
from longpole.timeline.intervals import covered_before, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.timeline import Timeline

_BESIDE: Final = 0.9  # a kernel runs beside a collective where that covers this share of it
_ALONE_MIN: Final = 3  # undisturbed instances that a comparison needs
_TIGHT: Final = 0.2  # and how far apart their quartiles may lie, in medians: others are no reference


def compute_overlap(timeline: Timeline, row: DeviceRow) -> ComputeOverlap:
    """Compare kernels beside collectives with the same kernels alone: same name, same shapes where recorded."""
    collective = union(row.spans.start_ns[row.rung == RUNG_COLLECTIVE], row.spans.end_ns[row.rung == RUNG_COLLECTIVE])
    mine = np.flatnonzero(row.rung == RUNG_COMPUTE)
    result = ComputeOverlap()
    if len(collective.start_ns) == 0 or len(mine) == 0:
        return result
    start_ns, end_ns = row.spans.start_ns[mine], row.spans.end_ns[mine]
    dur_ns = end_ns - start_ns
    covered_ns = covered_before(collective, end_ns) - covered_before(collective, start_ns)
    beside = (covered_ns >= _BESIDE * dur_ns) & (dur_ns > 0)
    alone = (covered_ns == 0) & (dur_ns > 0)
    result.beside_ns = int(dur_ns[beside].sum())
    key = row.spans.name[mine].astype(np.int64) << 32 | _shapes(timeline, row, mine)
    for one in np.unique(key[beside]).tolist():
        same = key == one
        reference = dur_ns[same & alone]
        if len(reference) < _ALONE_MIN:
            continue
        low, middle, high = np.percentile(reference, [25, 50, 75])
        if high - low > _TIGHT * middle:
            continue
        disturbed = dur_ns[same & beside]
        result.compared_ns += int(disturbed.sum())
        result.alone_ns += round(float(middle) * len(disturbed))
    return result


def _shapes(timeline: Timeline, row: DeviceRow, mine: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the code of the input shapes of each kernel's operator, by external id; 0 where not recorded."""
    host, dims = timeline.host, timeline.input_dims
    external = row.spans.external_id[mine]
    if len(dims.row) == 0:
        return np.zeros(len(mine), np.int64)
    ids = host.external_id[dims.row]
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    place = np.minimum(np.searchsorted(ids, external), len(ids) - 1)
    hit = (ids[place] == external) & (external != NONE_ID)
    return np.where(hit, dims.value[order][place].astype(np.int64) + 1, 0)
