"""Run records whose truth is written down: what a unit is made of, how runs differ, and what a change did to it.

A unit is a dict of object -> milliseconds; its period is their sum. Two sides of runs are drawn from two such dicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from longpole.advice.verify.effect import Design
from longpole.advice.verify.judge import Question, judge
from longpole.records.run_record import (
    NOT_RECORDED,
    SCHEMA,
    RecordCollective,
    RecordContract,
    RecordCorrectness,
    RecordEnvironment,
    RecordTime,
    RecordUnit,
    RunRecord,
)
from longpole.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.advice.verify.judge import Judgement
    from longpole.records.run_record import Figure

MS = 1_000_000
HEALTHY: Mapping[str, float] = {"compute": 60, "collective": 18, "input": 37, "host": 5}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One version of a job.

    Attributes:
        parts: Object -> milliseconds in a unit.
        items: Of a unit; None for not declared.
        units: How many a run has.
        within: Spread of the units of a run.
        between: Spread of the runs.
        contract, correctness, limits, environment, world: Of every run.
        exposed: Whether the record says what a unit is made of.
        collectives: Kind -> (exposed ms, waiting ms).
    """

    parts: Mapping[str, float] = field(default_factory=lambda: dict(HEALTHY))
    items: int | None = 512
    units: int = 12
    within: float = 0.01
    between: float = 0.005
    contract: RecordContract = field(default_factory=RecordContract)
    correctness: RecordCorrectness = field(default_factory=RecordCorrectness)
    limits: Mapping[str, Figure] = field(default_factory=dict)
    environment: RecordEnvironment = field(default_factory=RecordEnvironment)
    world: int = 4
    exposed: bool = True
    collectives: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    kind: str = "step"

    def run(self, rng: np.random.Generator, label: str = "") -> RunRecord:
        """Draw one run."""
        pace = float(np.exp(rng.normal(0, self.between)))
        return RunRecord(
            schema=SCHEMA,
            units=[self._unit(pace * float(np.exp(rng.normal(0, self.within)))) for _ in range(self.units)],
            run_id=f"{rng.integers(1 << 60):x}",
            label=label,
            unit_kind=self.kind,
            items_per_unit=NOT_RECORDED if self.items is None else self.items,
            world_size=self.world,
            ranks_present=list(range(self.world)),
            collectives=[
                RecordCollective(kind, exposed_ns=round(exposed * MS), waiting_ns=round(waiting * MS))
                for kind, (exposed, waiting) in self.collectives.items()
            ],
            environment=self.environment,
            contract=self.contract,
            correctness=self.correctness,
            limits=dict(self.limits),
        )

    def _unit(self, factor: float) -> RecordUnit:
        times = {name: round(ms * MS * factor) for name, ms in self.parts.items()}
        wall = sum(times.values())
        return RecordUnit(
            period_ns=wall,
            wall_ns=wall,
            objects={name: RecordTime(time) for name, time in times.items()} if self.exposed else {},
            stages={name: _stage(ms * MS * factor) for name, ms in self.stages.items()},
        )

    def runs(self, count: int, seed: int) -> list[RunRecord]:
        """Draw several runs."""
        rng = np.random.default_rng(seed)
        return [self.run(rng, f"run{place}") for place in range(count)]


def _stage(time_ns: float) -> Any:
    from longpole.records.run_record import RecordStage

    return RecordStage(round(time_ns))


def ask(
    before: Sequence[RunRecord], after: Sequence[RunRecord], *, settings: Settings | None = None, **asked: Any
) -> Judgement:
    """Judge two sides; `paired`, `threshold` and `statistic` are of the design, the rest of the question."""
    design = Design(
        threshold=asked.pop("threshold", 0.03),
        paired=asked.pop("paired", False),
        statistic=asked.pop("statistic", "auto"),
    )
    return judge(before, after, Question(design=design, **asked), settings or Settings())


def compare(before: Job, after: Job, *, runs: int = 5, seed: int = 1, **asked: Any) -> Judgement:
    """Judge two versions of a job on as many fresh runs of each."""
    return ask(before.runs(runs, seed), after.runs(runs, seed + 1000), **asked)
