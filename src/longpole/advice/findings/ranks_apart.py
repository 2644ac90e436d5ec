"""Ranks hold each other up: more work on some, slower work on some, a slow stage of a pipeline, a late profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.suspect import Suspect
from longpole.advice.words import listed
from longpole.records.findings import Evidence, Place
from longpole.whatif.change import Equalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.scene import Scene
    from longpole.records.collectives import PipelineEntry, StragglerEntry

_IMBALANCE_MIN: Final = 0.1


def find(scene: Scene) -> list[Suspect]:
    """Suspect the ranks that others wait for, where computing is why."""
    stages = [suspect for entry in scene.tables.pipeline for suspect in _stage(entry)]
    if stages:
        return [*stages, *_profiler(scene)]
    late = {"more_work": [], "slower_work": []}  # type: dict[str, list[StragglerEntry]]
    unclear: list[StragglerEntry] = []
    for entry in scene.tables.stragglers:
        if entry.reason in late:
            late[entry.reason].append(entry)
        elif entry.reason == "unknown" and entry.evidence and next(iter(entry.evidence)) == "compute":
            unclear.append(entry)
    if unclear:
        # Without shapes: the same rank in every unit is a slow one, ranks in turn have more to do in turn.
        key = "slower_work" if len(unclear) == 1 and 2 * len(unclear[0].in_units) > len(scene.units) else "more_work"
        late[key] += unclear
    return [*_work(scene, late["more_work"]), *_speed(scene, late["slower_work"]), *_profiler(scene)]


def _work(scene: Scene, late: Sequence[StragglerEntry]) -> list[Suspect]:
    if not late:
        return []
    ranks = [entry.rank for entry in late]
    turn = " in turn" if len(ranks) > 1 else ""
    verb = "has" if len(ranks) == 1 else "have"
    return [
        Suspect(
            cause="work_imbalance",
            ranks=ranks,
            says=f"{listed(ranks)} {verb}{turn} more work than the others, who wait: {{cost}}",
            evidence=_evidence(late),
            remove=[Equalise("work")],
            ledger_ns=sum(entry.caused_ns_per_unit for entry in late),
            units=_units(scene, late),
            what_if=["--equalise work"],
        )
    ]


def _speed(scene: Scene, late: Sequence[StragglerEntry]) -> list[Suspect]:
    if not late:
        return []
    ranks = [entry.rank for entry in late]
    verb = "does" if len(ranks) == 1 else "do"
    return [
        Suspect(
            cause="slow_rank",
            ranks=ranks,
            says=f"{listed(ranks)} {verb} the same work more slowly than the others, who wait: {{cost}}",
            evidence=_evidence(late),
            remove=[Equalise("speed")],
            ledger_ns=sum(entry.caused_ns_per_unit for entry in late),
            units=_units(scene, late),
            what_if=["--equalise speed"],
        )
    ]


def _stage(entry: PipelineEntry) -> list[Suspect]:
    if entry.imbalance < _IMBALANCE_MIN:
        return []
    slowest = max(range(len(entry.compute_ns)), key=lambda stage: entry.compute_ns[stage])
    ranks = entry.stages[slowest]
    others = sorted(ns for stage, ns in enumerate(entry.compute_ns) if stage != slowest)
    usual_ns = others[(len(others) - 1) // 2]
    return [
        Suspect(
            cause="slow_stage",
            ranks=ranks,
            says=f"stage {slowest} of the pipeline ({listed(ranks)}) takes longer than the others: {{cost}}",
            evidence=[
                Evidence("compute_ns per unit", entry.compute_ns[slowest], Place(ranks[0])),
                Evidence("compute_ns per unit, other stages, median", usual_ns, Place()),
            ],
            remove=[Equalise("speed")],
            ledger_ns=entry.compute_ns[slowest] - usual_ns,
            what_if=["--equalise speed"],
        )
    ]


def _profiler(scene: Scene) -> list[Suspect]:
    """Name a profiler that started late for what it is: the recording, not the job."""
    return [
        Suspect(
            cause="profiler_start_skew",
            ranks=[entry.rank],
            says=f"{entry.says}",
            evidence=_evidence([entry]),
            units=entry.in_units,
            once_ns=entry.late_ns,
            always=True,
        )
        for entry in scene.tables.stragglers
        if entry.reason == "profiler_start"
    ]


def _units(scene: Scene, late: Sequence[StragglerEntry]) -> list[str]:
    struck = {name for entry in late for name in entry.in_units}
    return [name for name in scene.units if name in struck]


def _evidence(late: Sequence[StragglerEntry]) -> list[Evidence]:
    return [Evidence(entry.says, entry.late_ns, Place(entry.rank, unit=entry.in_units[0])) for entry in late[:8]]
