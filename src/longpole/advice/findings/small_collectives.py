"""Hundreds of small collectives, each of which costs its latency.

compute  ═m═    ═m═    ═m═           each all-reduce takes as long as one of any size would
stream      ═a═    ═a═    ═a═
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.advice.operations import members, operations_of, where
from longpole.advice.suspect import Suspect
from longpole.records.findings import Evidence
from longpole.units import format_bytes, format_ns
from longpole.whatif.change import SIZE_MAX_BYTES, Fuse

if TYPE_CHECKING:
    from longpole.advice.operations import Operations
    from longpole.advice.scene import Scene
    from longpole.whatif.draft import TransferCost


def find(scene: Scene) -> list[Suspect]:
    """Suspect kinds of collectives that are many, small, and show."""
    operations = operations_of(scene)
    if operations is None or scene.ground is None:
        return []
    least_ns = scene.settings.finding_min_share * scene.period_ns / 2
    found = []
    for part in operations.by_kind_and_group():
        per_unit = len(part) / part.n_units
        size = float(np.median(part.size_bytes))
        if per_unit < scene.settings.many_collectives_per_unit or size > scene.settings.small_collective_max_bytes:
            continue
        if part.kind_name in ("send_recv", "collective") or part.exposed_ns.sum() / part.n_units < least_ns:
            continue
        found.append(_suspect(scene, part, per_unit, size))
    return found


def _suspect(scene: Scene, part: Operations, per_unit: float, size: float) -> Suspect:
    exposed_ns = int(part.exposed_ns.sum()) // part.n_units
    each_ns = int(np.median(part.transfer_ns))
    first = where(scene, int(part.operation[0]))
    assert scene.ground is not None
    modelled = scene.ground.cost(int(part.operation[0]), int(part.size_bytes.sum()) // part.n_units) is not None
    sized = f" of {format_bytes(round(size))}" if size > 0 else ""
    return Suspect(
        cause="many_small_collectives",
        ranks=members(scene, part),
        says=f"{per_unit:,.0f} {part.kind_name}{sized} per unit take {format_ns(each_ns)} each, which is"
        " mostly latency: {cost}",
        evidence=[
            Evidence("operations per unit", round(per_unit), first),
            Evidence("bytes, median", round(size), first),
            Evidence("transfer_ns, median", each_ns, first),
            Evidence("exposed_ns per unit", exposed_ns, first),
        ],
        remove=[Fuse(part.kind_name, SIZE_MAX_BYTES)],
        cost=_price(scene, part),
        ledger_ns=min(exposed_ns, round(each_ns * (per_unit - 1))),
        what_if=[f"--fuse {part.kind_name}=25MB"],
        grade="recorded" if modelled else "inferred",
    )


def _price(scene: Scene, part: Operations) -> TransferCost:
    """Return what a joined one takes: by the run's model, else by a line through its own sizes, which may be flat.

    Of a single size nothing says what bytes cost: while one takes as long as another, latency is all there is.
    """
    assert scene.ground is not None
    model = scene.ground.cost
    sizes, transfer_ns = part.size_bytes.astype(np.float64), part.transfer_ns.astype(np.float64)
    median_ns = float(np.median(transfer_ns))
    slope = 0.0
    if sizes.min() > 0 and sizes.max() > 2 * sizes.min():
        slope = max(float(np.polyfit(sizes, transfer_ns, 1)[0]), 0.0)
    base = float(np.median(sizes))

    def cost(operation: int, size_bytes: int) -> int | None:
        known = model(operation, size_bytes)
        return known if known is not None else round(median_ns + slope * max(size_bytes - base, 0.0))

    return cost
