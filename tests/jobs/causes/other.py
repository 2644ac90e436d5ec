"""Launch-bound loops, slow stages, incomplete traces, memory, and jobs with nothing wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.jobs.pipeline import fit_pipeline
from tests.jobs.plan import US, Cause, Plan, Spot

if TYPE_CHECKING:
    import random

    from tests.jobs.program import Host

GIB = 1 << 30


class LaunchBound(Cause):
    """Kernels are so short that the host cannot launch them as fast as they run (xprof#8, pytorch#162466)."""

    name = "launch_bound"
    templates = ("serve",)
    max_ranks = 1
    shares = (0.25, 0.8)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.parts = rng.randint(4, 6)
        self.kernel_ns = rng.uniform(3, 9) * US

    def start(self, share: float) -> float:
        return 2 * share * 20 * US

    def tune(self, plan: Plan) -> Plan:
        count = plan.layers * self.parts * 4
        plan = replace(plan, compute_ns=round(count * self.kernel_ns), op_ns=round(self.strength))
        if self.removed and plan.knob("back_to_back"):
            plan = plan.with_knobs(physics=replace(plan.physics, gap_ns=0))
        return plan.with_knobs(parts=self.parts, graph=self.removed, runs_ahead=False, sampler=0.004)

    def alternatives(self) -> list[dict[str, Any]]:
        return [{"back_to_back": True}]  # how far apart a graph's kernels run, this trace does not tell


class SlowStage(Cause):
    """One stage of a pipeline takes longer than the others: slower, or with more layers."""

    name = "slow_stage"
    templates = ("pipeline",)
    min_ranks = 2
    max_ranks = 4
    shares = (0.08, 0.4)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.stage = rng.randrange(plan.ranks)
        self.culprits = frozenset({self.stage})

    @classmethod
    def fit(cls, plan: Plan) -> Plan:
        return fit_pipeline(plan)

    def start(self, share: float) -> float:
        return share / (1 - share)

    def scale(self, spot: Spot) -> float:
        rank = spot.rank
        return 1.0 + self.strength if rank == self.stage and not self.removed else 1.0


class UnrecordedGraphs(Cause):
    """Kernels of most graph launches are missing from the trace (TraceLens#728, Hyperloom#1047)."""

    name = "unknown_incomplete_trace"
    templates = ("serve",)
    max_ranks = 1
    statistic = "none"
    shares = (0.1, 0.2)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.recorded = frozenset(rng.sample(range(plan.steps), rng.randint(0, 2)))

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(graph=True, graphs_recorded=self.recorded)


class LostKernels(Cause):
    """The profiler's buffers ran full: in every step, a long run of kernels is not in the trace."""

    name = "unknown_incomplete_trace"
    templates = ("train",)
    max_ranks = 1
    statistic = "none"
    shares = (0.1, 0.2)
    stays = True
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        first = rng.uniform(0.05, 0.4)
        self.lost = (first, first + rng.uniform(0.35, 0.55))

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(lost=self.lost)


def memory_row(host: Host, allocated: int, reserved: int, size: int) -> None:
    """Write what the profiler writes at an allocation when it records memory."""
    args: dict[str, Any] = {
        "Total Reserved": reserved,
        "Total Allocated": allocated,
        "Bytes": size,
        "Addr": 139_000_000_000_000 + size,
        "Device Id": host.rank % 8,
        "Device Type": 1,
        "Ev Idx": 0,
    }
    host.mark("[memory]", "cpu_instant_event", args)


class Fragmentation(Cause):
    """Much more is reserved than allocated, and an allocation still has to go to the driver (pytorch#35901)."""

    name = "fragmentation"
    max_ranks = 2
    statistic = "none"
    shares = (0.3, 0.6)
    pairs = False

    def start(self, share: float) -> float:
        return share

    def at(self, spot: Spot) -> None:
        place, host, layer = spot.place, spot.host, spot.layer
        if place not in ("forward", "backward"):
            return
        reserved = 76 * GIB
        live = round(reserved * (1 - self.strength))
        size = round((0.1 + 0.05 * layer) * GIB / 10)
        memory_row(host, live + layer * size, reserved, size if place == "forward" else -size)


class Leak(Cause):
    """Every step leaves some memory allocated."""

    name = "leak"
    max_ranks = 2
    statistic = "none"
    shares = (0.01, 0.05)
    pairs = False

    def start(self, share: float) -> float:
        return share

    def at(self, spot: Spot) -> None:
        place, host, step, layer = spot.place, spot.host, spot.step, spot.layer
        if place not in ("forward", "backward"):
            return
        base = round(30 * GIB * (1 + self.strength * step))
        size = round(0.4 * GIB)
        memory_row(host, base + layer * size, base + 8 * size, size if place == "forward" else -size)
