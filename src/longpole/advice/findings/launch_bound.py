"""The device runs so short kernels that the host cannot launch them fast enough.

main     ├launch┤  ├launch┤  ├launch┤
device       ═k═       ═k═       ═k═      idle between all of them; nothing waits for the device
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.advice import places
from longpole.advice.suspect import Suspect
from longpole.advice.words import on_ranks
from longpole.records.findings import Evidence
from longpole.timeline.intervals import complement, union
from longpole.whatif.change import GraphLaunches

if TYPE_CHECKING:
    from longpole.advice.scene import RankView, Scene

_REASONS: Final = ("host.dispatch", "host.python", "launch_call", "launch_latency", "kernel_gap")
_SPREAD: Final = 0.5  # of the idle time: what lies in few long gaps is something else


def find(scene: Scene) -> list[Suspect]:
    """Suspect launches where the device idles a little between many short kernels."""
    views = [view for view in scene.views if _is_bound(view)]
    if not views:
        return []
    idle_ns = sum(scene.idle_ns(reason) for reason in _REASONS)
    ranks = [view.rank for view in views]
    n, mean_ns = _kernels(views[0])
    first = int(np.argmin(views[0].device_start_ns))
    return [
        Suspect(
            cause="launch_bound",
            ranks=ranks,
            says=f"launch bound: {n:,.0f} kernels of {mean_ns / 1000:.3g} µs per unit, and the device waits for each"
            f" to be launched: {{cost}}{on_ranks(scene, ranks)}",
            evidence=[
                Evidence("kernels per unit", round(n), places.span(views[0], first)),
                Evidence("kernel_ns, mean", round(mean_ns), places.span(views[0], first)),
                Evidence("idle_ns per unit, between launches", idle_ns, places.span(views[0], first)),
            ],
            remove=[GraphLaunches()],
            ledger_ns=idle_ns,
            what_if=["--graph-launches"],
            tier=3,
        )
    ]


def _kernels(view: RankView) -> tuple[float, float]:
    """Return how many device spans a steady unit has, and their mean length in ns."""
    inside = np.isin(view.graph.spans.unit, view.steady_places)
    n = int(inside.sum())
    total_ns = int((view.device_end_ns - view.device_start_ns)[inside].sum())
    return n / max(len(view.steady_places), 1), total_ns / max(n, 1)


def _is_bound(view: RankView) -> bool:
    """Tell whether a rank idles a little between many short kernels."""
    if not view.graph.has_device or len(view.steady_places) == 0:
        return False
    scene = view.scene
    n, mean_ns = _kernels(view)
    if n == 0 or mean_ns > scene.settings.small_kernel_max_ns:
        return False
    reasons_ns = sum(
        unit.ledger.idle_ns[reason] for unit in scene.counted(view.digest.rows[0]) for reason in _REASONS
    ) / max(len(scene.counted(view.digest.rows[0])), 1)
    if reasons_ns < scene.settings.finding_min_share * scene.period_ns / 2:
        return False
    ran = union(view.device_start_ns, view.device_end_ns)
    if len(ran.start_ns) == 0:  # kernels without length
        return False
    gaps = complement(ran, int(ran.start_ns[0]), int(ran.end_ns[-1]))
    length_ns = gaps.end_ns - gaps.start_ns
    short_ns = int(length_ns[length_ns < scene.settings.pause_min_ns].sum())
    return short_ns >= _SPREAD * int(length_ns.sum())
