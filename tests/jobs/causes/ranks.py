"""Jobs in which some ranks are slower than others, or are only recorded later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import Cause, Plan, Spot

if TYPE_CHECKING:
    import random


class WorkImbalance(Cause):
    """Ranks get batches of other lengths: every step runs at the pace of the longest (UniRL#45)."""

    name = "work_imbalance"
    min_ranks = 2
    shares = (0.06, 0.35)
    stays = True

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.draws = {(rank, step): rng.uniform(-1, 1) for rank in range(plan.ranks) for step in range(plan.steps)}

    def start(self, share: float) -> float:
        return min(0.9, share * 2)

    def tokens(self, rank: int, step: int) -> int:
        """Return a batch's length: the plan's, more or less by up to the strength."""
        spread = min(0.95, self.strength)
        return max(64, round(self.plan.tokens * (1 + spread * self.draws[rank, step]) / 8) * 8)

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(tokens={key: self.length(*key) for key in self.draws})

    def length(self, rank: int, step: int) -> int:
        """Return a batch's length, or what it would be if the step's tokens were spread evenly."""
        if not self.removed:
            return self.tokens(rank, step)
        return round(sum(self.tokens(one, step) for one in range(self.plan.ranks)) / self.plan.ranks)

    def scale(self, spot: Spot) -> float:
        rank, step, phase = spot.rank, spot.step, spot.place
        if phase not in ("forward", "backward", "loss"):
            return 1.0
        return self.length(rank, step) / self.plan.tokens


class SlowRank(Cause):
    """One rank's device is slower: same work, same shapes, every kernel longer (vllm#21852)."""

    name = "slow_rank"
    templates = ("train", "train", "fsdp")
    min_ranks = 2
    shares = (0.06, 0.5)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.rank = rng.randrange(plan.ranks)
        self.culprits = frozenset({self.rank})

    def start(self, share: float) -> float:
        return share / (1 - share)

    def scale(self, spot: Spot) -> float:
        rank = spot.rank
        return 1.0 + self.strength if rank == self.rank else 1.0


class ProfilerStartSkew(Cause):
    """Profilers start at other times: the first recorded step of the others waits for the last to start."""

    name = "profiler_start_skew"
    min_ranks = 2
    statistic = "none"
    shares = (1.0, 8.0)
    pairs = False

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.late = rng.randrange(plan.ranks)

    def start(self, share: float) -> float:
        return share * self.plan.compute_ns

    def tune(self, plan: Plan) -> Plan:
        return plan.with_knobs(starts={self.late: round(self.strength)})
