"""`longpole bench run`: measure a command or a marked step in fresh processes, and keep the record."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from longpole.bench.make_record import Benchmark
from longpole.bench.process_run import Command
from longpole.bench.record_store import RecordStore, record_path
from longpole.bench.repeat import RepeatPlan, repeat
from longpole.bench.run_answer import BenchRunAnswer
from longpole.bench.spread import measure_spread
from longpole.bench.step_process import SAMPLES_VARIABLE, SEED_VARIABLE, WARMUP_VARIABLE
from longpole.errors import UsageError
from longpole.pipeline.run_records import source_of
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from longpole.bench.make_record import Measured
    from longpole.records.run_record import RecordSource

WARMUP_UNITS: Final = 3
"""Units of each process that are left out unless said otherwise: the first ones allocate, compile and fill caches."""

_STEP: Final = re.compile(r".+\.py::[A-Za-z_]\w*")
_STEP_MODULE: Final = "longpole.bench.step_process"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRunOptions:
    """What is asked of a measurement.

    Attributes:
        label: What pages call the record; the time of day by default.
        name: What the benchmark is called; records that are compared share it. The command by default.
        plan: How many processes.
        warmup_units: Units of each process that are left out; None for the default, or what the step says.
        units: Units of each process that count at most; samples of a step.
        seed: Handed to the process as `LONGPOLE_SEED`; a step's generators are seeded with it.
        items: What a unit processes, and its kind.
        inputs: Files whose hashes belong to the contract.
        timeout_s: For each process.
        out: A folder, or a file that ends in `.json`.
        show_output: Let the command's output through to standard error.
        settings: A file of thresholds.
    """

    label: str = ""
    name: str = ""
    plan: RepeatPlan = field(default_factory=RepeatPlan)
    warmup_units: int | None = None
    units: int | None = None
    seed: int = 42
    items: tuple[int, str] | None = None
    inputs: Sequence[Path] = ()
    timeout_s: float | None = None
    out: Path | None = None
    show_output: bool = False
    settings: Path | None = None


def bench_run(
    argv: Sequence[str], options: BenchRunOptions, on_process: Callable[[Measured], None] | None = None
) -> BenchRunAnswer:
    """Measure a command, or the step `FILE.py::NAME`.

    Args:
        argv: The command and its arguments, or the step alone.
        options: How.
        on_process: Hears of the record in the making after each process.

    Raises:
        UsageError: Nothing is named, an input cannot be read, the record exists, or the command cannot be started.
        KeyboardInterrupt: The user interrupted before anything was measured.
    """
    settings = read_settings(options.settings)
    benchmark = make_benchmark(argv, options)
    store = RecordStore(_place(benchmark, options.out))
    warnings: dict[str, None] = {}

    def keep(measured: Measured) -> None:
        problem = store.keep(measured.record())
        if problem:
            warnings[f"not kept meanwhile: {problem}"] = None
        if on_process is not None:
            on_process(measured)

    try:
        measured = repeat(benchmark, options.plan, settings, keep)
    except (UsageError, KeyboardInterrupt):
        store.give_up()
        raise
    record = measured.record()
    problem = store.finish(record)
    if problem:
        warnings[problem] = None
    failed = next((result for result in measured.results if result.process.failure), None)
    return BenchRunAnswer(
        record=record,
        path=store.path,
        spread=measure_spread(record),
        output_tail=failed.output_tail if failed is not None else "",
        warnings=list(warnings),
        earlier=_earlier(store.path),
    )


def make_benchmark(argv: Sequence[str], options: BenchRunOptions) -> Benchmark:
    """Return what is to be measured.

    Raises:
        UsageError: Nothing is named, or an input cannot be read.
    """
    if not argv:
        msg = "nothing to run: name a command after --, or a step as FILE.py::NAME"
        raise UsageError(msg)
    step = argv[0] if len(argv) == 1 and _STEP.fullmatch(argv[0]) else None
    env = {SEED_VARIABLE: str(options.seed)}
    if step is not None:
        env |= {SAMPLES_VARIABLE: str(options.units)} if options.units is not None else {}
        env |= {WARMUP_VARIABLE: str(options.warmup_units)} if options.warmup_units is not None else {}
    command = Command(
        argv=[sys.executable, "-m", _STEP_MODULE, step] if step is not None else list(argv),
        env=env,
        timeout_s=options.timeout_s,
        warmup_units=WARMUP_UNITS if options.warmup_units is None else options.warmup_units,
        units=options.units,
        inherit_output=options.show_output,
    )
    items, kind = options.items or (None, "")
    return Benchmark(
        command=command,
        name=options.name or step or "",
        label=options.label or datetime.now().astimezone().strftime("%Y-%m-%dT%H-%M-%S"),
        items=items,
        item_kind=kind,
        inputs=[_input(path) for path in options.inputs],
        seed=options.seed,
    )


def _input(path: Path) -> RecordSource:
    source = source_of(str(path))
    if not source.blake2b:
        msg = f"--input {path}: cannot be read; name a file whose content the benchmark depends on"
        raise UsageError(msg)
    return source


def _place(benchmark: Benchmark, out: Path | None) -> Path:
    if out is not None and out.suffix == ".json":
        return out
    return record_path(benchmark.label, benchmark.semantic_id(), out)


def _earlier(path: Path) -> Path | None:
    """Return the newest other record beside one."""
    others = [other for other in path.parent.glob("*.json") if other != path and not other.name.startswith(".")]
    return max(others, key=lambda other: other.stat().st_mtime, default=None)
