"""What is true of a job: its units' periods, measured on the machine itself, and what each cause costs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.jobs.fsdp import write_fsdp
from tests.jobs.machine import run
from tests.jobs.pipeline import write_pipeline
from tests.jobs.serve import write_serve
from tests.jobs.train import write_train
from tests.jobs.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.machine import Recording
    from tests.jobs.plan import Cause, Plan

TEMPLATES = {"train": write_train, "fsdp": write_fsdp, "pipeline": write_pipeline, "serve": write_serve}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a cause costs, in nanoseconds: each figure from the least to the most that is right."""

    median_ns: tuple[float, float]
    mean_ns: tuple[float, float]
    once_ns: tuple[float, float]
    period_ns: float

    @property
    def share(self) -> float:
        """The larger of median and mean, as a share of the mean period."""
        return max(self.median_ns[0], self.mean_ns[0]) / self.period_ns


def simulate(plan: Plan, causes: Sequence[Cause], without: Cause | None = None) -> tuple[Recording, Plan]:
    """Build the job with these causes, but for one, and run it."""
    for cause in causes:
        cause.removed = cause is without
        if cause.stays or not cause.removed:
            plan = cause.tune(plan)
    writer = Writer(plan, causes)
    starts = plan.knob("starts", {})
    return run(TEMPLATES[plan.template](writer), plan.knob("physics", plan.physics), starts), plan


def completions(recording: Recording, steps: int) -> tuple[int, list[int]]:
    """Return when the first unit begins, and when each is complete on all ranks (DESIGN 3.2)."""
    bounds = step_bounds(recording)
    ends = [0] * steps
    for rows in bounds.values():
        for step, (_, end) in enumerate(rows):
            ends[step] = max(ends[step], end)
    for item in recording.device:
        step = step_of(bounds[item.rank], item.called)
        if step >= 0:
            ends[step] = max(ends[step], item.end)
    for step in range(1, steps):
        ends[step] = max(ends[step], ends[step - 1])
    return min(rows[0][0] for rows in bounds.values()), ends


def step_bounds(recording: Recording) -> dict[int, list[tuple[int, int]]]:
    """Return each rank's units: from the start of its step to the next one's, the last to its own end."""
    bounds: dict[int, list[tuple[int, int]]] = {}
    for row in recording.host:
        if "step" in row.args:
            bounds.setdefault(row.rank, []).append((row.start, row.end))
    units = {}
    for rank, rows in sorted(bounds.items()):
        rows.sort()
        units[rank] = [(row[0], after[0]) for row, after in pairwise(rows)] + rows[-1:]
    return units


def step_of(bounds: Sequence[tuple[int, int]], time: int) -> int:
    """Return the step whose start comes last before a time; -1 before the first."""
    step = -1
    for place, (start, _) in enumerate(bounds):
        if start <= time:
            step = place
    return step


def periods_of(recording: Recording, steps: int) -> list[int]:
    """Return the periods of the run; the first unit has none."""
    _, ends = completions(recording, steps)
    return [after - before for before, after in pairwise(ends)]


def cost_of(plan: Plan, causes: Sequence[Cause], cause: Cause) -> Cost:
    """Return what one of a job's causes costs: the job, less the same job without it."""
    given, _ = simulate(plan, causes)
    ways = [simulate(plan, causes, cause)[0]]
    ways += [simulate(plan.with_knobs(**knobs), causes, cause)[0] for knobs in cause.alternatives()]
    period = periods_of(given, plan.steps)
    start, ends = completions(given, plan.steps)
    medians, means, onces = [], [], []
    for way in ways:
        other = periods_of(way, plan.steps)
        other_start, other_ends = completions(way, plan.steps)
        medians.append(statistics.median(period) - statistics.median(other))
        means.append(statistics.fmean(period) - statistics.fmean(other))
        onces.append(float((ends[-1] - start) - (other_ends[-1] - other_start)))
    return Cost(
        median_ns=(min(medians), max(medians)),
        mean_ns=(min(means), max(means)),
        once_ns=(min(onces), max(onces)),
        period_ns=statistics.fmean(period),
    )
