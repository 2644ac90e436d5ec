"""Draws jobs: what is wrong with them, at which size, and what is true of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.jobs.calibrate import calibrate, share_of
from tests.jobs.causes import collective, host, other, output, ranks
from tests.jobs.causes import input as inputs
from tests.jobs.plan import Cause, Plan, draw_plan
from tests.jobs.render import render
from tests.jobs.truth import Cost, cost_of, simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUILDERS: tuple[type[Cause], ...] = (
    inputs.DataLoader,
    inputs.DataLoaderPeriodic,
    inputs.PageableCopy,
    inputs.HostPreparation,
    host.HostSync,
    host.HostSyncMany,
    host.ThreadContention,
    host.GarbageCollection,
    host.GcAndEmptyCache,
    host.HostPauseRotating,
    host.AllocatorRetries,
    host.PerShapeSearch,
    host.Recompilation,
    collective.HostSyncLimiter,
    collective.ManySmallCollectives,
    collective.ExposedLastBucket,
    collective.LateIssue,
    collective.SlowLink,
    collective.Protocol,
    collective.CommunicatorSetup,
    collective.Contention,
    collective.QueueOrder,
    collective.EarlyReceive,
    collective.ExtraCollective,
    ranks.WorkImbalance,
    ranks.SlowRank,
    ranks.ProfilerStartSkew,
    output.CheckpointOnOneRank,
    output.CheckpointBlocking,
    output.CheckpointStaging,
    output.Logging,
    output.OffloadExposed,
    output.ColdStart,
    output.Backpressure,
    other.LaunchBound,
    other.SlowStage,
    other.UnrecordedGraphs,
    other.LostKernels,
    other.Fragmentation,
    other.Leak,
)
HEALTHY = "gpu_work"
HALF = (0.005, 0.014)  # of the period: less than half of what is worth a finding (3 %)
TRIES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is true of a job.

    Attributes:
        cause: The costliest cause; `gpu_work` where nothing is wrong.
        also: The other cause of a job that has two.
        culprits: Whose fault it is; None where no rank is to be named.
        statistic: Which figure the cost is: `median`, `mean`, `one_off` or `none`.
        low_ns, high_ns: What removing the cause alone saves, from the least to the most that is right.
        graded: The cost is to be compared; a protocol's is known to nobody but the network.
    """

    cause: str
    also: str = ""
    culprits: frozenset[int] | None = None
    statistic: str = "none"
    low_ns: float = 0.0
    high_ns: float = 0.0
    graded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and what is true of it."""

    seed: int
    kind: str
    plan: Plan
    causes: tuple[Cause, ...]
    truth: Truth


def draw(seed: int) -> Job:
    """Draw the job of a seed: three in five with one cause, the others with two, half of one, or none.

    Raises:
        RuntimeError: No job could be made of this seed: a builder cannot reach the costs that it claims.
    """
    rng = random.Random(seed)
    fate = rng.random()
    kind = "single" if fate < 0.6 else "pair" if fate < 0.75 else "half" if fate < 0.85 else "healthy"
    makers: dict[str, Callable[[int, random.Random], Job | None]] = {
        "single": _single,
        "pair": _pair,
        "half": _half,
        "healthy": _healthy,
    }
    for _ in range(TRIES):
        job = makers[kind](seed, rng)
        if job is not None:
            return job
    message = f"seed {seed}: no job of kind {kind} in {TRIES} tries"
    raise RuntimeError(message)


def write(job: Job, folder: Path) -> None:
    """Run a job and write its traces into a folder, one file a rank."""
    recording, plan = simulate(job.plan, job.causes)
    render(recording, plan, folder)


def build(builder: type[Cause], rng: random.Random) -> tuple[Plan, Cause]:
    """Draw a plan that a builder's cause fits into, and the cause."""
    plan = builder.fit(draw_plan(rng, rng.choice(builder.templates), builder.min_ranks, builder.max_ranks))
    return plan, builder(plan, rng)


def with_cost(plan: Plan, cause: Cause, rng: random.Random) -> Cost | None:
    """Give a cause one of the costs that its builder claims."""
    share = rng.uniform(*cause.shares)
    if cause.statistic == "none":
        cause.strength = cause.start(share)
        return cost_of(plan, [cause], cause)
    cost = calibrate(plan, [cause], cause, 0.9 * share, 1.1 * share)
    return cost if cost is not None and is_told_by(cause, cost) else None


def is_told_by(cause: Cause, cost: Cost) -> bool:
    """Tell whether the cause's statistic is the one that REPORT-JSON asks for: a mean only where medians agree."""
    return cause.statistic != "mean" or max(map(abs, cost.median_ns)) <= 0.005 * cost.period_ns


def truth_of(cause: Cause, cost: Cost, also: str = "") -> Truth:
    figures = {"median": cost.median_ns, "mean": cost.mean_ns, "one_off": cost.once_ns, "none": (0.0, 0.0)}
    low, high = figures[cause.statistic]
    return Truth(
        cause=cause.name,
        also=also,
        culprits=cause.culprits,
        statistic=cause.statistic,
        low_ns=low,
        high_ns=high,
        graded=cause.statistic != "none" and cause.name != "protocol",
    )


def _single(seed: int, rng: random.Random) -> Job | None:
    # The builder comes from the seed alone, so that one which is hard to calibrate is not drawn more rarely.
    builder = BUILDERS[random.Random(f"builder {seed}").randrange(len(BUILDERS))]
    plan, cause = build(builder, rng)
    cost = with_cost(plan, cause, rng)
    if cost is None:
        return None
    return Job(seed=seed, kind="single", plan=plan, causes=(cause,), truth=truth_of(cause, cost))


def _pair(seed: int, rng: random.Random) -> Job | None:
    """Put two causes into one job: the costlier one costs at least one and a half times what the other does."""
    first, second = rng.sample([one for one in BUILDERS if one.pairs and "train" in one.templates], 2)
    least, most = max(first.min_ranks, second.min_ranks), min(first.max_ranks, second.max_ranks)
    if first.name == second.name or least > most:
        return None
    plan = second.fit(first.fit(draw_plan(rng, "train", least, most)))
    causes = (first(plan, rng), second(plan, rng))
    share = rng.uniform(0.15, 0.35)
    if calibrate(plan, causes[:1], causes[0], 0.9 * share, 1.1 * share) is None:
        return None
    if calibrate(plan, causes[1:], causes[1], 0.25 * share, 0.5 * share) is None:
        return None
    costs = [cost_of(plan, causes, cause) for cause in causes]
    if not all(is_told_by(cause, cost) for cause, cost in zip(causes, costs, strict=True)):
        return None
    shares = [max(0.0, share_of(cause, cost)) for cause, cost in zip(causes, costs, strict=True)]
    winner = 0 if shares[0] > shares[1] else 1
    if shares[winner] < 1.5 * shares[1 - winner] or shares[winner] < 0.06:
        return None
    truth = truth_of(causes[winner], costs[winner], causes[1 - winner].name)
    return Job(seed=seed, kind="pair", plan=plan, causes=causes, truth=truth)


def _half(seed: int, rng: random.Random) -> Job | None:
    builder = rng.choice([one for one in BUILDERS if one.pairs])
    plan, cause = build(builder, rng)
    cost = calibrate(plan, [cause], cause, *HALF)
    if cost is None or cost.share > HALF[1]:
        return None
    truth = replace(truth_of(cause, cost), cause=HEALTHY, also=cause.name, culprits=None, graded=False)
    return Job(seed=seed, kind="half", plan=plan, causes=(cause,), truth=truth)


def _healthy(seed: int, rng: random.Random) -> Job | None:
    template = rng.choice(["train", "train", "train", "fsdp", "serve"])
    plan = draw_plan(rng, template, 2 if template == "fsdp" else 1, 1 if template == "serve" else 8)
    return Job(seed=seed, kind="healthy", plan=plan, causes=(), truth=Truth(cause=HEALTHY))
