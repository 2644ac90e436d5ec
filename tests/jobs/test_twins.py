"""Every cause, on a small job that has it by construction, and on its twin: the same job without it.

job    one plan, one seed, one strength ──► run with the cause    ──► the report names it, its ranks and its cost
                                        └─► run without the cause ──► the report has no finding at all

The seeds and strengths were looked for once and are written down, so that nothing is calibrated here: each costs at
least twice what is worth a finding. Bad luck does not fail these tests; a rule that does not see its own cause does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES, NO_WAIT
from tests.jobs.causes import collective, host, other, output, ranks
from tests.jobs.causes import input as inputs
from tests.jobs.confusion import report_of
from tests.jobs.draw import BUILDERS, Job, truth_of
from tests.jobs.plan import MS, Cause, Plan, draw_plan
from tests.jobs.render import render
from tests.jobs.score import NO_FIGURE, NO_VERDICT, judge
from tests.jobs.truth import cost_of, simulate

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_BUILDER = {
    "gpu_work": "the absence of any cause: every twin here is a test of it",
}
"""Causes that no builder can make, and why."""


@dataclass(frozen=True, kw_only=True)
class Twins:
    """A job with a cause, small enough to be reported on in a second.

    Attributes:
        builder: What builds the cause.
        seed: Draws names, places and the ranks at fault.
        share: What the strength is guessed from: about the share of the period that the cause costs.
        ms: Kernels of a step, in ms.
        plan: What else differs from two ranks, six steps and four layers, all steps ending in a synchronisation.
        template: The program; the builder's first one where not given.
        variant: Tells twins of one builder apart.
        calm: The twin keeps the cause with this strength instead of losing it: it then records as much, without harm.
    """

    builder: type[Cause]
    seed: int
    share: float
    ms: int = 60
    plan: dict[str, Any] = field(default_factory=dict)
    template: str = ""
    variant: str = ""
    calm: float | None = None

    def __str__(self) -> str:
        return f"{self.builder.name}-{self.variant}" if self.variant else self.builder.name

    def build(self) -> tuple[Plan, Cause]:
        """Build the job; the same one on every call."""
        rng, builder = random.Random(self.seed), self.builder
        drawn = draw_plan(rng, self.template or builder.templates[0], builder.min_ranks, builder.max_ranks)
        size = max(builder.min_ranks, min(2, builder.max_ranks))
        small = replace(drawn, ranks=size, steps=6, layers=4, compute_ns=self.ms * MS, pace="step")
        plan = builder.fit(replace(small, **self.plan))
        cause = builder(plan, rng)
        cause.strength = cause.start(self.share)
        return plan, cause


TWINS = (
    Twins(builder=inputs.DataLoader, seed=2, share=0.3),
    Twins(builder=inputs.DataLoaderPeriodic, seed=1, share=0.25),
    Twins(builder=inputs.PageableCopy, seed=1, share=0.25),
    Twins(builder=inputs.HostPreparation, seed=1, share=0.3),
    Twins(builder=host.HostSync, seed=1, share=0.12),
    Twins(builder=host.HostSyncMany, seed=1, share=0.18),
    Twins(builder=host.ThreadContention, seed=2, share=0.45),
    Twins(builder=host.GarbageCollection, seed=4, share=0.4),
    Twins(builder=host.GcAndEmptyCache, seed=1, share=0.4),
    Twins(builder=host.HostPauseRotating, seed=1, share=0.4),
    Twins(builder=host.AllocatorRetries, seed=1, share=0.3),
    Twins(builder=host.PerShapeSearch, seed=1, share=4.5),
    Twins(builder=host.Recompilation, seed=1, share=5.5),
    Twins(builder=collective.HostSyncLimiter, seed=1, share=0.15),
    Twins(builder=collective.ManySmallCollectives, seed=1, share=0.3),
    Twins(builder=collective.ExposedLastBucket, seed=1, share=0.2),
    Twins(builder=collective.LateIssue, seed=1, share=0.1),
    Twins(builder=collective.SlowLink, seed=2, share=0.2, ms=100, variant="group"),
    Twins(builder=collective.SlowLink, seed=1, share=0.85, template="pipeline", variant="pair"),
    Twins(builder=collective.Protocol, seed=1, share=0.3),
    Twins(builder=collective.CommunicatorSetup, seed=1, share=6.0),
    Twins(builder=collective.Contention, seed=1, share=0.35),
    Twins(builder=collective.QueueOrder, seed=1, share=0.12, variant="one hardware queue"),
    Twins(builder=collective.EarlyReceive, seed=5, share=0.12, variant="early receive"),
    Twins(builder=collective.ExtraCollective, seed=3, share=0.2, variant="buffers"),
    # With two buckets, what is reduced again has as many bytes as the gradients had.
    Twins(builder=collective.ExtraCollective, seed=2, share=0.0766, plan={"buckets": 2}, variant="gradients"),
    Twins(builder=ranks.WorkImbalance, seed=1, share=0.2),
    Twins(builder=ranks.SlowRank, seed=1, share=0.3),
    Twins(builder=ranks.ProfilerStartSkew, seed=1, share=4.0),
    Twins(builder=output.CheckpointOnOneRank, seed=2, share=0.3),
    Twins(builder=output.CheckpointBlocking, seed=1, share=0.3),
    Twins(builder=output.CheckpointStaging, seed=1, share=0.2),
    Twins(builder=output.Logging, seed=4, share=0.6),
    Twins(builder=output.OffloadExposed, seed=1, share=0.5),
    Twins(builder=output.ColdStart, seed=1, share=6.0),
    Twins(builder=output.Backpressure, seed=3, share=0.6),
    Twins(builder=other.LaunchBound, seed=2, share=0.5, plan={"layers": 12, "steps": 4}),
    Twins(builder=other.SlowStage, seed=1, share=0.25),
    Twins(builder=other.UnrecordedGraphs, seed=1, share=0.2, variant="graphs"),
    Twins(builder=other.LostKernels, seed=1, share=0.2, variant="lost kernels"),
    Twins(builder=other.Fragmentation, seed=1, share=0.45, calm=0.05),
    Twins(builder=other.Leak, seed=1, share=0.03, calm=0.0),
)


def report(plan: Plan, causes: list[Cause], folder: Path, without: Cause | None = None) -> dict[str, Any]:
    recording, tuned = simulate(plan, causes, without)
    render(recording, tuned, folder)
    return report_of(folder)


@pytest.mark.parametrize("twins", TWINS, ids=str)
def test_the_cause_is_named_with_its_ranks_and_its_cost(twins: Twins, tmp_path: Path) -> None:
    """It is the long pole where it costs time, and the only finding that there is."""
    plan, cause = twins.build()
    cost = cost_of(plan, [cause], cause)
    truth = truth_of(cause, cost)
    if truth.graded:
        least = 2 * Settings().finding_min_share * cost.period_ns
        assert truth.low_ns >= least, "by construction: a job that does not wait long enough tests nothing"

    document = report(plan, [cause], tmp_path)

    job = Job(seed=twins.seed, kind="single", plan=plan, causes=(cause,), truth=truth)
    verdict = judge(job, document)
    assert (verdict.cause_right, verdict.rank_right, verdict.cost_right) == (True, True, True), (verdict, truth)
    assert set(verdict.other_findings) == {cause.name}
    if cause.name in (*NO_FIGURE, NO_VERDICT):
        mine = next(one for one in document["findings"] if one["cause"] == cause.name)
        assert mine["cost_ns_per_unit"] == 0


@pytest.mark.parametrize("twins", TWINS, ids=str)
def test_its_twin_without_the_cause_is_silent(twins: Twins, tmp_path: Path) -> None:
    """No finding of the cause, nor of any other: the device is the long pole."""
    plan, cause = twins.build()
    if twins.calm is not None:
        cause.strength = cause.start(twins.calm)
        document = report(plan, [cause], tmp_path)
    else:
        document = report(*healthy(plan, cause), tmp_path, cause)

    assert [one["cause"] for one in document["findings"]] == [NO_WAIT]
    assert document["long_pole"] == document["findings"][0]["id"]


def healthy(plan: Plan, cause: Cause) -> tuple[Plan, list[Cause]]:
    """Return what to run for a job without the cause, for those that would leave traces of it when removed.

    What is lost from a record stays lost when it costs nothing; and kernels named for a protocol are still named so
    when they are fast.
    """
    if isinstance(cause, other.UnrecordedGraphs):
        return plan.with_knobs(graph=True), []
    if isinstance(cause, other.LostKernels):
        return plan, []
    if isinstance(cause, collective.Protocol):
        cause.removed = True
        fast = cause.tune(plan)
        return replace(fast, dialect=replace(fast.dialect, nccl="rccl")), []
    return plan, [cause]


def test_no_cause_is_forgotten() -> None:
    """Every builder has twins, and every cause a builder or a reason why it has none."""
    assert list(dict.fromkeys(twins.builder for twins in TWINS)) == list(BUILDERS)
    built = {builder.name for builder in BUILDERS}
    assert not built & set(WITHOUT_BUILDER)
    assert built | set(WITHOUT_BUILDER) == set(CAUSES)
    assert len({str(twins) for twins in TWINS}) == len(TWINS)
