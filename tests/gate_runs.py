"""Records of benchmarks whose truth is written down: what a step is made of, how processes differ, what changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from longpole.records.run_record import (
    RecordContract,
    RecordCorrectness,
    RecordDesign,
    RecordEnvironment,
    RecordProcess,
    RecordStage,
    RecordUnit,
    RunRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MS = 1_000_000
STEP: Mapping[str, float] = {"input": 20, "forward": 30, "backward": 40, "optimizer": 10}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One version of a benchmark.

    Attributes:
        stages: Stage -> milliseconds of a step.
        noise: Spread of the processes, and of each stage within a process.
        units: Of a process.
        peak_bytes: Of a process.
        extra: Fields of the record, over those made here.
        process: Fields of each process, over those made here.
        unit: Fields of each unit, over those made here.
        items: Of a unit, None for not declared.
    """

    stages: Mapping[str, float] = field(default_factory=lambda: dict(STEP))
    noise: float = 0.01
    units: int = 10
    peak_bytes: int = 1_000_000_000
    extra: Mapping[str, Any] = field(default_factory=dict)
    process: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    unit: Mapping[str, Any] = field(default_factory=dict)
    named_stages: bool = True

    def scaled(self, **factors: float) -> Mapping[str, float]:
        """Return the stages with some of them longer."""
        return {name: ms * factors.get(name, 1.0) for name, ms in self.stages.items()}


def record(bench: Bench, name: str, *, processes: int = 10, seed: int = 0, partner: str = "") -> RunRecord:
    """Draw a record; two with the same moods and one another's names are pairs."""
    own = np.random.default_rng([seed, sum(map(ord, name))])
    moods = np.exp(np.random.default_rng(seed).normal(0, 0.1 if partner else 0.0, processes))
    units, entries = [], []
    for place in range(processes):
        pace = moods[place] * float(np.exp(own.normal(0, bench.noise)))
        units += [_unit(bench, pace, place, own) for _ in range(bench.units)]
        pair = place if partner else None
        fields = {"peak_bytes": bench.peak_bytes, "pair": pair, **bench.process.get(place, {})}
        entries.append(RecordProcess(place, **fields))
    kind = "interleaved" if partner else "sequential"
    design = RecordDesign(kind, "bench", semantic_id="same", partner=partner)  # type: ignore[arg-type]
    fields = {
        "run_id": name,
        "label": name,
        "processes": entries,
        "design": design,
        "environment": RecordEnvironment(informational={"host": "here"}),
        "contract": RecordContract(),
        "correctness": RecordCorrectness(),
        **bench.extra,
    }
    return RunRecord("longpole.record/1", units, **fields)


def pair(base: Bench, new: Bench, *, processes: int = 10, seed: int = 0) -> tuple[RunRecord, RunRecord]:
    """Draw both records of a comparison in pairs."""
    return (
        record(base, "a", processes=processes, seed=seed, partner="b"),
        record(new, "b", processes=processes, seed=seed, partner="a"),
    )


def _unit(bench: Bench, pace: float, process: int, rng: np.random.Generator) -> RecordUnit:
    times = {n: round(ms * MS * pace * float(np.exp(rng.normal(0, bench.noise)))) for n, ms in bench.stages.items()}
    total = sum(times.values())
    stages = {name: RecordStage(time) for name, time in times.items()} if bench.named_stages else {}
    return RecordUnit(total, wall_ns=total, stages=stages, process=process, **bench.unit)
