"""Every figure of a plan with its formula and the values in it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from longpole.costs.collective_bytes import step_messages
from longpole.costs.conventions import CONVENTIONS
from longpole.costs.count_formulas import explain_counts
from longpole.costs.flops import counts
from longpole.costs.formula import Formula, Quantity, quantity
from longpole.costs.memory_explained import explain_memory
from longpole.costs.step_explained import explain_step
from longpole.costs.utilisation import FULL_RATE_S, MFU
from longpole.errors import UsageError
from longpole.report.plan import PlanFigure

if TYPE_CHECKING:
    from longpole.costs.calibration import Calibration
    from longpole.costs.collective_time import CollectiveCosts
    from longpole.costs.step import StepTime
    from longpole.pipeline.plan_config import Planned

ALL = "all"
MICRO_BATCHES = Formula("global_batch/(dp*micro_batch)", "", "micro-batches of a replica in a step, m")
DEVICES = Formula("tp*pp*dp*cp", "devices", "expert parallelism does not multiply: it is carved out of dp · cp · tp")


def explain_plan(planned: Planned, step: StepTime, costs: CollectiveCosts, wanted: str = "") -> list[PlanFigure]:
    """Return figures with their formulas.

    Args:
        planned: The plan.
        step: What a step takes.
        costs: What collectives take.
        wanted: Part of a figure's name, whatever its case; empty or `all` for every figure.

    Raises:
        UsageError: No figure has such a name; the names are listed.
    """
    figures = [
        *_of_layout(planned),
        *_of_parameters(planned, step),
        *_figures(explain_counts(planned.model, planned.work.sequence)),
        *_figures(
            explain_step(planned.model, costs, planned.layout, planned.work, planned.calibration, planned.software)
        ),
        *_figures(explain_memory(planned.model, planned.layout, planned.work, optimizer=planned.optimizer)),
        *_of_messages(planned, step, costs),
        *_of_calibration(step.calibration),
    ]
    if wanted in ("", ALL):
        return figures
    found = [figure for figure in figures if wanted.casefold() in figure.name.casefold()]
    if not found:
        names = ", ".join(dict.fromkeys(figure.name for figure in figures))
        msg = f"--explain {wanted!r}: no figure has that in its name; there are {names}; or all"
        raise UsageError(msg)
    return found


def _figure(one: Quantity) -> PlanFigure:
    return PlanFigure(name=one.name, value=one.value.value, unit=one.unit, formula=one.formula, source=one.source)


def _figures(quantities: tuple[Quantity, ...]) -> list[PlanFigure]:
    return [_figure(one) for one in quantities]


def _of_layout(planned: Planned) -> list[PlanFigure]:
    layout, work = planned.layout, planned.work
    degrees = {name: float(getattr(layout, name)) for name in ("tp", "pp", "dp", "cp")}
    batch = {"global_batch": work.global_batch, "dp": layout.dp, "micro_batch": work.micro_batch}
    return [
        _figure(quantity("devices", DEVICES, **degrees)),
        _figure(quantity("micro-batches", MICRO_BATCHES, **batch)),
    ]


def _of_parameters(planned: Planned, step: StepTime) -> list[PlanFigure]:
    work = planned.work
    counted = counts(planned.model, work.sequence).inputs()
    peak = planned.cluster.device.peak(work.dtype)
    found = []
    for convention in CONVENTIONS.values():
        flops = convention.formula(**counted)
        use = {
            "tokens_per_s": step.tokens_per_s,
            "flops_per_token": flops,
            "devices": planned.layout.world,
            "peak_flops": peak,
        }
        kind = "HFU" if convention.hardware else "MFU"
        used = {name: value for name, value in counted.items() if name in convention.formula.text}
        found.append(_figure(quantity(f"FLOPs per token ({convention.name})", convention.formula, **used)))
        found.append(_figure(quantity(f"{kind} ({convention.name})", MFU, **use)))
    full = {
        "tokens": work.tokens,
        "flops_per_token": planned.convention.formula(**counted),
        "devices": planned.layout.world,
        "peak_flops": peak,
    }
    return [*found, _figure(quantity(f"step at full rate ({planned.convention.name})", FULL_RATE_S, **full))]


def _of_messages(planned: Planned, step: StepTime, costs: CollectiveCosts) -> list[PlanFigure]:
    found = []
    wiring = planned.software.wiring
    for message in step_messages(planned.model, planned.layout, planned.work, wiring, stage=step.stage):
        name = f"{message.dimension} {message.kind}: {message.name} ({message.phase})"
        source = getattr(message.formula, "source", "")
        found.append(
            PlanFigure(name=f"{name}, bytes", value=message.bytes, unit="B", formula=message.explain(), source=source)
        )
        group = planned.cluster.group(planned.layout, message.dimension)
        time = costs.estimate(message.kind, group, message.bytes)
        found.append(
            PlanFigure(name=f"{name}, time", value=time.seconds, unit="s", formula=time.formula, source=time.says)
        )
    return found


def _of_calibration(calibration: Calibration) -> list[PlanFigure]:
    return [
        PlanFigure(
            name=f"calibration {one.name}",
            value=float(getattr(calibration, one.name)),
            unit="s" if one.name.endswith("_s") else "",
            formula="",
            source=f"{calibration.source} constant of the step model",
        )
        for one in fields(calibration)
        if one.name != "source"
    ]
