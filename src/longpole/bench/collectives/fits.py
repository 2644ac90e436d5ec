"""A cost model for each kind and setting: alpha + gamma * sqrt(S) + S / rate, where the points carry one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.ranks.cost_model import fit_model
from longpole.records.bench_collectives import CollectivesFit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.ranks.cost_model import Model
    from longpole.records.bench_collectives import CollectivesPoint, Placement
    from longpole.settings import Settings

MOST_ERROR: Final = 0.25
"""A fit whose median error over the sizes is larger is no model (our choice: that of `bench io`; the shipped fits have
a median of 4.7 % and a 95th percentile of 24 % over all systems)."""

LEAST_BYTE_SHARE: Final = 0.1
"""Bytes must be this much of the time of the largest size; else the sizes do not show a rate (our choice)."""


def fit_points(points: Sequence[CollectivesPoint], settings: Settings) -> list[CollectivesFit]:
    """Fit each kind, number of ranks and setting, out of place where it was measured so, else in place.

    Args:
        points: Of one record.
        settings: From how many sizes, over how many decades.
    """
    groups: dict[tuple[str, int, str], dict[Placement, list[CollectivesPoint]]] = {}
    for point in points:
        sides = groups.setdefault((point.kind, point.ranks, point.setting), {})
        sides.setdefault(point.placement, []).append(point)
    fits = []
    for (kind, ranks, setting), sides in groups.items():
        placement: Placement = "out_of_place" if _usable(sides.get("out_of_place", [])) else "in_place"
        placement = placement if placement in sides else next(iter(sides))
        fits.append(_fit(kind, ranks, setting, placement, sides[placement], settings))
    return fits


def _usable(points: Iterable[CollectivesPoint]) -> dict[int, list[int]]:
    """Return size -> times, of points that are right and moved something."""
    times: dict[int, list[int]] = {}
    for point in points:
        if isinstance(point.time_ns, int) and point.correctness != "failed" and point.bytes > 0:
            times.setdefault(point.bytes, []).append(point.time_ns)
    return times


def _fit(
    kind: str, ranks: int, setting: str, placement: Placement, points: list[CollectivesPoint], settings: Settings
) -> CollectivesFit:
    times = _usable(points)
    fit = CollectivesFit(kind, ranks, setting, placement, len(times))
    if not times:
        fit.why_none = "no size with a right result"
        return fit
    sizes = np.array([size for size, found in times.items() for _ in found], np.int64)
    taken_ns = np.array([time_ns for found in times.values() for time_ns in found], np.int64)
    model = fit_model(sizes, taken_ns, settings)
    if model is None:
        fit.why_none = (
            f"takes {settings.cost_min_sizes} sizes over {settings.cost_min_decades:g} powers of ten, and a time that"
            f" grows with them; there are {len(times)} from {min(times):,} to {max(times):,} B"
        )
        return fit
    largest = max(times)
    byte_share = largest / model.rate / predict_ns(model.alpha_ns, model.gamma, model.rate, largest)
    if byte_share < LEAST_BYTE_SHARE:
        fit.why_none = f"at the largest size, {largest:,} B, bytes are hardly part of the time: measure larger ones"
        return fit
    errors = _errors(model, times)
    fit.error_median, fit.error_max = float(np.median(errors)), float(errors.max())
    if fit.error_median > MOST_ERROR:
        fit.why_none = f"the curve misses the sizes by {fit.error_median:.0%} (median), more than {MOST_ERROR:.0%}"
        return fit
    fit.alpha_ns, fit.gamma, fit.gb_per_s = round(model.alpha_ns), model.gamma, model.rate
    fit.half_bytes = round(model.alpha_ns * model.rate)
    return fit


def _errors(model: Model, times: dict[int, list[int]]) -> np.ndarray:
    """Return |fitted / measured - 1| of each size."""
    measured = np.array([np.median(found) for found in times.values()])
    fitted = np.array([predict_ns(model.alpha_ns, model.gamma, model.rate, size) for size in times])
    return np.abs(fitted / measured - 1)


def predict_ns(alpha_ns: float, gamma: float, gb_per_s: float, size_bytes: float) -> float:
    """Return what the model says of a size (DESIGN 3.8).

    >>> predict_ns(1000, 2.0, 10.0, 10_000)
    2200.0
    """
    return float(alpha_ns + gamma * size_bytes**0.5 + size_bytes / gb_per_s)
