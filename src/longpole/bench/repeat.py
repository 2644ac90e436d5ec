"""Run one command in one fresh process after the other, until its typical time is known well enough."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.bench.environment import collect_environment
from longpole.bench.make_record import Measured
from longpole.bench.pairs import leave_out_warm_up
from longpole.bench.process_run import run_process
from longpole.bench.spread import process_medians
from longpole.records.run_record import RecordDesign
from longpole.stats.middle import half_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.make_record import Benchmark
    from longpole.bench.process_run import ProcessResult
    from longpole.settings import Settings

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatPlan:
    """How often a command is run.

    Attributes:
        processes: So many processes at least.
        most: So many at most.
        target_share: No further process once half the interval of the typical time is this small; None for no target.
        budget_s: No process is begun after so long; None for no limit.
        warmup_processes: So many are run first and left out: they fill the caches of files.
    """

    processes: int = 10
    most: int = 40
    target_share: float | None = None
    budget_s: float | None = None
    warmup_processes: int = 1


def repeat(
    benchmark: Benchmark,
    plan: RepeatPlan,
    settings: Settings,
    on_process: Callable[[Measured], None] | None = None,
) -> Measured:
    """Measure a command.

    Args:
        benchmark: What is run.
        plan: How often.
        settings: Limits of the flags.
        on_process: Hears of the record in the making after each process.

    Returns:
        What there is; its `stopped` says why there is no more, and where a process failed its record says so.

    Raises:
        UsageError: The command cannot be started.
        KeyboardInterrupt: The user interrupted before anything was measured.
    """
    command = benchmark.command
    measured = Measured(
        benchmark=benchmark,
        environment=collect_environment(command.argv, cwd=command.cwd, env=command.env),
        design=RecordDesign(
            kind="sequential",
            benchmark=benchmark.title(),
            semantic_id=benchmark.semantic_id(),
            warmup_units=command.warmup_units,
        ),
    )
    started_s = time.monotonic()
    try:
        while not measured.stopped:
            result = _run_next(measured, plan, settings)
            measured.stopped = _why_stop(measured, plan, result, time.monotonic() - started_s)
            if on_process is not None:
                on_process(measured)
    except KeyboardInterrupt:
        if not measured.results:
            raise
        measured.stopped, measured.failure = INTERRUPTED, "interrupted by the user"
    return measured


def _run_next(measured: Measured, plan: RepeatPlan, settings: Settings) -> ProcessResult:
    number = len(measured.results)
    result = run_process(measured.benchmark.command, settings, process=number, place=number)
    if number < plan.warmup_processes:
        leave_out_warm_up(result.units)
    measured.results.append(result)
    return result


def _why_stop(measured: Measured, plan: RepeatPlan, result: ProcessResult, elapsed_s: float) -> str:
    """Return why no further process is started; empty where one is."""
    done = len(measured.results) - plan.warmup_processes
    if result.process.failure:
        return "failed"
    if plan.budget_s is not None and elapsed_s >= plan.budget_s:
        return "budget"
    if done < plan.processes:
        return ""
    if plan.target_share is not None:
        half = half_width(list(process_medians(measured.record()).values()))
        if half is not None and half <= plan.target_share:
            return "target"
        return "processes" if done >= plan.most else ""
    return "processes"
