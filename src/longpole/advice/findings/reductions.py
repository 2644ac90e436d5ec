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
_LAST_MIN: Final = 0.8  # of what a unit computes lies before: what follows is the optimizer
_BACKWARD_SHARE: Final = 2 / 3  # of forward and backward: twice the products of matrices
_PASS_MIN: Final = 1.3  # times the distance of buckets: a forward pass and a bucket's own computing lie between rounds
_SHOWN_MIN: Final = 0.9  # of the transfers: what is hidden in part began beside backward


def behind_backward(scene: Scene, part: Operations) -> list[Suspect]:
    """Suspect reductions of one kind and group that all begin when backward has ended, and show nearly in full.

    The bucket that is complete last stays: of several operations the last one, of one its share of 25 MiB. Where
    nothing tells backward from forward, several in a row behind what a unit computes are taken for gradients.
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
        left |= left_over(mine, room_ns)
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
    u = int(view.unit_of(mine.start_ns[:1] - view.offset_ns)[0])
    rows = np.flatnonzero(spans.compute & (spans.unit == u))
    start_ns = view.device_start_ns[rows] + view.offset_ns
    order = np.argsort(start_ns)
    rows, start_ns = rows[order], start_ns[order]
    dur_ns = (view.device_end_ns - view.device_start_ns)[rows]
    low, high = np.searchsorted(start_ns, [mine.start_ns.min(), mine.start_ns.max()])
    stage = spans.stage[rows]
    if low == 0 or high > low:
        return 0
    if not tells_backward(view):
        last = len(mine) > 1 and dur_ns[:low].sum() >= _LAST_MIN * dur_ns.sum()
        return int(_BACKWARD_SHARE * dur_ns[:low].sum()) if last else 0
    if stage[low - 1] != STAGE_CODE["backward"]:
        return 0
    before = stage[:low] != STAGE_CODE["backward"]
    begin = int(np.flatnonzero(before)[-1]) + 1 if before.any() else 0
    return int(dur_ns[begin:low].sum())


def tells_backward(view: RankView) -> bool:
    """Tell whether any of a rank's kernels is known to be of backward: without operators and annotations none is."""
    spans = view.graph.spans
    return bool((spans.compute & (spans.stage == STAGE_CODE["backward"])).any())


def micro_batches(mine: Operations) -> int:
    """Return how many rounds of the same buckets one unit's operations are, by sizes and distances alone; 1 for none.

    The sizes of two or more operations repeat, and before each round lies a stretch in which nothing is reduced, the
    next forward pass: layers that reduce what they computed (tensor parallel, shards) follow at even distances.
    """
    n, distance_ns = len(mine), np.diff(mine.start_ns)
    for size in range(2, n // 2 + 1):
        if n % size or (mine.size_bytes != np.tile(mine.size_bytes[:size], n // size)).any():
            continue
        between = np.arange(1, n) % size == 0
        if distance_ns[between].min() >= _PASS_MIN * distance_ns[~between].max():
            return n // size
    return 1


def left_over(mine: Operations, room_ns: int) -> dict[int, int]:
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
