"""Tables of timed operations of a small job, run by a machine that only knows programs and who waits for whom.

The job: two pipeline stages, two data-parallel ranks, three micro-batches, one forward one backward.

    stage 0   F0 s0 F1 (s1 r0) B0 F2 (s2 r1) B1 r2 B2 | grads-reduce-scatter | optimizer
    stage 1   r0 F0 B0 (s0 r1) F1 B1 (s1 r2) F2 B2 s2 | grads-reduce-scatter | optimizer
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import polars as pl

N_DP = 2
N_STAGES = 2
Row = dict[str, Any]
Op = tuple[str, int]  # optype and number

F, B = "forward-compute", "backward-compute"
_FS, _FR, _BS, _BR = "forward-send", "forward-recv", "backward-send", "backward-recv"
_TAIL: list[list[Op]] = [[("grads-reduce-scatter", 0)], [("optimizer", 0)]]
PROGRAMS: list[list[list[Op]]] = [
    [
        [(F, 0)], [(_FS, 0)], [(F, 1)], [(_FS, 1), (_BR, 0)], [(B, 0)], [(F, 2)], [(_FS, 2), (_BR, 1)], [(B, 1)],
        [(_BR, 2)], [(B, 2)], *_TAIL,
    ],
    [
        [(_FR, 0)], [(F, 0)], [(B, 0)], [(_BS, 0), (_FR, 1)], [(F, 1)], [(B, 1)], [(_BS, 1), (_FR, 2)], [(F, 2)],
        [(B, 2)], [(_BS, 2)], *_TAIL,
    ],
]  # fmt: skip
WORK_MS = {F: 10.0, B: 20.0, _FS: 1.0, _BS: 1.0, "grads-reduce-scatter": 2.0, "optimizer": 3.0}


@dataclass
class Job:
    """What each operation of the job takes.

    Attributes:
        slow: Factor on the computation of some (dp, stage).
        slow_in: The same in one step only: (step, dp, stage).
        work_ms: What a type takes.
        steps: Numbers of the steps.
    """

    slow: Mapping[tuple[int, int], float] = field(default_factory=dict)
    slow_in: Mapping[tuple[int, int, int], float] = field(default_factory=dict)
    work_ms: Mapping[str, float] = field(default_factory=lambda: WORK_MS)
    steps: tuple[int, ...] = (7,)

    def rows(self) -> list[Row]:
        """Return the job's operations as a user would write them."""
        return [row for step in self.steps for row in _Step(self, step).run()]

    def takes_ms(self, step: int, dp: int, stage: int, name: str) -> float:
        """Return what an operation takes once it may start."""
        work = self.work_ms[name.replace("-recv", "-send")]
        if not name.endswith("-compute"):
            return work
        return work * self.slow.get((dp, stage), 1.0) * self.slow_in.get((step, dp, stage), 1.0)


class _Step:
    """One step: every worker walks through its program, and waits where it has to."""

    def __init__(self, job: Job, step: int) -> None:
        self.job, self.step = job, step
        self.clock = {(dp, stage): 0.0 for dp in range(N_DP) for stage in range(N_STAGES)}
        self.at = dict.fromkeys(self.clock, 0)
        self.found: list[Row] = []

    def run(self) -> list[Row]:
        while any(self.at[worker] < len(PROGRAMS[worker[1]]) for worker in self.clock):
            moved = [self._advance(worker) for worker in self.clock if self.at[worker] < len(PROGRAMS[worker[1]])]
            assert any(moved), "the programs wait for each other"
        return self.found

    def _advance(self, worker: tuple[int, int]) -> bool:
        """Finish what a worker is at, if all that it waits for has arrived."""
        ends = [self._end(worker, op) for op in PROGRAMS[worker[1]][self.at[worker]]]
        if any(end is None for end in ends):
            return False
        for (name, number), end in zip(PROGRAMS[worker[1]][self.at[worker]], ends, strict=True):
            assert end is not None
            self._note(worker, name, number, end)
        self.clock[worker] = max(end for end in ends if end is not None)
        self.at[worker] += 1
        return True

    def _end(self, worker: tuple[int, int], op: Op) -> float | None:
        dp, stage = worker
        name, number = op
        takes = self.job.takes_ms(self.step, dp, stage, name)
        arrived = [self._arrival(peer, other, number) for peer, other in _peers(dp, stage, name)]
        if any(time is None for time in arrived):
            return None
        return max([self.clock[worker], *(time for time in arrived if time is not None)]) + takes

    def _arrival(self, peer: tuple[int, int], name: str, number: int) -> float | None:
        """Return when a worker came to an operation, None if it has not."""
        for row in self.found:
            if (row["dp_rank"], row["stage"], row["optype"], row["seq_id"]) == (*peer, name, number):
                return float(row["start_ts"]) * 1000
        program = PROGRAMS[peer[1]]
        if self.at[peer] < len(program) and (name, number) in program[self.at[peer]]:
            return self.clock[peer]
        return None

    def _note(self, worker: tuple[int, int], name: str, number: int, end: float) -> None:
        dp, stage = worker
        self.found.append(
            {
                "step": self.step,
                "rank": stage * N_DP + dp,
                "dp_rank": dp,
                "stage": stage,
                "optype": name,
                "start_ts": self.clock[worker] / 1000,
                "duration": (end - self.clock[worker]) / 1000,
                "seq_id": number,
            }
        )


def _peers(dp: int, stage: int, name: str) -> list[tuple[tuple[int, int], str]]:
    if name == "grads-reduce-scatter":
        return [((other, stage), name) for other in range(N_DP)]
    swap = {_FS: _FR, _FR: _FS, _BS: _BR, _BR: _BS}
    return [((dp, 1 - stage), swap[name])] if name in swap else []


def frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Return rows as a frame."""
    import polars as pl

    return pl.DataFrame(list(rows), infer_schema_length=None)


def write_table(path: Path, rows: Iterable[Row]) -> Path:
    """Write rows as Parquet or CSV, by the name's ending."""
    table = frame(rows)
    if path.suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)
    return path
