"""What a job of timed operations would take if nobody straggled, and which part of it makes the difference.

The questions are those of "Understanding Stragglers in Large Model Training Using What-if Analysis" (arXiv 2505.05713):

- *nobody straggles*: every computation takes the mean of its type over all ranks, stages and steps (the same work,
  spread evenly), every transfer the median of its type (what the network can do). Slowdown: replay as recorded over
  that ideal, means over steps.
- *by part*: the ideal with only one part (a type, a stage, a rank) as recorded, over the ideal.
- *explained*: of the difference between recorded and ideal, the share that goes when only one part becomes ideal.

Persistence is ours: the ideal with every worker at its own mean over steps and micro-batches. What that does not
explain moves from rank to rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from longpole.records.operations import OperationKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.operations.build import OperationGraph
    from longpole.records.operations import OperationTable
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """The ideal with one part of the job as recorded.

    Attributes:
        number: Index of the type's first name, the stage, or the data-parallel rank.
        label: What the part is called.
        slowdown: Over the ideal, means over steps.
        step_slowdown: `[S]` float64: the same for each step.
    """

    number: int
    label: str
    slowdown: float
    step_slowdown: Floats


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """The ideal with one worker as recorded.

    Attributes:
        worker: Index into the table's workers.
        bound: The smaller one of its stage's and its data-parallel rank's slowdown; about the most it can be.
        slowdown: Its own, None where it was not replayed.
    """

    worker: int
    bound: float
    slowdown: float | None


@dataclass(frozen=True, slots=True)
class Explained:
    """How much of the slowdown some workers or a stage explain.

    Attributes:
        numbers: Workers, as indices, or the one stage.
        removed: Share of the slowdown that goes when these alone become ideal; above 1 where that helps more.
        added: Share of the slowdown that comes when these alone are as recorded.
    """

    numbers: tuple[int, ...]
    removed: float
    added: float


@dataclass(frozen=True, slots=True)
class Stragglers:
    """What straggling costs, and where it comes from.

    Attributes:
        measured_ns: `[S]` int64 ns: steps as recorded.
        replayed_ns: `[S]` int64 ns: steps of the unchanged replay.
        ideal_ns: `[S]` int64 ns: steps where nobody straggles.
        by_type: Both ends of point-to-point communication in one direction are one part.
        by_stage: All stages.
        by_dp_rank: Data-parallel ranks; of very many those with the most extra work.
        workers: All workers, the worst first; the first few are replayed each.
        one_worker: The worst worker alone; None where there is no slowdown to explain.
        few_workers: The worst few.
        stages: Each stage alone.
        persistent: Share of the slowdown that stays where every worker keeps its own mean pace.
    """

    measured_ns: Ints
    replayed_ns: Ints
    ideal_ns: Ints
    by_type: list[Part]
    by_stage: list[Part]
    by_dp_rank: list[Part]
    workers: list[WorkerPart]
    one_worker: Explained | None
    few_workers: Explained | None
    stages: list[Explained]
    persistent: float | None

    @property
    def slowdown(self) -> float:
        """The replay over the ideal, means over steps."""
        return ratio(self.replayed_ns, self.ideal_ns)

    @property
    def error(self) -> float:
        """What the replay's mean step is off by, as a share of the measured one; negative where it is too fast."""
        return ratio(self.replayed_ns, self.measured_ns) - 1


def ratio(one_ns: Ints, other_ns: Ints) -> float:
    """Return the mean of one over the mean of another; 1 where both are 0."""
    below = float(other_ns.mean())
    return float(one_ns.mean()) / below if below else 1.0


def equalised_ns(table: OperationTable, work_ns: Ints, per: Ints | None = None) -> Ints:
    """Return what operations take where those of one type are alike: `[N]` int64 ns.

    Args:
        table: The operations.
        work_ns: `[N]` int64 ns: what each takes as recorded.
        per: `[N]` int64: operations with different numbers need not be alike; None for one number.

    Computations take the mean, communication the median of its transfer times.
    """
    cell = table.optype.astype(np.int64)
    if per is not None:
        _, place = np.unique(per, return_inverse=True)
        cell = place * len(table.types) + cell
    _, of_row, count = np.unique(cell, return_inverse=True, return_counts=True)
    mean = np.bincount(of_row, weights=work_ns) / count
    # The median of each cell: its middle rows, once they are ordered by cell and time.
    by = np.lexsort((work_ns, of_row))
    first = np.cumsum(count) - count
    low, high = by[first + (count - 1) // 2], by[first + count // 2]
    median = (work_ns[low] + work_ns[high]) / 2
    is_compute = table.kind == OperationKind.COMPUTE
    return np.rint(np.where(is_compute, mean[of_row], median[of_row])).astype(np.int64)


def measure_stragglers(graph: OperationGraph, settings: Settings) -> Stragglers:
    """Replay a job as recorded, without stragglers, and with one part after the other as recorded.

    Args:
        graph: The job.
        settings: `operation_ranks_swept`, `operation_workers_swept`, `operation_worker_share`.
    """
    return _Sweeps(graph, settings).measure()


class _Sweeps:
    """The replays of one job."""

    def __init__(self, graph: OperationGraph, settings: Settings) -> None:
        self.graph, self.settings, self.table = graph, settings, graph.table
        self.ideal_work_ns = equalised_ns(graph.table, graph.work_ns)
        self.replayed_ns = graph.replay_steps_ns(graph.work_ns)
        self.ideal_ns = graph.replay_steps_ns(self.ideal_work_ns)
        self.lost_ns = float(self.replayed_ns.mean() - self.ideal_ns.mean())

    def measure(self) -> Stragglers:
        by_stage = self._parts(self.table.of_worker("stage"), "stage")
        by_dp = self._parts(self.table.of_worker("dp_rank"), "dp")
        workers = self._workers(by_stage, by_dp)
        n_few = -(-len(workers) * round(1000 * self.settings.operation_worker_share) // 1000)
        one, few = workers[:1], workers[: max(n_few, 1)]
        one_worker = self._explained(self.table.worker, [part.worker for part in one], one[0].slowdown)
        few_workers = one_worker if few == one else self._explained(self.table.worker, [part.worker for part in few])
        return Stragglers(
            measured_ns=self.graph.measured_steps_ns(),
            replayed_ns=self.replayed_ns,
            ideal_ns=self.ideal_ns,
            by_type=self._types(),
            by_stage=by_stage,
            by_dp_rank=by_dp,
            workers=workers,
            one_worker=one_worker,
            few_workers=few_workers,
            stages=[
                found
                for part in by_stage
                if (found := self._explained(self.table.of_worker("stage"), [part.number], part.slowdown)) is not None
            ],
            persistent=self._persistent(),
        )

    def _steps_of(self, as_recorded: Flags) -> Ints:
        return self.graph.replay_steps_ns(np.where(as_recorded, self.graph.work_ns, self.ideal_work_ns))

    def _part(self, number: int, label: str, rows: Flags) -> Part:
        steps_ns = self._steps_of(rows)
        each = steps_ns / np.maximum(self.ideal_ns, 1)
        return Part(number, label, ratio(steps_ns, self.ideal_ns), each)

    def _types(self) -> list[Part]:
        """Return the parts by type; a send and a receive of one direction are two ends of one thing."""
        labels: dict[str, list[int]] = {}
        for place, kind in enumerate(self.table.types):
            p2p = kind.kind in (OperationKind.SEND, OperationKind.RECV) and kind.direction
            way = "forward" if kind.direction > 0 else "backward"
            labels.setdefault(f"{way}-send/recv" if p2p else kind.name, []).append(place)
        parts = [
            self._part(places[0], label, np.isin(self.table.optype, places))
            for label, places in labels.items()
            if np.isin(self.table.optype, places).any()
        ]
        return sorted(parts, key=lambda part: -part.slowdown)

    def _parts(self, of_row: NDArray[np.int32], label: str) -> list[Part]:
        """Return the parts by a worker's place; of very many those with the most extra work."""
        numbers, place = np.unique(of_row, return_inverse=True)
        extra = np.bincount(place, weights=self.graph.work_ns - self.ideal_work_ns)
        most = np.argsort(-extra, kind="stable")[: max(self.settings.operation_ranks_swept, 1)]
        chosen = sorted(numbers[most].tolist())
        return [self._part(number, f"{label} {number}", of_row == number) for number in chosen]

    def _workers(self, by_stage: list[Part], by_dp: list[Part]) -> list[WorkerPart]:
        """Return all workers, the worst first: those with the largest bound are replayed, and go by that."""
        stage = {part.number: part.slowdown for part in by_stage}
        dp = {part.number: part.slowdown for part in by_dp}
        bounds = [
            (min(stage.get(worker.stage, 1.0), dp.get(worker.dp_rank, 1.0)), place)
            for place, worker in enumerate(self.table.workers)
        ]
        bounds.sort(key=lambda pair: (-pair[0], pair[1]))
        n_swept = max(self.settings.operation_workers_swept, 1)
        swept = [
            WorkerPart(place, bound, self._part(place, "", self.table.worker == place).slowdown)
            for bound, place in bounds[:n_swept]
        ]
        swept.sort(key=lambda part: (-(part.slowdown or 0.0), part.worker))
        return swept + [WorkerPart(place, bound, None) for bound, place in bounds[n_swept:]]

    def _explained(
        self, of_row: NDArray[np.int32], numbers: list[int], slowdown: float | None = None
    ) -> Explained | None:
        """Return what these numbers explain; `slowdown` is that of their part, where it is known already."""
        if self.lost_ns <= 0:
            return None
        rows = np.isin(of_row, numbers)
        ideal_ns = float(self.ideal_ns.mean())
        removed_ns = float(self.replayed_ns.mean() - self._steps_of(~rows).mean())
        added_ns = float(self._steps_of(rows).mean()) if slowdown is None else slowdown * ideal_ns
        return Explained(tuple(numbers), removed_ns / self.lost_ns, (added_ns - ideal_ns) / self.lost_ns)

    def _persistent(self) -> float | None:
        if self.lost_ns <= 0:
            return None
        own = equalised_ns(self.table, self.graph.work_ns, self.table.worker.astype(np.int64))
        return float(self.graph.replay_steps_ns(own).mean() - self.ideal_ns.mean()) / self.lost_ns
