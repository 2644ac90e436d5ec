"""Benchmarks of two sides side by side: what the gate's statistics say of them, without a verdict.

A comparison shows what a gate would refuse to judge: sides that differ in what must match are compared all the same,
and the difference stands first.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, fsum, log
from typing import TYPE_CHECKING, Final

from longpole.bench.gate.asked import Asked
from longpole.bench.gate.figures import INVALID
from longpole.bench.gate.judge import judge_records
from longpole.bench.gate.sides import gate_sides
from longpole.bench.summary import summarise
from longpole.records.compare import ComparedBenchmark, ComparedRow, ComparedSide
from longpole.records.ledger import Unknown
from longpole.stats.intervals import TAIL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.gate.judge import Judged
    from longpole.bench.summary import Summary
    from longpole.records.gate import GateStage
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

SLOWER: Final = "slower"
FASTER: Final = "faster"
NO_DIFFERENCE: Final = "~"
NO_INTERVAL: Final = "?"
_SIDES: Final = frozenset({"benchmark", "machine"})


def compare_benchmark(
    base: Sequence[RunRecord], new: Sequence[RunRecord], settings: Settings
) -> ComparedBenchmark | Unknown:
    """Compare one benchmark.

    Args:
        base: Its records on the one side, at least one.
        new: Those on the other side, at least one.
        settings: Thresholds of the comparison.

    Returns:
        The comparison; unknown where a side has no unit that counts.
    """
    summaries = summarise(*base), summarise(*new)
    if summaries[0] is None or summaries[1] is None:
        return Unknown("no unit of it counts on one side")
    asked = Asked()
    differences = gate_sides(base, new, asked, settings).differences
    void = {entry.key for entry in differences if entry.severity == "void" and entry.key}
    # Two ends that are each missed once in twenty: a table shows 90 % intervals, whatever else is on it.
    judged = judge_records(base, new, replace(asked, allow=_SIDES | void), settings, alpha=TAIL)
    row = _whole(judged, summaries[0], summaries[1])
    notes = list(judged.figures[0].notes) if judged.verdict != INVALID else [judged.says]
    failed = [f"{record.label}: {record.failure}" for record in [*base, *new] if record.failure]
    return ComparedBenchmark(
        per=summaries[0].per,
        base=_side(summaries[0]),
        new=_side(summaries[1]),
        row=row,
        stages=[_stage(stage, _scale(judged, summaries[0])) for stage in judged.localised.stages],
        design=judged.gated.design,
        method=judged.figures[0].method,
        n=judged.figures[0].n,
        differences=differences,
        notes=[*notes, *failed],
    )


def geometric_mean(benchmarks: Sequence[ComparedBenchmark]) -> float | Unknown:
    """Return the geometric mean of the changes, as a share: each benchmark counts alike, however long it takes."""
    changes = [one.row.change_share for one in benchmarks]
    known = [log(1 + change) for change in changes if isinstance(change, float) and change > -1]
    if len(known) < 2:
        return Unknown("fewer than two benchmarks have a change")
    return exp(fsum(known) / len(known)) - 1


def _side(summary: Summary) -> ComparedSide:
    middle = summary.time_ns
    interval: list[float] | Unknown = Unknown(middle.method)
    if middle.low is not None and middle.high is not None:
        interval = [middle.low, middle.high]
    return ComparedSide(value_ns=middle.value, interval_ns=interval, processes=summary.processes, units=summary.units)


def _whole(judged: Judged, base: Summary, new: Summary) -> ComparedRow:
    """Return the row of a benchmark: the gate's change and interval beside the times of an item."""
    figure = judged.figures[0]
    plain_ns = new.time_ns.value - base.time_ns.value
    change = figure.change_share
    if not isinstance(change, float):
        change = plain_ns / base.time_ns.value
    return ComparedRow(
        name="",
        base_ns=base.time_ns.value,
        new_ns=new.time_ns.value,
        change_share=change,
        interval_share=figure.interval_share,
        change_ns=plain_ns,
        share_of_change=1.0,
        answer=_answer(figure.interval_share),
    )


def _scale(judged: Judged, base: Summary) -> float:
    """Return what a time of a unit must be multiplied by to be of what the table's times are of."""
    of_unit = judged.figures[0].base
    return base.time_ns.value / of_unit if isinstance(of_unit, float) and of_unit > 0 else 1.0


def _stage(stage: GateStage, scale: float) -> ComparedRow:
    return ComparedRow(
        name=stage.stage,
        base_ns=_scaled(stage.base_ns, scale),
        new_ns=_scaled(stage.new_ns, scale),
        change_share=stage.change_share,
        interval_share=stage.interval_share,
        change_ns=_scaled(stage.change_ns, scale),
        share_of_change=stage.share_of_change,
        answer=_answer(stage.interval_share),
    )


def _scaled(time_ns: float | Unknown, scale: float) -> float | Unknown:
    return time_ns if isinstance(time_ns, Unknown) else time_ns * scale


def _answer(interval: list[float] | Unknown) -> str:
    """Say which way a change goes, where its whole interval goes one way."""
    if isinstance(interval, Unknown):
        return NO_INTERVAL
    if interval[0] > 0:
        return SLOWER
    return FASTER if interval[1] < 0 else NO_DIFFERENCE
