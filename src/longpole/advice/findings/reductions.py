"""Gradients that are reduced only once all of backward has run, where nothing is left to hide them.

compute  ══ b4 ══ b3 ══ b2 ══ b1 ══╗                         ══ optimizer
stream                              ═ r4 ═ r3 ═ r2 ═ r1 ═    all but the last could run under backward
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice.operations import members, where
from longpole.advice.removal import transfer_lengths
from longpole.advice.suspect import Suspect
from longpole.analyses.name_book import STAGE_CODE
from longpole.records.findings import Evidence, Place
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.advice.operations import Operations
    from longpole.advice.scene import RankView, Scene

_LARGE_BYTES: Final = 1 << 20  # norms and flags are reduced behind backward because they belong there
_BUCKET_BYTES: Final = 25 << 20  # what DistributedDataParallel reduces at once unless told otherwise
_SHOWN_MIN: Final = 0.9  # of the transfers: what is hidden in part began beside backward


def behind_backward(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect reductions of one kind and group that all begin when backward has ended, and show nearly in full.

    The bucket that is complete last stays: of several operations the last one, of one its share of 25 MiB.
    """
    part = part.take(part.size_bytes >= _LARGE_BYTES)
    if len(part) == 0 or part.exposed_ns.sum() < _SHOWN_MIN * part.transfer_ns.sum():
        return []
    view = _view_of(scene, part)
    if view is None:
        return []
    left: dict[int, int] = {}
    for unit in np.unique(part.unit).tolist():
        mine = part.take(part.unit == unit)
        room_ns = _backward_ns(view, mine)
        if room_ns == 0:
            return []
        left |= _left_over(mine, room_ns)
    exposed_ns = int(part.exposed_ns.sum()) // part.n_units
    first = where(scene, int(part.operation[0]))
    return [
        Suspect(
            cause="late_issue",
            ranks=members(scene, part),
            says=f"{part.kind_name} of gradients begins when all of backward has run, not beside it: {{cost}} of"
            f" {format_ns(exposed_ns)} that show",
            evidence=[
                Evidence("exposed_ns per unit", exposed_ns, first),
                Evidence("operations per unit", round(len(part) / part.n_units), first),
                Evidence("bytes per unit", int(part.size_bytes.sum()) // part.n_units, Place()),
            ],
            remove=[transfer_lengths(left)],
            ledger_ns=exposed_ns,
            stage="backward",
            grade="inferred",
        )
    ]


def _view_of(scene: Scene, part: Operations) -> RankView | None:
    """Return the rank of the first member of some operations, None where its devices are not there."""
    assert scene.across is not None
    matched = scene.across.matched
    view = scene.view_of.get(int(matched.rank[matched.first[int(part.operation[0])]]))
    return view if view is not None and view.graph.has_device else None


def _backward_ns(view: RankView, mine: Operations) -> int:
    """Return how long backward computed right before one unit's operations; 0 where it did not, or goes on between."""
    spans = view.graph.spans
    rows = np.flatnonzero(spans.compute)
    start_ns = view.device_start_ns[rows] + view.offset_ns
    order = np.argsort(start_ns)
    rows, start_ns = rows[order], start_ns[order]
    low, high = np.searchsorted(start_ns, [mine.start_ns.min(), mine.start_ns.max()])
    stage = spans.stage[rows]
    if low == 0 or high > low or stage[low - 1] != STAGE_CODE["backward"]:
        return 0
    before = stage[:low] != STAGE_CODE["backward"]
    begin = int(np.flatnonzero(before)[-1]) + 1 if before.any() else 0
    backward = rows[begin:low]
    return int((view.device_end_ns - view.device_start_ns)[backward].sum())


def _left_over(mine: Operations, room_ns: int) -> dict[int, int]:
    """Return what is left of the transfers of one unit where backward hides what it can: operation -> ns."""
    if len(mine) == 1:
        share = min(_BUCKET_BYTES / int(mine.size_bytes[0]), 1.0)
        last_ns = round(share * int(mine.transfer_ns[0]))
    else:
        last_ns = int(mine.transfer_ns[-1])
    too_much_ns = max(int(mine.transfer_ns.sum()) - last_ns - room_ns, 0)
    left = dict.fromkeys(mine.operation.tolist(), 0)
    left[int(mine.operation[-1])] = last_ns + too_much_ns
    return left
