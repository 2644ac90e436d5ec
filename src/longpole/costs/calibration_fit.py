"""The step model's constants fitted to a user's own steps, with the error on steps that were not fitted to.

Least squares of log(predicted / measured) under a soft-L1 loss, within `calibration.BOUNDS`. A constant that the steps
say nothing about stays where it was: leaving its place costs a little, and nothing makes up for it. What ends at a
bound is told, for then the model makes up for something that it does not have.

The error that is promised comes from steps that were held out: every fourth is predicted by a fit to the others. Then
all of them are fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite, log
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.calibration import BOUNDS, Calibration
from longpole.costs.collective_time import CollectiveCosts
from longpole.costs.step import step_time
from longpole.errors import Unanswered, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.costs.architecture import Architecture
    from longpole.costs.cluster import Cluster
    from longpole.costs.layout import Layout, Work
    from longpole.costs.step_traffic import Software

FREE: Final = (
    "matmul_of_ceiling",
    "attention_of_matmul",
    "memory_share",
    "launch_s",
    "host_s",
    "half_tiles",
    "scale_up",
    "network",
)
"""What is fitted; contention is too small to be seen in steps."""
LEAST_STEPS: Final = 3
LEAST_HELD_OUT: Final = 2  # below, an error on them says nothing
_EVERY: Final = 4  # is held out
_PRIOR: Final = 0.05  # of log time: what it costs one step to take a constant across its whole range
_LOSS_SCALE: Final = (
    0.05  # of log time, from which a step counts less: it was disturbed, or is not what the model knows
)
_AT_BOUND: Final = 0.01  # of the range
_SLOW_HOST: Final = {
    "host_s": 60e-6,
    "launch_s": 10e-6,
}  # where a second search begins: launch-bound, as vTrain's steps
_STEP: Final = 1e-3  # of the range, to take a slope by
_ROUNDS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """A step that was timed.

    Attributes:
        model, layout, work: What ran.
        step_s: How long it took, the median of many.
        name: What to call it.
    """

    model: Architecture
    layout: Layout
    work: Work
    step_s: float
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCalibration:
    """Constants, and how well they hold.

    Attributes:
        calibration: The constants.
        steps: How many were fitted to.
        fitted_error_share: Mean |predicted / measured - 1| over these.
        held_out_error_share: The same over steps that a fit had not seen; unanswered where they are too few.
        shipped_error_share: The same with the constants that the search began with, over all of them.
        at_bounds: Constants that ended at a bound.
    """

    calibration: Calibration
    steps: int
    fitted_error_share: float
    held_out_error_share: float | Unanswered
    shipped_error_share: float
    at_bounds: tuple[str, ...]


def fit_calibration(
    measured: Sequence[MeasuredStep],
    cluster: Cluster | CollectiveCosts,
    software: Software | None = None,
    *,
    free: Sequence[str] = FREE,
    start: Calibration | None = None,
) -> FittedCalibration:
    """Fit constants to measured steps of one cluster.

    Args:
        measured: At least `LEAST_STEPS`; the more they differ in layout and batch, the more they say.
        cluster: What they ran on, or its costs of collectives.
        software: What the framework let hide.
        free: Which constants may move.
        start: Where they are at first; None for the shipped ones.

    Raises:
        UsageError: There are too few steps, one took no time, or a constant is not known.
    """
    _check(measured, free)
    costs = cluster if isinstance(cluster, CollectiveCosts) else CollectiveCosts(cluster)
    start = (start or Calibration()).on(costs.cluster.device, flash=all(one.work.flash for one in measured))
    fit = _Fit(costs, software, tuple(free), start)
    seen = [one for at, one in enumerate(measured) if at % _EVERY != _EVERY - 1]
    held_out = [one for at, one in enumerate(measured) if at % _EVERY == _EVERY - 1]
    held_out_error: float | Unanswered = Unanswered(
        f"{len(held_out)} steps are too few to test a fit by", ("more measured steps",)
    )
    begins = fit.begins()
    if len(held_out) >= LEAST_HELD_OUT:
        begins = (fit.best(seen, begins),)
        held_out_error = fit.error_share(held_out, begins[0])
    found = fit.best(measured, begins)
    return FittedCalibration(
        calibration=found,
        steps=len(measured),
        fitted_error_share=fit.error_share(measured, found),
        held_out_error_share=held_out_error,
        shipped_error_share=fit.error_share(measured, start),
        at_bounds=tuple(name for name in free if _is_at_bound(name, getattr(found, name))),
    )


class _Fit:
    """A search for constants, in units of their ranges."""

    def __init__(
        self, costs: CollectiveCosts, software: Software | None, free: tuple[str, ...], start: Calibration
    ) -> None:
        self._costs, self._software, self._free, self._start = costs, software, free, start

    def begins(self) -> tuple[Calibration, ...]:
        """Return where searches begin: at the constants that are given, and with a slow host."""
        slow_host: dict[str, Any] = {name: value for name, value in _SLOW_HOST.items() if name in self._free}
        return tuple(dict.fromkeys((self._start, replace(self._start, **slow_host))))

    def best(self, measured: Sequence[MeasuredStep], begins: Sequence[Calibration]) -> Calibration:
        """Return the best end of the searches that begin at these constants."""
        from scipy.optimize import least_squares

        prior = self._places(self._start)

        def residuals(places: Sequence[float]) -> list[float]:
            calibration = self._at(places)
            off = [log(self._predict(one, calibration) / one.step_s) for one in measured]
            return off + [_PRIOR * (place - before) for place, before in zip(places, prior, strict=True)]

        ends = [
            least_squares(
                residuals,
                self._places(begin),
                bounds=(0.0, 1.0),
                loss="soft_l1",
                f_scale=_LOSS_SCALE,
                diff_step=_STEP,
                max_nfev=_ROUNDS,
            )
            for begin in begins
        ]
        found = self._at(min(ends, key=lambda end: end.cost).x)
        return replace(found, source=f"fitted to {len(measured)} steps")

    def error_share(self, measured: Sequence[MeasuredStep], calibration: Calibration) -> float:
        """Return the mean |predicted / measured - 1|."""
        off = [abs(self._predict(one, calibration) / one.step_s - 1.0) for one in measured]
        return sum(off) / len(off)

    def _predict(self, one: MeasuredStep, calibration: Calibration) -> float:
        return step_time(one.model, self._costs, one.layout, one.work, calibration, self._software).total_s

    def _at(self, places: Sequence[float]) -> Calibration:
        values: dict[str, Any] = {}
        for name, place in zip(self._free, places, strict=True):
            low, high = BOUNDS[name]
            values[name] = low + (high - low) * min(max(float(place), 0.0), 1.0)
        return replace(self._start, **values)

    def _places(self, calibration: Calibration) -> list[float]:
        """Return where constants lie in their ranges, a little inside, where a slope can be taken."""
        found = []
        for name in self._free:
            low, high = BOUNDS[name]
            found.append(min(max((getattr(calibration, name) - low) / (high - low), _STEP), 1.0 - _STEP))
        return found


def _is_at_bound(name: str, value: float) -> bool:
    """Tell whether a constant ended at a bound that is not simply the absence of an effect."""
    low, high = BOUNDS[name]
    at_low = value <= low + _AT_BOUND * (high - low) and low > 0
    return at_low or value >= high - _AT_BOUND * (high - low)


def _check(measured: Sequence[MeasuredStep], free: Sequence[str]) -> None:
    if len(measured) < LEAST_STEPS:
        msg = f"{len(measured)} measured steps: expected at least {LEAST_STEPS}, of different layouts or batches"
        raise UsageError(msg)
    unknown = [name for name in free if name not in FREE]
    if unknown or not free:
        msg = f"expected constants among {', '.join(FREE)}; found {', '.join(unknown) or 'none'}"
        raise UsageError(msg)
    for at, one in enumerate(measured):
        if not (isfinite(one.step_s) and one.step_s > 0):
            msg = f"measured step {one.name or at + 1}: expected seconds above 0, found {one.step_s!r}"
            raise UsageError(msg)
