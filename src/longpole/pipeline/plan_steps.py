"""The step model's constants from steps that a plan's owner measured: `[calibration] steps`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.costs.calibration_fit import FREE, LEAST_STEPS, MeasuredStep, fit_calibration
from longpole.costs.layout import complaints
from longpole.errors import Unanswered, UsageError
from longpole.readers.plan_file.read import PlanFile, refuse_key
from longpole.readers.plan_file.step_log import read_step_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.costs.architecture import Architecture
    from longpole.costs.calibration import Calibration
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.layout import Layout, Work
    from longpole.costs.step_traffic import Software
    from longpole.pipeline.plan_told import Told
    from longpole.readers.plan_file.step_log import LoggedStep

_WITHIN: Final = 2.0
"""Times the mean error, within which nine of ten steps are, if errors are normal: 1.645 · sqrt(pi / 2) = 2.06."""
_LEAST_ERROR: Final = 0.03
"""Promised at best: what steps of one job differ by on shared machines."""
_LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class Fitted:
    """Constants from measured steps.

    Attributes:
        calibration: The constants.
        error_share: Within which nine of ten steps should be; None where too few were held out to tell.
    """

    calibration: Calibration
    error_share: float | None


def fit_to_steps(
    file: PlanFile,
    model: Architecture,
    costs: CollectiveCosts,
    software: Software,
    constants: tuple[Calibration, Told],
    divide: Callable[[PlanFile], tuple[Layout, Work]],
) -> Fitted:
    """Fit what the plan does not state to the steps that it names.

    Args:
        file: The plan.
        model: Whose steps they are.
        costs: Of collectives.
        software: What hid.
        constants: Those that the plan states over the shipped ones, and where to tell what came of it.
        divide: A plan's keys -> layout and work.

    Raises:
        UsageError: Too few steps can be used.
        InputError: The file cannot be read, or has columns that are no keys.
    """
    start, told = constants
    name = str(file.section("calibration")["steps"])
    log = read_step_log(file.folder / name)
    measured, left_out = [], list(log.complaints)
    for logged in log.steps:
        try:
            measured.append(_measured(file, model, logged, divide))
        except UsageError as error:
            left_out.append(f"line {logged.line}: {error}")
    if left_out:
        more = f"; and {len(left_out) - _LISTED} more" if len(left_out) > _LISTED else ""
        told.notes.append(f"{name}: left out: {'; '.join(left_out[:_LISTED])}{more}")
    if len(measured) < LEAST_STEPS:
        says = f"{name}: {len(measured)} steps can be used; expected at least {LEAST_STEPS}, of different layouts"
        raise refuse_key(file.path, "calibration", "steps", says)
    stated = {key.replace("_us", "_s") for key in file.section("calibration")}
    found = fit_calibration(
        measured, costs, software, free=[one for one in FREE if one not in stated] or FREE, start=start
    )
    held_out = found.held_out_error_share
    known = None if isinstance(held_out, Unanswered) else held_out
    says = "too few to hold some out" if known is None else f"{known:.1%} on those held out"
    told.notes.append(
        f"calibrated to {found.steps} steps of {name}: mean error {says}, {found.shipped_error_share:.1%} before"
    )
    if found.at_bounds:
        told.notes.append(
            f"{', '.join(found.at_bounds)} ended at a bound: the fit makes up for something that is not in the model"
        )
    return Fitted(found.calibration, None if known is None else max(_WITHIN * known, _LEAST_ERROR))


def _measured(
    file: PlanFile,
    model: Architecture,
    logged: LoggedStep,
    divide: Callable[[PlanFile], tuple[Layout, Work]],
) -> MeasuredStep:
    """Return a step with the plan's keys, and its own over them.

    Raises:
        UsageError: Its layout does not fit the model.
    """
    sections: dict[str, dict[str, Any]] = {name: dict(keys) for name, keys in file.sections.items()}
    if ("layout", "dp") in logged.keys and ("hardware", "devices") not in logged.keys:
        sections["hardware"].pop("devices", None)
    elif ("hardware", "devices") in logged.keys and ("layout", "dp") not in logged.keys:
        sections.get("layout", {}).pop("dp", None)
    for (section, key), value in logged.keys.items():
        sections.setdefault(section, {})[key] = value
    layout, work = divide(PlanFile(file.path, sections))
    found = complaints(model, layout, work, sections["hardware"].get("devices"))
    if found:
        raise UsageError("; ".join(found))
    return MeasuredStep(model=model, layout=layout, work=work, step_s=logged.step_s, name=f"line {logged.line}")
