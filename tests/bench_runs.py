"""Records of benchmarks for tests: processes and units around a time, without noise unless asked."""

from __future__ import annotations

import random
from typing import Any

from longpole.records.run_record import (
    SCHEMA,
    RecordDesign,
    RecordEnvironment,
    RecordProcess,
    RecordStage,
    RecordUnit,
    RunRecord,
)

MACHINE: dict[str, Any] = {"cpu": "EPYC"}


def bench_record(
    period_ns: float,
    *,
    label: str,
    day: int = 1,
    processes: int = 3,
    units: int = 4,
    stages: dict[str, float] | None = None,
    noise: float = 0.0,
    benchmark: str = "train",
    machine: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> RunRecord:
    """Return a record of several processes, each with several units of 512 tokens."""
    rng = random.Random(f"{label}{period_ns}")
    made: list[RecordUnit] = []
    for process in range(processes):
        of_process = period_ns * rng.gauss(1, noise)
        for _ in range(units):
            time_ns = round(of_process * rng.gauss(1, noise))
            shares = stages or {}
            made.append(
                RecordUnit(
                    period_ns=time_ns,
                    wall_ns=time_ns,
                    items=512,
                    process=process,
                    stages={name: RecordStage(round(share * time_ns)) for name, share in shares.items()},
                )
            )
    return RunRecord(
        schema=SCHEMA,
        units=made,
        run_id=f"{benchmark}-{label}",
        label=label,
        item_kind="token",
        processes=[RecordProcess(process=process) for process in range(processes)],
        design=RecordDesign(benchmark=benchmark, semantic_id=f"id-{benchmark}"),
        environment=RecordEnvironment(
            must_match=MACHINE if machine is None else machine,
            should_match=settings or {},
            informational={"started": f"2026-09-{day:02}T08:00:00"},
        ),
    )
