"""A plan beside the ledger of a real run, object by object: where the model and the machine part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.errors import InputError
from longpole.records.ledger import Unknown
from longpole.report.plan_asked import PlanAgainst, PlanBeside, PlanBesideCollective
from longpole.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.pipeline.plan_config import Planned
    from longpole.pipeline.reading import ReportOptions
    from longpole.records.collectives import CollectiveEntry
    from longpole.report.document import Report
    from longpole.report.plan import PlanMemory, PlanMessage, PlanStep

_COMPUTING: Final = ("compute", "recompute", "contention", "optimizer")
_SAYS: Final = {
    "compute": "with the optimizer",
    "collective": "with the bubble",
    "host": "none in a plan",
    "input": "assumed to be there",
    "unknown": "",
}
_ALIKE: Final = 0.10
"""Of the measured period: within it plan and run are said to agree, as published steps do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """What of a plan is compared."""

    step: PlanStep
    memory: PlanMemory
    messages: list[PlanMessage]


def put_beside(
    planned: Planned,
    ours: PlannedStep,
    paths: Sequence[str],
    reading: ReportOptions | None,
    progress: Callable[[str, int, int], None] | None = None,
) -> PlanAgainst:
    """Read a run, and put its ledger beside the plan.

    Args:
        planned: The plan.
        ours: What it says of a step.
        paths: Files, folders and patterns; together they are one run.
        reading: How it is read.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path or the choice of a run is wrong.
        InputError: No file could be used, or the run has no steady unit.
    """
    from longpole.pipeline.reading import ReportOptions as Options
    from longpole.pipeline.report import build_report

    report = build_report(paths, reading or Options(), progress)
    units = max((sum(unit.steady for unit in row.units) for row in report.ranks), default=0)
    if not units:
        raise InputError.at(", ".join(paths), None, "no steady unit of work", "Name its marker with --step")
    return compare(planned, ours, report, list(paths), units)


def compare(planned: Planned, ours: PlannedStep, report: Report, paths: list[str], units: int) -> PlanAgainst:
    """Put a report beside a plan.

    Args:
        planned: The plan.
        ours: What it says of a step.
        report: On the run.
        paths: Of the run.
        units: Its steady units.
    """
    period = report.unit.period_ns.median
    measured = period if isinstance(period, int) else report.ledger.wall_ns
    error = ours.step.period_ns / measured - 1 if measured else Unknown("the run's units take no time")
    objects = _objects(ours.step, report)
    tokens = _tokens(planned, report)
    peak = report.memory
    stage = ours.memory.stages[ours.memory.worst_stage]
    world = report.run.world_size
    return PlanAgainst(
        paths=paths,
        ranks=len(report.run.ranks_present),
        devices=world if isinstance(world, int) else Unknown("no file says how many ranks there are"),
        units=units,
        planned_period_ns=ours.step.period_ns,
        measured_period_ns=period,
        measured_unit_ns=report.ledger.wall_ns,
        error_share=error,
        measured_tokens_per_s=tokens * NS_PER_S / max(measured, 1),
        planned_mfu=_mfu(planned, planned.work.tokens, ours.step.period_ns),
        measured_mfu=_mfu(planned, tokens, measured),
        objects=objects,
        collectives=_collectives(ours.messages, report, units),
        planned_peak_bytes=stage.peak_bytes - stage.parts_bytes.get("buffers", 0),
        measured_peak_bytes=peak if isinstance(peak, Unknown) else peak.peak_allocated_bytes,
        notes=_notes(planned, report),
        says=_says(ours.step.period_ns, measured, objects),
    )


def _tokens(planned: Planned, report: Report) -> int:
    """Return the tokens of a unit of the run, the plan's where the run does not say."""
    items = report.unit.items
    is_told = isinstance(items.per_unit, int) and items.kind in ("token", "tokens")
    return items.per_unit if is_told and isinstance(items.per_unit, int) else planned.work.tokens


def _mfu(planned: Planned, tokens: int, period_ns: int) -> float:
    """Return the use of the peak under the plan's convention."""
    peak = planned.cluster.device.peak(planned.work.dtype) * planned.layout.world
    return tokens * planned.flops_per_token() * NS_PER_S / (max(period_ns, 1) * peak)


def _objects(step: PlanStep, report: Report) -> list[PlanBeside]:
    computing = sum(part.exposed_ns for part in step.parts if part.name in _COMPUTING)
    planned = {"compute": computing, "collective": step.period_ns - computing}
    measured = {name: time.exposed_ns for name, time in report.ledger.objects.items()}
    rows = [
        PlanBeside(
            object=name,
            planned_ns=planned.get(name, 0),
            measured_ns=measured.get(name, 0),
            difference_ns=measured.get(name, 0) - planned.get(name, 0),
            says=_SAYS.get(name, ""),
        )
        for name in dict.fromkeys([*planned, *measured])
    ]
    return [row for row in rows if row.planned_ns or row.measured_ns]


def _collectives(messages: list[PlanMessage], report: Report, units: int) -> list[PlanBesideCollective]:
    """Return both sides by kind, of one device in one step."""
    ranks = max(len(report.run.ranks_present), 1)
    kinds = dict.fromkeys([*(message.kind for message in messages), *(entry.kind for entry in report.collectives)])
    return [_of_kind(kind, messages, report.collectives, ranks * units) for kind in kinds]


def _of_kind(
    kind: str, messages: list[PlanMessage], entries: list[CollectiveEntry], device_steps: int
) -> PlanBesideCollective:
    mine = [message for message in messages if message.kind == kind]
    theirs = [entry for entry in entries if entry.kind == kind]
    size = 0.0
    unsized = False
    for entry in theirs:
        if isinstance(entry.bytes, Unknown):
            unsized = True
        else:
            size += entry.bytes * len(entry.members_present)
    return PlanBesideCollective(
        kind=kind,
        planned_count=sum(message.count for message in mine),
        measured_count=sum(entry.count * len(entry.members_present) for entry in theirs) / device_steps,
        planned_bytes=sum(message.count * message.bytes for message in mine),
        measured_bytes=Unknown("the trace does not say how large they are") if unsized else size / device_steps,
        planned_ns=sum(message.total_ns for message in mine),
        measured_ns=round(sum(entry.duration_ns for entry in theirs) / device_steps),
    )


def _notes(planned: Planned, report: Report) -> list[str]:
    """Say what makes the two differ before anything is measured."""
    notes = []
    world = report.run.world_size
    if isinstance(world, int) and world != planned.layout.world:
        notes.append(f"the run has {world} ranks, the plan {planned.layout.world} devices: not the same job")
    names = {row.device_name for row in report.ranks if row.device_name}
    if names and not any(_is_same_device(name, planned) for name in names):
        notes.append(f"the run is on {', '.join(sorted(names))}, the plan on {planned.cluster.device.name}")
    elif not names and all(row.device == "cpu" for row in report.ranks):
        notes.append("the run computes on a CPU: the plan is of another machine")
    if report.run.kind not in ("training", "unknown"):
        notes.append(f"the run is {report.run.kind}, the plan a training step")
    if any(finding.severity == "void" for finding in report.integrity):
        notes.append("some figures of the run are void: longpole report says which")
    return notes


def _is_same_device(name: str, planned: Planned) -> bool:
    from longpole.hardware.devices import match_device

    found = match_device(name)
    return found is not None and found.name == planned.cluster.device.name


def _says(planned_ns: int, measured_ns: int, objects: list[PlanBeside]) -> str:
    share = measured_ns / planned_ns - 1
    both = f"planned {format_ns(planned_ns)}, measured {format_ns(measured_ns)}"
    largest = max(objects, key=lambda row: abs(row.difference_ns), default=None)
    if largest is None or abs(share) <= _ALIKE:
        return f"{both}: {abs(share):.0%} {'more' if share >= 0 else 'less'}, as close as such plans come"
    more = "more" if largest.difference_ns > 0 else "less"
    return (
        f"{both}: {measured_ns / planned_ns:.2f} times the plan; the largest difference is {largest.object},"
        f" {format_ns(abs(largest.difference_ns))} {more} than planned"
    )
