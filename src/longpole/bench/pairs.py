"""Pairs of fresh processes, one of each side, in random order: what a comparison on a noisy machine rests on.

The machine's own moods last longer than a process, so both halves of a pair share them, and one log-ratio for each pair
is what counts (DESIGN 3.12; bench-io A2 and A4). The order within a pair is random, because a fixed one makes whatever
the first process leaves behind (heat, caches) a part of the difference.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.bench.environment import collect_environment
from longpole.bench.make_record import Measured
from longpole.bench.process_run import run_process
from longpole.bench.span_units import WARM_UP
from longpole.records.run_record import RecordDesign

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.make_record import Benchmark
    from longpole.records.run_record import RecordUnit, RunRecord
    from longpole.settings import Settings

SIDES: Final = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan:
    """How pairs are run.

    Attributes:
        pairs: At most so many.
        order_seed: Of the random order; it is kept in the record.
        warmup_processes: So many of each side are run first and left out: they fill the caches of files.
        budget_s: No pair is begun after so long; None for no limit. One that has begun is finished.
        benchmark: What both sides are called; by default both command lines.
    """

    pairs: int
    order_seed: int = 42
    warmup_processes: int = 1
    budget_s: float | None = None
    benchmark: str = ""


class PairRun:
    """The two records of a comparison in the making: run pairs, look at the records, run more.

    Attributes:
        measured: The records in the making, A and B.
        pairs_done: How many pairs are complete.
    """

    def __init__(self, a: Benchmark, b: Benchmark, plan: PairPlan, settings: Settings) -> None:
        """Look at where both sides run; nothing is started yet."""
        self._plan = plan
        self._settings = settings
        self._order = random.Random(plan.order_seed)
        self._place = 0
        self._started_s = time.monotonic()
        self.pairs_done = 0
        self.measured = (self._begin(a, b), self._begin(b, a))
        one, other = self.measured
        one.design.partner, other.design.partner = other.run_id, one.run_id

    def _begin(self, side: Benchmark, partner: Benchmark) -> Measured:
        command = side.command
        design = RecordDesign(
            kind="interleaved",
            benchmark=self._plan.benchmark or _joined(side.title(), partner.title()),
            semantic_id=_joined_id(side.semantic_id(), partner.semantic_id()),
            warmup_units=command.warmup_units,
            order_seed=self._plan.order_seed,
        )
        environment = collect_environment(command.argv, cwd=command.cwd, env=command.env)
        return Measured(benchmark=side, environment=environment, design=design)

    def warm_up(self) -> bool:
        """Run the processes that fill caches; return whether all went well."""
        return all(self._run_both(pair=None) for _ in range(self._plan.warmup_processes))

    def run_pair(self) -> bool:
        """Run one more pair; return whether both processes went well. What a failed one gave is kept."""
        well = self._run_both(pair=self.pairs_done)
        self.pairs_done += well
        return well

    def has_time(self) -> bool:
        """Tell whether the budget lets another pair begin."""
        budget_s = self._plan.budget_s
        return budget_s is None or time.monotonic() - self._started_s < budget_s

    def records(self) -> tuple[RunRecord, RunRecord]:
        """Return the records of what there is; at least one process of each side has been run."""
        one, other = self.measured
        return one.record(), other.record()

    def _run_both(self, *, pair: int | None) -> bool:
        order = list(SIDES)
        self._order.shuffle(order)
        went = [self._run_one(self.measured[side], pair) for side in order]  # both, whatever comes of the first
        return all(went)

    def _run_one(self, side: Measured, pair: int | None) -> bool:
        result = run_process(
            side.benchmark.command, self._settings, process=len(side.results), place=self._place, pair=pair
        )
        self._place += 1
        if pair is None:
            leave_out_warm_up(result.units)
        side.results.append(result)
        return not result.process.failure and all(check.status != "failed" for check in result.checks)


def run_pairs(
    a: Benchmark,
    b: Benchmark,
    plan: PairPlan,
    settings: Settings,
    on_pair: Callable[[int, PairRun], bool] | None = None,
) -> tuple[RunRecord, RunRecord]:
    """Run two sides as pairs, until there are enough, the time is up, a process fails or the caller has seen enough.

    Args:
        a: One side.
        b: The other side; the same as `a` for a calibration.
        plan: How many, in which order.
        settings: Limits of the flags.
        on_pair: Hears (pairs done, the run) after each pair, to write records and to look at them; false ends it.

    Returns:
        The record of each side. Where a process failed, its `failure` is set, and what there was until then is kept.

    Raises:
        UsageError: A command cannot be started.
    """
    run = PairRun(a, b, plan, settings)
    well = run.warm_up()
    while well and run.pairs_done < plan.pairs and run.has_time():
        well = run.run_pair()
        if well and on_pair is not None and not on_pair(run.pairs_done, run):
            break
    return run.records()


def leave_out_warm_up(units: Sequence[RecordUnit]) -> None:
    """Leave out the units of a process that was run to fill caches."""
    for unit in units:
        unit.left_out = unit.left_out or WARM_UP


def _joined(one: str, other: str) -> str:
    return one if one == other else " | ".join(sorted((one, other)))


def _joined_id(one: str, other: str) -> str:
    """Name what both sides are meant to do: they are compared because somebody says that it is the same."""
    together = "|".join(sorted((one, other)))
    return one if one == other else hashlib.blake2b(together.encode(), digest_size=8).hexdigest()
