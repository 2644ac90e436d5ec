"""The two sides of a gate: processes of records, paired where they were run in pairs, and what must match.

A process is the unit of replication (DESIGN 3.12). A record without processes is one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.advice.verify.contract import check_contract
from longpole.advice.verify.differences import compare_sides
from longpole.bench.gate.asked import MIN_PAIRS
from longpole.records.run_record import RecordProcess
from longpole.records.verdict import Difference
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.verify.differences import Comparison
    from longpole.advice.verify.sides import Side
    from longpole.bench.gate.asked import Asked
    from longpole.records.run_record import RunRecord
    from longpole.settings import Settings

PAIRED: Final = "paired"
UNPAIRED: Final = "unpaired"
SINGLE_RUN: Final = "single run"
NAMES: Final = ("base", "new")

_VOID_FLAGS: Final = frozenset({"quota-throttled", "gpu-throttled"})
"""Held still or clocked down, a process does not say how long the program takes; pressure only widens intervals."""

_WARM_UP: Final = "warm-up"
_MACHINE: Final = ("machine", "host", "hostname", "hosts")
_ORDER: Final = ("void", "warn", "note")
_CONTRACT: Final = {"broken": "void", "unknown": "warn", "unsettled": "warn"}
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a record.

    Attributes:
        run: The record with this process's units alone.
        entry: What the record says of the process; one that ended well where it says nothing.
        why_left_out: Why it takes no part; empty where it does.
    """

    run: RunRecord
    entry: RecordProcess
    why_left_out: str


@dataclass(frozen=True, slots=True)
class Gated:
    """Both sides, ready to be compared.

    Attributes:
        comparison: The processes as runs, brought to the same items; of pairs, in their order.
        processes: Of the base and of the new side, those that take part.
        design: `paired`, `unpaired` or `single run`.
        left_out: Of either side: which processes take no part, and why.
        differences: What tells the sides apart, the gravest first.
        invalid: Why no verdict can be given; empty where one can.
    """

    comparison: Comparison
    processes: tuple[list[Process], list[Process]]
    design: str
    left_out: tuple[list[str], list[str]]
    differences: list[Difference]
    invalid: list[str]

    def sides(self) -> tuple[Side, Side]:
        """Return the sides as runs."""
        return self.comparison.before, self.comparison.after

    def count(self) -> int:
        """Return how many pairs there are, or processes of the smaller side."""
        return min(len(side.runs) for side in self.sides())


def gate_sides(base: Sequence[RunRecord], new: Sequence[RunRecord], asked: Asked, settings: Settings) -> Gated:
    """Split records into processes, pair them, and look whether they may be compared.

    Args:
        base: Records of the baseline, at least one.
        new: Records of the other side, at least one.
        asked: What is asked.
        settings: Thresholds of the comparison.
    """
    split = [[process for record in side for process in _measured(record)] for side in (base, new)]
    invalid = [says for name, side in zip(NAMES, split, strict=True) for says in _failures(name, side)]
    if not invalid:
        named = _named(base, new)
        invalid = [f"{name}: the measurement did not come to its end: {r.failure}" for name, r in named if r.failure]
    kept = [[process for process in side if not process.why_left_out] for side in split]
    design = UNPAIRED
    if _are_partners(base, new):
        paired = _pair(kept[0], kept[1])
        if paired[0]:
            design, kept = PAIRED, [paired[0], paired[1]]
    elif len(kept[0]) == len(kept[1]) == 1:
        design = SINGLE_RUN
    whole = compare_sides(base, new, settings, asked.allow | _factors(base, new))
    differences = _differences(base, new, whole, asked)
    if not invalid:  # what a failed process leaves behind needs no words of its own
        invalid = _too_few(design, kept, split)
    voids = [entry.says for entry in differences if entry.severity == "void" and not (invalid and _is_lack(entry))]
    invalid += dict.fromkeys(voids)
    if whole.obstacle is not None and not any(entry.severity == "void" for entry in differences):
        invalid.append(whole.obstacle.unknown)
    left_out = _left_out(split[0]), _left_out(split[1])
    # Where no process is left nothing is compared, and the records stand in for its processes.
    runs = [[p.run for p in some] or list(side) for some, side in zip(kept, (base, new), strict=True)]
    comparison = compare_sides(runs[0], runs[1], settings, asked.allow | _factors(base, new))
    return Gated(comparison, (kept[0], kept[1]), design, left_out, differences, invalid)


def _is_lack(entry: Difference) -> bool:
    """Tell whether a difference says that a side has no times: so it is where processes failed."""
    return entry.what == "record" and entry.key == "period_ns"


def _measured(record: RunRecord) -> list[Process]:
    """Return the processes of a record but those that were run to fill caches."""
    return [
        process
        for process in split_processes(record)
        if process.entry.failure or any(unit.left_out != _WARM_UP for unit in process.run.units)
    ]


def split_processes(record: RunRecord) -> list[Process]:
    """Return each process of a record as a run of its own."""
    if not record.processes:
        entry = RecordProcess(process=0)
        return [Process(record, entry, _why_left_out(record, entry))]
    found = []
    for entry in record.processes:
        own = [unit for unit in record.units if unit.process == entry.process]
        run = msgspec.structs.replace(
            record,
            units=own or [msgspec.structs.replace(record.units[0], left_out="of another process")],
            processes=[entry],
            run_id=f"{record.run_id}#{entry.process}",
            label=f"{record.label or record.run_id} process {entry.process}",
        )
        found.append(Process(run, entry, _why_left_out(run, entry)))
    return found


def _why_left_out(run: RunRecord, entry: RecordProcess) -> str:
    if entry.failure or entry.exit_code:
        return entry.failure or f"it ended with exit code {entry.exit_code}"
    if not run.counted():
        return "no unit of it has a period that counts"
    flags = sorted(_VOID_FLAGS.intersection(entry.flags))
    return f"the machine held it back ({', '.join(flags)})" if flags else ""


def _failures(name: str, processes: Sequence[Process]) -> list[str]:
    """Say which processes of a side failed: what fails sometimes is not measured by the times it does not."""
    failed = [p for p in processes if p.entry.failure or p.entry.exit_code]
    if not failed:
        return []
    first = failed[0]
    several = f"{len(failed)} of {len(processes)} processes failed" if len(processes) > 1 else "the process failed"
    return [f"{name}: {several}; process {first.entry.process}: {first.why_left_out}"]


def _left_out(processes: Sequence[Process]) -> list[str]:
    return [f"process {p.entry.process}: {p.why_left_out}" for p in processes if p.why_left_out]


def _named(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> list[tuple[str, RunRecord]]:
    return [(name, record) for name, side in zip(NAMES, (base, new), strict=True) for record in side]


def _are_partners(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> bool:
    """Tell whether two records were made together: pair numbers of others mean nothing to one another."""
    if len(base) != 1 or len(new) != 1:
        return False
    designs = base[0].design, new[0].design
    if any(design is None or design.kind != "interleaved" for design in designs):
        return False
    one, other = designs
    assert one is not None
    assert other is not None
    named = one.partner == new[0].run_id or other.partner == base[0].run_id
    return named and bool(one.partner and other.partner) and base[0].run_id != new[0].run_id


def _factors(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> frozenset[str]:
    """Return what differs between two commands that were run as pairs: on one machine, that is what they compare."""
    if not _are_partners(base, new):
        return frozenset()
    one, other = base[0].environment.must_match, new[0].environment.must_match
    return frozenset(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def _pair(base: Sequence[Process], new: Sequence[Process]) -> tuple[list[Process], list[Process]]:
    """Return the halves of whole pairs, in the order in which they were run."""
    halves = [{p.entry.pair: p for p in side if p.entry.pair is not None} for side in (base, new)]
    whole = sorted(halves[0].keys() & halves[1].keys())
    return [halves[0][pair] for pair in whole], [halves[1][pair] for pair in whole]


def _too_few(design: str, kept: Sequence[Sequence[Process]], split: Sequence[Sequence[Process]]) -> list[str]:
    """Say where too few processes are left to compare; one that was alone from the start is a single run."""
    for name, some, all_of in zip(NAMES, kept, split, strict=True):
        if not some:
            because = "; ".join(_left_out(all_of)[:_SHOWN])
            return [f"{name}: no process is left to compare ({because})"]
    if design == PAIRED and len(kept[0]) < MIN_PAIRS:
        made = min(len(side) for side in split)
        says = f"{format_count(len(kept[0]), 'clean pair')} of {made}; a verdict needs {MIN_PAIRS}"
        why = [line for side in split for line in _left_out(side)]
        return [f"{says} ({'; '.join(why[:_SHOWN])})" if why else says]
    return []


def _differences(
    base: Sequence[RunRecord], new: Sequence[RunRecord], comparison: Comparison, asked: Asked
) -> list[Difference]:
    """Return what tells the sides apart: what a comparison of any two runs finds, and what only benchmarks say."""
    found = list(comparison.differences)
    found += _benchmarks(base, new, asked)
    found += _machines(base, new, asked)
    for item in check_contract(comparison, []):
        if item.status in _CONTRACT:
            what = "contract" if item.kind == "batch" else "correctness"
            found.append(Difference(what, _CONTRACT[item.status], item.name, item.before, item.after, item.says))
    found += _failed_checks(base)
    return sorted(found, key=lambda entry: _ORDER.index(entry.severity))


def _benchmarks(base: Sequence[RunRecord], new: Sequence[RunRecord], asked: Asked) -> list[Difference]:
    """Compare what was run, by the hash that says that samples mean the same."""
    if _are_partners(base, new):
        return []  # their commands are the two things to be compared
    first = base[0].design
    found = []
    for record in (*base[1:], *new):
        one, other = first, record.design
        if one is None or other is None or not one.semantic_id or one.semantic_id == other.semantic_id:
            continue
        if not other.semantic_id or "benchmark" in asked.allow:
            severity, says = "note", "the records do not both say what was run, or it was allowed to differ"
        else:
            severity = "void"
            says = f"other benchmarks: {one.benchmark or one.semantic_id} and {other.benchmark or other.semantic_id}"
            says += " (--allow-diff benchmark if that is the change)"
        found.append(
            Difference("benchmark", severity, "benchmark", one.semantic_id, other.semantic_id, says),
        )
        break
    return found


def _machines(base: Sequence[RunRecord], new: Sequence[RunRecord], asked: Asked) -> list[Difference]:
    """Notice a baseline from another machine: equal hardware differs by more than most changes do."""
    sides = [sorted({machine_of(record) for record in side} - {""}) for side in (base, new)]
    if not all(sides) or sides[0] == sides[1]:
        return []
    texts = ", ".join(sides[0]), ", ".join(sides[1])
    says = f"the baseline is from another machine: {texts[0]}, and {texts[1]} now"
    if "machine" in asked.allow:
        return [Difference("machine", "warn", "machine", *texts, says)]
    says += " (--allow-diff machine compares all the same, and marks it)"
    return [Difference("machine", "void", "machine", *texts, says)]


def machine_of(record: RunRecord) -> str:
    """Return where a record was made, empty where it does not say."""
    environment = record.environment
    for place in (environment.informational, environment.should_match):
        for key in _MACHINE:
            value: Any = place.get(key)
            if value:
                return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return ", ".join(sorted({row.host for row in record.rows} - {""}))


def _failed_checks(base: Sequence[RunRecord]) -> list[Difference]:
    """Refuse a baseline whose own results were wrong."""
    return [
        Difference(
            "correctness",
            "void",
            check.name,
            "failed",
            "",
            f"base: the check {check.name} failed {check.says}".rstrip(),
        )
        for record in base
        for check in record.correctness.checks
        if check.status == "failed"
    ]
