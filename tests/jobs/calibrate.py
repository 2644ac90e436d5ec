"""Finds the strength at which a cause costs what it is meant to cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.truth import Cost, cost_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.plan import Cause, Plan

ROUNDS = 10


def calibrate(plan: Plan, causes: Sequence[Cause], cause: Cause, low: float, high: float) -> Cost | None:
    """Set a cause's strength so that its own removal saves between these shares of the period.

    Returns:
        What it costs then, or nothing if no strength was found.
    """
    target = (low + high) / 2
    cause.strength = cause.start(target)
    before: tuple[float, float] | None = None
    for _ in range(ROUNDS):
        cost = cost_of(plan, causes, cause)
        share = share_of(cause, cost)
        if low <= share <= high:
            return cost
        slope = 0.0
        if before is not None and cause.strength != before[0]:
            slope = (share - before[1]) / (cause.strength - before[0])
        if slope < 0 and cause.strength > 20 * cause.start(target):
            return None  # it costs no more however strong it is
        before = (cause.strength, share)
        if slope > 0:
            cause.strength = max(0.0, cause.strength + (target - share) / slope)
        elif share < low:
            cause.strength = cause.strength * 1.5 + 0.3 * cause.start(target)
        else:
            cause.strength *= 0.6
        if cause.strength == before[0]:
            return None
    return None


def share_of(cause: Cause, cost: Cost) -> float:
    """Return what a cause costs, as a share of the mean period; a one-off, in computing times of a step."""
    if cause.statistic == "one_off":
        return cost.once_ns[0] / cause.plan.compute_ns
    figure = cost.median_ns if cause.statistic == "median" else cost.mean_ns
    return figure[0] / cost.period_ns
