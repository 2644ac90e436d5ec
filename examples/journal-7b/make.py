"""Make the worked example of a journal anew: runs of each state of a job, verdicts on them, and the journal.

    python examples/journal-7b/make.py

Nothing here was recorded. The throughputs are those of a case that is often told of a 7B model on 8 GPUs; the run
records are constructed so that they carry them, with a spread between runs and between units from a fixed seed. What
comes after that is Longpole's own: each verdict is written by `longpole verify`, each entry by `longpole journal add`.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longpole.cli.main import main as longpole
from longpole.records.run_record import (
    SCHEMA,
    RecordContract,
    RecordEnvironment,
    RecordTime,
    RecordUnit,
    RunRecord,
)
from longpole.records.run_record_file import encode_record

HERE = Path(__file__).resolve().parent
JOURNAL, RUNS, VERDICTS = "longpole-journal.jsonl", "runs", "verdicts"

N_RUNS, N_UNITS, SEED = 5, 5, 7
RUN_SPREAD, UNIT_SPREAD = 0.004, 0.01
SEQUENCE, RANKS = 2048, 8
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class State:
    """The job between two changes.

    Attributes:
        name: Of its runs.
        tokens_per_s: Throughput of all ranks together.
        peak_gb: Peak memory of the fullest device.
        micro_batch: Sequences that a rank processes at once.
        host_s, collective_s: Exposed in 16,384 tokens; the rest is compute.
        configuration: What is set.
    """

    name: str
    tokens_per_s: int
    peak_gb: int
    micro_batch: int
    host_s: float
    collective_s: float
    configuration: dict[str, Any] = field(default_factory=dict)

    def tokens_per_step(self) -> int:
        """Return the tokens of all ranks in a step."""
        return self.micro_batch * RANKS * SEQUENCE


START = {"cuda_graph": False, "bucket_cap_mb": 25, "overlap_grad_reduce": False, "recompute": "none", "num_workers": 4}
GRAPH = START | {"cuda_graph": True}
BUCKETS = GRAPH | {"bucket_cap_mb": 100, "overlap_grad_reduce": True}
BATCH = BUCKETS | {"recompute": "attention"}

STATES = {
    state.name: state
    for state in (
        State("0-start", 1200, 71, 1, 3.40, 1.80, START),
        State("1-graph", 1500, 73, 1, 0.67, 1.80, GRAPH),
        State("2-buckets", 1650, 74, 1, 0.67, 0.81, BUCKETS),
        State("2-workers", 1640, 74, 1, 0.67, 0.81, BUCKETS | {"num_workers": 12}),
        State("3-batch", 2100, 76, 2, 0.34, 0.41, BATCH),
        State("4-moments", 2200, 69, 2, 0.34, 0.41, BATCH | {"optimizer_moments": "bfloat16"}),
    )
}


@dataclass(frozen=True)
class Change:
    """One change: the states that it lies between, and what is asked and said of it."""

    before: str
    after: str
    part: str
    options: list[str]


CHANGES = [
    Change(
        "0-start",
        "1-graph",
        "host",
        [
            *("Capture the step as a CUDA graph", "--date", "2026-03-02", "--tag", "kernel-gaps"),
            *("--candidate", "compute.capture_graph", "--expected", "18%", "--expected-error", "5%"),
            *("--expected-from", "longpole whatif runs/0-start --graph-launches"),
            *("--side-effect", "shapes are fixed now: the last, shorter batch of an epoch is dropped"),
            *("--claim", "before:mfu=35 %"),
        ],
    ),
    Change(
        "1-graph",
        "2-buckets",
        "collective",
        [
            *("Gradient buckets of 100 MB, reduced during backward", "--date", "2026-03-05", "--tag", "communication"),
            *("--candidate", "collective.set_bucket_size", "--expected", "12%", "--expected-error", "5%"),
            *("--expected-from", "longpole whatif runs/1-graph --fuse all_reduce=100MB --issue-early collective"),
        ],
    ),
    Change(
        "2-buckets",
        "2-workers",
        "host",
        [
            *("Twelve loader workers", "--date", "2026-03-06", "--tag", "input", "--decision", "reverted"),
            *("--candidate", "input.add_workers", "--expected", "2%", "--expected-error", "1%"),
            *("--expected-from", "by hand: what the loader took when nothing else ran"),
            *("--notes", "The loader was never waited for: four workers keep up."),
        ],
    ),
    Change(
        "2-buckets",
        "3-batch",
        "compute",
        [
            *("Recompute attention, and twice the micro-batch", "--date", "2026-03-12", "--tag", "memory"),
            *("--candidate", "state.checkpoint_attention", "--expected", "1.3x", "--expected-error", "10%"),
            *("--expected-from", "by hand: fixed costs of a step over twice the tokens, less 8 % to recompute"),
            *("--side-effect", "global batch 8 → 16 sequences: the learning rate was set anew"),
        ],
    ),
    Change(
        "3-batch",
        "4-moments",
        "compute",
        [
            *("Optimizer moments in bfloat16", "--date", "2026-03-20", "--tag", "memory"),
            *("--candidate", "state.compress", "--expected", "4%", "--expected-error", "2%"),
            *("--expected-from", "by hand: bytes of the optimizer's step over memory bandwidth"),
            *("--side-effect", "7 GB of memory are free, and not yet used"),
            *("--claim", "mfu=55 %"),
        ],
    ),
]


def around_zero(n: int, spread: float, generator: random.Random) -> list[float]:
    """Return an odd number of values in any order whose mean and median are 0.

    Args:
        n: How many.
        spread: Their standard deviation, about.
        generator: Where they come from.
    """
    half = [abs(generator.gauss(0.0, spread)) for _ in range(n // 2)]
    values = [0.0, *half, *(-value for value in half)]
    generator.shuffle(values)
    return values


def make_run(state: State, number: int, offset: float, generator: random.Random) -> RunRecord:
    """Construct one run of a state.

    Args:
        state: The state.
        number: From 1.
        offset: By how much this run takes longer than the others' middle, as a share.
        generator: Where the spread between units comes from.
    """
    period_ns = state.tokens_per_step() * NS_PER_S / state.tokens_per_s * (1 + offset)
    scale = state.tokens_per_step() / 16_384
    units = []
    for share in around_zero(N_UNITS, UNIT_SPREAD, generator):
        unit_ns = round(period_ns * (1 + share))
        host_ns, collective_ns = (round(part * scale * NS_PER_S) for part in (state.host_s, state.collective_s))
        objects = {
            "compute": RecordTime(unit_ns - host_ns - collective_ns),
            "collective": RecordTime(collective_ns),
            "host": RecordTime(host_ns),
        }
        units.append(RecordUnit(unit_ns, wall_ns=unit_ns, objects=objects))
    return RunRecord(
        schema=SCHEMA,
        units=units,
        run_id=f"{state.name}-{number}",
        label=f"{state.name}-{number}",
        written_by="examples/journal-7b/make.py: constructed, not recorded",
        kind="training",
        unit_kind="step",
        item_kind="token",
        items_per_unit=state.tokens_per_step(),
        items_from="declared",
        world_size=RANKS,
        ranks_present=list(range(RANKS)),
        environment=RecordEnvironment(must_match={"devices": "8 GPUs of one kind, which the case does not name"}),
        configuration=state.configuration,
        contract=RecordContract(
            global_batch=state.micro_batch * RANKS,
            micro_batch=state.micro_batch,
            dtype="bfloat16",
            layout={"data": RANKS},
        ),
        limits={"peak_bytes": state.peak_gb * 10**9},
    )


def write_runs() -> None:
    """Write the runs of all states."""
    generator = random.Random(SEED)
    for state in STATES.values():
        for number, offset in enumerate(around_zero(N_RUNS, RUN_SPREAD, generator), start=1):
            run = make_run(state, number, offset, generator)
            Path(RUNS, f"{run.run_id}.json").write_bytes(encode_record(run))


def runs_of(state: str, option: str) -> list[str]:
    """Return the options that name the runs of a state."""
    return [word for number in range(1, N_RUNS + 1) for word in (option, f"{RUNS}/{state}-{number}.json")]


def main() -> int:
    """Write the runs, the verdicts and the journal."""
    # Paths are written as they are given, so that the journal's folder is where they begin.
    os.chdir(HERE)
    for folder in (RUNS, VERDICTS):
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
    Path(JOURNAL).unlink(missing_ok=True)
    write_runs()
    for change in CHANGES:
        file = f"{VERDICTS}/{change.after}.json"
        sides = [*runs_of(change.before, "--before"), *runs_of(change.after, "--after")]
        longpole(["verify", *sides, "--part", change.part, "--limit", "peak_bytes<=78e9", "--json", file, "--quiet"])
        code = longpole(["journal", "add", "--from", file, "--unit", "tokens/s", "--quiet", *change.options])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
