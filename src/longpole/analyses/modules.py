"""How a model's time divides over its modules, one level deep, where the trace has frames of modules (DESIGN 3.3).

nn.Module: Net_0         ├──────────────────────────────┤     level 0
nn.Module: Encoder_0        ├──────────┤                      level 1: what is shown
nn.Module: Linear_3            ├──┤                           counts for Encoder_0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.analyses.pieces import RUNG_IDLE
from longpole.records.tables import ModuleRow
from longpole.timeline.columns import NONE_ID, Kind
from longpole.vocabulary.objects import STAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.pieces import Pieces
    from longpole.analyses.threads import ThreadCover, Threads
    from longpole.timeline.timeline import Timeline

_PREFIX: Final = "nn.Module: "
_ROWS_KEPT: Final = 50


def module_rows(timeline: Timeline, threads: Threads, pieces: Pieces) -> list[ModuleRow]:
    """Return the time of each module by stage, the longest first; empty where the trace has no module frames.

    A busy piece belongs to the module that launched its span, an idle one to the module that was open meanwhile.

    Args:
        timeline: The record.
        threads: Covers of its threads.
        pieces: A row's pieces inside the units.
    """
    codes = [code for code, name in enumerate(timeline.names) if name.startswith(_PREFIX)]
    if not codes or len(pieces) == 0:
        return []
    host_row = _responsible(timeline, pieces)
    module = np.full(len(pieces), -1, np.int64)
    some = np.flatnonzero(host_row >= 0)
    track = timeline.host.track[host_row[some]]
    for code in np.unique(track).tolist():
        mine = some[track == code]
        cover = threads.cover(code)
        module[mine] = _modules_of(timeline, cover, np.array(codes))[host_row[mine] - cover.first_row]
    inside = np.flatnonzero(module >= 0)
    totals: dict[tuple[int, int], list[int]] = {}
    busy = pieces.rung[inside] != RUNG_IDLE
    for stage, name, dur_ns, runs in zip(
        pieces.stage[inside].tolist(),
        timeline.host.name[module[inside]].tolist(),
        pieces.dur_ns[inside].tolist(),
        busy.tolist(),
        strict=True,
    ):
        total = totals.setdefault((stage, name), [0, 0])
        total[0] += dur_ns
        total[1] += dur_ns if runs else 0
    rows = [
        ModuleRow(STAGES[stage], timeline.names[name].removeprefix(_PREFIX), wall_ns, busy_ns)
        for (stage, name), (wall_ns, busy_ns) in totals.items()
    ]
    return sorted(rows, key=lambda row: (-row.wall_ns, row.module))[:_ROWS_KEPT]


def _responsible(timeline: Timeline, pieces: Pieces) -> NDArray[np.int64]:
    """Return the host row that stands behind each piece: the launching call, or what the host did; -1 for none."""
    row = pieces.row.copy()
    on_device = (pieces.rung != RUNG_IDLE) & (row >= 0)
    if len(timeline.device):
        launch = timeline.device.launch[row[on_device]]
        row[on_device] = np.where(launch == NONE_ID, -1, launch)
    return row


def _modules_of(timeline: Timeline, cover: ThreadCover, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each span of a thread, the host row of the module it counts for, -1 for none."""
    rows = slice(cover.first_row, cover.first_row + len(cover.parent))
    is_module = np.isin(timeline.host.name[rows], codes) & (timeline.host.kind[rows] == Kind.PYTHON)
    shown = np.full(len(cover.parent), -1, np.int64)
    level = np.full(len(cover.parent), -1, np.int64)
    parent = cover.parent.tolist()
    for place in np.flatnonzero(is_module).tolist():
        above = parent[place]
        while above >= 0 and not is_module[above]:
            above = parent[above]
        level[place] = level[above] + 1 if above >= 0 else 0
        shown[place] = place if level[place] <= 1 else shown[above]
    nearest = _nearest(is_module, cover)
    return np.where(nearest >= 0, shown[nearest] + cover.first_row, -1)


def _nearest(is_module: NDArray[np.bool_], cover: ThreadCover) -> NDArray[np.int64]:
    """Return the innermost module around each span, parents before children."""
    nearest = np.where(is_module, np.arange(len(is_module)), -1)
    open_rows = np.flatnonzero(nearest < 0)
    # Parents precede their children, so each round settles one more level of what is left.
    while len(open_rows):
        above = cover.parent[open_rows]
        known = (above >= 0) & (nearest[np.maximum(above, 0)] >= 0)
        if not known.any():
            break
        nearest[open_rows[known]] = nearest[above[known]]
        open_rows = open_rows[~known]
    return nearest
