"""Jobs that wait for their input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.jobs.plan import MS, Cause, Plan, Spot
from tests.jobs.program import COMPUTE, Task

if TYPE_CHECKING:
    import random


class DataLoader(Cause):
    """The loader is slow in every step, on all ranks or on one (geti#5958, mmf#1166)."""

    name = "data_loader"

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        if plan.ranks > 1 and rng.random() < 0.5:
            self.culprits = frozenset({rng.randrange(plan.ranks)})

    def at(self, spot: Spot) -> None:
        place, host, rank, step = spot.place, spot.host, spot.rank, spot.step
        if place == "loader" and (self.culprits is None or rank in self.culprits):
            host.work(self.plan.jitter(self.strength, 0.08, "load", rank, step))


class DataLoaderPeriodic(Cause):
    """As many workers as batches are ready; every n-th step waits for the next round of them (pytorch#89753)."""

    name = "data_loader_periodic"
    statistic = "mean"
    shares = (0.06, 0.35)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.every = rng.choice([3, 4])
        self.offset = rng.randrange(1, self.every)
        if plan.ranks > 1 and rng.random() < 0.4:
            self.culprits = frozenset({rng.randrange(plan.ranks)})

    def start(self, share: float) -> float:
        return self.every * super().start(share)

    def at(self, spot: Spot) -> None:
        place, host, rank, step = spot.place, spot.host, spot.rank, spot.step
        if place != "loader" or step % self.every != self.offset:
            return
        if self.culprits is None or rank in self.culprits:
            host.work(self.plan.jitter(self.strength, 0.08, "load", rank, step))


class PageableCopy(Cause):
    """Batches lie in pageable memory: the copy blocks the host, and the device before it (pytorch#39694)."""

    name = "pageable_copy"
    shares = (0.06, 0.45)

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.copies = rng.randint(1, 3)
        self.rate = rng.uniform(2.5, 7.0)

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != "h2d":
            return
        for index in range(self.copies):
            ns = max(40_000, self.plan.jitter(self.strength / self.copies, 0.03, "pageable", rank, step, index))
            name = writer.dialect.copy_name("htod", pinned=False)
            copy = Task(name, COMPUTE, ns, "gpu_memcpy", {"bytes": int(ns * self.rate)})
            for op in ("aten::to", "aten::_to_copy", "aten::copy_"):
                host.open(op)
                host.work(writer.host_ns(host, 3000))
            writer.launch(host, copy, call="copy", blocking=True)
            for _ in range(3):
                host.work(1500)
                host.close()


class HostPreparation(Cause):
    """Some ranks prepare their batch on the host for longer than the others; all wait for them (UniRL#45)."""

    name = "host_preparation"
    min_ranks = 2

    def __init__(self, plan: Plan, rng: random.Random) -> None:
        super().__init__(plan, rng)
        self.culprits = frozenset(rng.sample(range(plan.ranks), rng.randint(1, max(1, plan.ranks // 3))))
        self.others_ns = rng.uniform(0.05, 0.2) * MS

    def at(self, spot: Spot) -> None:
        place, writer, host, rank, step = spot.place, spot.writer, spot.host, spot.rank, spot.step
        if place != "prep":
            return
        assert self.culprits is not None
        with writer.activity(host, writer.dialect.preparation):
            if rank in self.culprits:
                host.work(self.plan.jitter(self.strength, 0.05, "prepare", rank, step))
