"""Verdicts whose pages are kept: one of each kind, from records with a fixed seed."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from longpole.pipeline.verify import VerifyOptions, verify_runs
from longpole.records.run_record import RecordContract, RecordCorrectness, RecordEnvironment, RecordMetric
from longpole.records.run_record_file import encode_record
from tests.verify_runs import HEALTHY, Job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.run_record import RunRecord
    from longpole.report.verify import Verify

JOB = Job(
    collectives={"all_reduce": (18, 2)},
    limits={"peak_bytes": 61_000_000_000},
    correctness=RecordCorrectness(metrics=[RecordMetric("loss", [2.31], "lower", 0.02)]),
    units=24,
)


def write_records(folder: Path, runs: Sequence[RunRecord], side: str) -> list[str]:
    """Write runs into files, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for place, run in enumerate(runs, 1):
        run.label = f"{side}{place}"
        path = folder / f"{side}{place}.json"
        path.write_bytes(encode_record(run))
        paths.append(str(path))
    return paths


def document(before: Job, after: Job, options: VerifyOptions, runs: int = 5) -> Verify:
    """The verdict on two versions of a job."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = [
            write_records(Path(scratch), job.runs(runs, seed), side)
            for job, seed, side in ((before, 1, "before"), (after, 2, "after"))
        ]
        return verify_runs(paths[0], paths[1], options)


def accepted() -> Verify:
    """Input is prefetched; memory rises and stays within its limit."""
    after = replace(JOB, parts={**HEALTHY, "input": 9}, limits={"peak_bytes": 68_000_000_000})
    return document(JOB, after, VerifyOptions(part="input", limits=["peak_bytes<=80e9"]))


def moved() -> Verify:
    """The sentence of the issue."""
    after = replace(JOB, parts={**HEALTHY, "input": 9, "collective": 46}, collectives={"all_reduce": (46, 29)})
    return document(JOB, after, VerifyOptions(part="input"))


def single_run() -> Verify:
    """One run a side, and a small change."""
    after = replace(JOB, parts={**HEALTHY, "input": 33})
    return document(JOB, after, VerifyOptions(part="input"), runs=1)


def batch_doubled() -> Verify:
    """Twice the items in a longer step."""
    parts = {"compute": 115, "collective": 18, "input": 60, "host": 5}
    after = replace(JOB, parts=parts, items=1024, contract=RecordContract(micro_batch=16))
    return document(replace(JOB, contract=RecordContract(micro_batch=8)), after, VerifyOptions())


def not_verifiable() -> Verify:
    """Other devices, hostile names."""
    one, other = (RecordEnvironment(must_match={"devices": [name]}) for name in ("A100 \x1b[2J", "H100"))
    after = replace(JOB, parts={**HEALTHY, "input": 9}, environment=other)
    return document(replace(JOB, environment=one), after, VerifyOptions())


SAMPLES: dict[str, Callable[[], Verify]] = {
    "accepted": accepted,
    "batch-doubled": batch_doubled,
    "moved": moved,
    "not-verifiable": not_verifiable,
    "single-run": single_run,
}
