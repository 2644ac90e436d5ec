"""`longpole bench calibrate`: run a command against itself, and keep how much the two sides differ."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.bench.calibrate import calibrate
from longpole.bench.pairs import PairPlan, run_pairs
from longpole.errors import UsageError
from longpole.pipeline.bench_run import BenchRunOptions, make_benchmark
from longpole.records.strict_json import encode_document
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.make_record import Benchmark
    from longpole.bench.pairs import PairRun
    from longpole.records.calibration import Calibration

FOLDER: Final = Path("benchmarks/calibration")
LOOP_NAME: Final = "fixed loop of arithmetic"
_LOOP: Final = "total = 0\nfor number in range(1_500_000):\n    total += number * number"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateOptions:
    """How a command is calibrated.

    Attributes:
        run: How each process is measured.
        pairs: How many pairs.
        order_seed: Of the random order.
        budget_s: No pair is begun after so long.
        threshold: From which change on a gate shall fail, as a share.
        out: The file; by semantic id where None.
    """

    run: BenchRunOptions
    pairs: int = 20
    order_seed: int = 42
    budget_s: float | None = None
    threshold: float = 0.03
    out: Path | None = None


def bench_calibrate(
    argv: Sequence[str], options: CalibrateOptions, on_pair: Callable[[int], None] | None = None
) -> tuple[Calibration, Path]:
    """Run a command against itself in pairs of fresh processes, and write down how noisy that is.

    Args:
        argv: The command, a step `FILE.py::NAME`, or nothing for a fixed loop.
        options: How.
        on_pair: Hears how many pairs are done.

    Returns:
        The calibration, and the file that it was written to; a newer one takes an older one's place.

    Raises:
        UsageError: The command cannot be started, or the file cannot be written.
        InputError: A process failed, or there were too few pairs.
    """
    settings = read_settings(options.run.settings)
    benchmark = _benchmark(argv, options.run)
    path = options.out or FOLDER / f"{benchmark.semantic_id()}.json"
    _check_place(path)
    plan = PairPlan(
        pairs=options.pairs,
        order_seed=options.order_seed,
        budget_s=options.budget_s,
        warmup_processes=options.run.plan.warmup_processes,
    )

    def hear(done: int, run: PairRun) -> bool:
        del run
        if on_pair is not None:
            on_pair(done)
        return True

    one, other = (replace(benchmark, label=f"{benchmark.label} {side}") for side in ("A", "A again"))
    a, b = run_pairs(one, other, plan, settings, hear)
    found = calibrate(a, b, options.threshold)
    _write(path, encode_document(found))
    return found, path


def _benchmark(argv: Sequence[str], options: BenchRunOptions) -> Benchmark:
    if argv:
        return make_benchmark(argv, options)
    loop = [sys.executable, "-I", "-S", "-c", _LOOP]
    return make_benchmark(loop, replace(options, name=LOOP_NAME))


def _check_place(path: Path) -> None:
    """Look whether the file can be written, before minutes are spent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
        if not path.stat().st_size:
            path.unlink()
    except OSError as error:
        _refuse(path, error)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        _refuse(path, error)


def _refuse(path: Path, error: OSError) -> None:
    msg = f"{path}: cannot be written: {error.strerror or error}. Name another file (--out)"
    raise UsageError(msg) from None
