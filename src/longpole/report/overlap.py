"""How well computing and communicating run at once, and how much each slows the other (DESIGN 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.ranks.split import How
from longpole.records.collectives import OverlapEntry
from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest

_ALONE_MIN: Final = 3  # undisturbed operations that a comparison needs
_BESIDE: Final = 0.9  # an operation runs beside compute where that covers this share of it
_COVERED_MIN: Final = 0.5  # a slow-down that covers less of the overlapped time says nothing of the rest
_UNDISTURBED: Final = ["steps in which the same operations run without the other kind beside them"]


def overlap_entries(digests: Sequence[RankDigest], across: Across) -> list[OverlapEntry]:
    """Compare what ran beside the other kind with the same operations that ran alone.

    efficiency = (alone + alone - together) / the shorter alone. While both run for a time L, they do work that would
    take L / slowdown alone each; so efficiency = (1/a + 1/b - 1) / min(1/a, 1/b) for slow-downs a and b.
    """
    rows = [row.overlap for digest in digests for row in digest.rows]
    beside_ns = sum(row.beside_ns for row in rows)
    compared_ns, alone_ns = sum(row.compared_ns for row in rows), sum(row.alone_ns for row in rows)
    if beside_ns == 0:
        return []
    covers = compared_ns / beside_ns
    compute: float | Unknown = compared_ns / alone_ns if alone_ns > 0 else _too_few("kernels")
    if covers < _COVERED_MIN and not isinstance(compute, Unknown):
        compute = Unknown(f"only {covers:.0%} of the overlapped compute time also ran undisturbed", _UNDISTURBED)
    collective = _collective_slowdown(across)
    if isinstance(compute, Unknown) and isinstance(collective, Unknown):
        return []
    if isinstance(compute, Unknown):
        efficiency: float | Unknown = compute
    elif isinstance(collective, Unknown):
        efficiency = collective
    else:
        # Noise may make an operation a little faster in company; that is no gain.
        a, b = 1 / max(compute, 1.0), 1 / max(collective, 1.0)
        efficiency = max((a + b - 1) / min(a, b), 0.0)
    return [OverlapEntry(["compute", "collective"], efficiency, {"compute": compute, "collective": collective}, covers)]


def _too_few(what: str) -> Unknown:
    return Unknown(f"too few {what} ran both beside the other kind and undisturbed", _UNDISTURBED)


def _collective_slowdown(across: Across) -> float | Unknown:
    """Return how many times longer transfers take beside compute, over operations of equal kind, group and size."""
    matched, split = across.matched, across.split
    known = np.flatnonzero((split.how != int(How.UNKNOWN)) & (matched.bytes > 0))
    if len(known) == 0:
        return Unknown("no transfer is known, or no size", ["traces of all ranks", "collective metadata"])
    operation = matched.operation_of_member()
    duration_ns = split.end_ns - split.start_ns
    # The part that compute covers lies in the transfer only where the member waited for nobody.
    last = np.zeros(len(matched.rank), np.bool_)
    order = np.lexsort((split.skew_ns, operation))
    last[order[matched.first[:-1]]] = True
    exposed_ns = matched.column(across.instances, "exposed_ns")
    k = np.flatnonzero(last & np.isin(operation, known) & (duration_ns > 0))
    hidden = 1 - exposed_ns[k] / duration_ns[k]
    transfer_ns = split.transfer_ns[k]
    m = operation[k]
    key = np.stack([matched.kind[m].astype(np.int64), matched.group_of[m].astype(np.int64), matched.bytes[m]])
    _, which = np.unique(key, axis=1, return_inverse=True)
    which = which.reshape(-1)
    disturbed_ns, alone_ns = 0, 0.0
    for one in np.unique(which).tolist():
        same = which == one
        alone, beside = transfer_ns[same & (hidden <= 1 - _BESIDE)], transfer_ns[same & (hidden >= _BESIDE)]
        if len(alone) >= _ALONE_MIN and len(beside):
            disturbed_ns += int(beside.sum())
            alone_ns += float(np.median(alone)) * len(beside)
    return disturbed_ns / alone_ns if alone_ns > 0 else _too_few("transfers")
