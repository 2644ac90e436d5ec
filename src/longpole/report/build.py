"""From the digests of one run to the report: sums, means, the headline, and all that is not known in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.analyses.sums import add_ledgers, mean_ledger
from longpole.digest.across import bring_together
from longpole.digest.steady import Steady, find_steady, real_units
from longpole.records.ledger import Ledger, Unknown
from longpole.report.cross_rank import cross_rank, missing_voids
from longpole.report.document import (
    SCHEMA,
    LeftOut,
    PeriodStatistics,
    RankEntry,
    Report,
    RunSummary,
    SelectionEntry,
    SourceEntry,
    StageTime,
    Top,
    UnitEntry,
    UnitSummary,
    UnknownEntry,
)
from longpole.report.headline import make_headline
from longpole.report.memory import memories_of, row_memory, run_memory, unit_memory
from longpole.report.pointers import resolve_voids, unknown_entries
from longpole.report.program import never_entered, never_entered_findings, run_items, unit_items
from longpole.report.recording_words import in_words_of
from longpole.report.resources import resources_of
from longpole.report.waiting import fill_waiting
from longpole.stats import mean_ns, median_ns, percentile_ns
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_count

if TYPE_CHECKING:
    from longpole.digest.jobs import Run
    from longpole.digest.rank_digest import RankDigest, RowDigest
    from longpole.records.critical_path import PathAnswer
    from longpole.report.cross_rank import CrossRank
    from longpole.settings import Settings

_NOT_ASKED: Final = Unknown("the graph of the run was not asked for", [])
_TOO_LARGE: Final = Unknown(
    "the graph is too large for a report to replay every change worth trying; longpole candidates does", []
)


def build_report(
    run: Run,
    refused: list[Finding],
    selection: SelectionEntry,
    version: str,
    settings: Settings,
    answer: PathAnswer,
) -> Report:
    """Build the report of one run.

    Args:
        run: The digests, by rank.
        refused: Findings about files that could not be used.
        selection: What part was asked for.
        version: Version of the package.
        settings: Thresholds.
        answer: What the run's graph says.
    """
    digests = run.digests
    across = bring_together(digests, settings, run.recorded)
    steady = find_steady(digests, settings, across.clocks if across is not None else None)
    together = cross_rank(digests, across, steady, settings)
    fill_waiting(digests, across, steady, settings)
    files = list(_by_file(digests))
    entries = [_rank_entry(digest, row, files.index(digest.path), steady) for digest in digests for row in digest.rows]
    places = {digest.rank: [i for i, e in enumerate(entries) if e.rank == digest.rank] for digest in digests}
    steady_ledgers = _steady_ledgers(digests, steady)
    absent = never_entered(digests)
    integrity = [*refused, *_run_findings(run, together), *together.findings, *steady.findings]
    integrity += never_entered_findings(absent, digests)
    integrity += [finding for digest in digests for finding in digest.findings]
    report = Report(
        schema=SCHEMA,
        longpole=version,
        run=run_summary(digests, selection),
        headline=make_headline(digests, answer, together.stragglers, steady_ledgers),
        unit=_unit_summary(digests, steady, settings),
        ledger=mean_ledger([ledger for ledgers in steady_ledgers.values() for ledger in ledgers]),
        ranks=entries,
        integrity=_ordered([resolve_voids(finding, places) for finding in integrity]),
        unknown=[],
        clock=together.clock,
        collectives=together.collectives,
        overlap=together.overlap,
        critical_path=answer.path or answer.why_not or _NOT_ASKED,
        replay=answer.replay or answer.why_not or _NOT_ASKED,
        findings=list(answer.findings),
        long_pole=answer.long_pole,
        candidates=answer.candidates or [],
        stragglers=together.stragglers,
        links=together.links,
        pipeline=together.pipeline,
        memory=run_memory(digests),
        never_entered=absent,
        resources=resources_of(digests, together.collectives),
    )
    _withhold_services(report, digests)
    _withdraw_periods(report)
    why = answer.why_no_pole
    not_known = [UnknownEntry("/long_pole", why.unknown, why.missing)] if why is not None else []
    if answer.candidates is None and answer.path is not None:
        not_known.append(UnknownEntry("/candidates", _TOO_LARGE.unknown, _TOO_LARGE.missing))
    report.unknown = in_words_of({digest.format for digest in digests}, [*not_known, *unknown_entries(report)])
    return report


def _rank_entry(digest: RankDigest, row: RowDigest, source: int, steady: Steady) -> RankEntry:
    offset_ns = steady.offset_ns[digest.rank]
    out = {name for name, _, rank in steady.left_out if rank in (None, digest.rank)}
    is_single = len(real_units(row.units)) == 1
    units = [_unit_entry(row, place, steady, offset_ns, out, is_single=is_single) for place in range(len(row.units))]
    memories = memories_of(digest, row)
    for entry in units:
        entry.memory = unit_memory(memories, entry.name)
    ledger = add_ledgers(u.ledger for u in real_units(row.units) if u.name not in steady.moved)
    head_ns = sum(entry.wall_ns for entry in units if entry.kind == "head")
    tail_ns = sum(entry.wall_ns for entry in units if entry.kind == "tail")
    return RankEntry(
        rank=digest.rank,
        host=digest.host,
        device=row.device,
        device_name=row.device_name,
        source=source,
        recorded_ns=digest.end_ns - digest.start_ns,
        head_ns=head_ns,
        tail_ns=tail_ns,
        device_span=row.device_span,
        ledger=ledger,
        gaps_by_activity=row.activities,
        units=units,
        stages=_add_stages(u for u in real_units(row.units) if u.name not in steady.moved),
        modules=row.modules,
        top=Top(
            [_shifted(kernel, offset_ns) for kernel in row.kernels],
            [_shifted(operator, offset_ns) for operator in row.operators],
            [_shifted(gap, offset_ns) for gap in row.gaps],
            row.copies,
        ),
        memory=row_memory(memories),
        queues=digest.program.queues if digest.program is not None else [],
    )


def _shifted(row: Any, offset_ns: int) -> Any:
    """Bring a table row's place in time to the run's base."""
    where = msgspec.structs.replace(row.where, start_ns=row.where.start_ns + offset_ns)
    return msgspec.structs.replace(row, where=where)


def _add_stages(units: Any) -> dict[str, StageTime]:
    total: dict[str, StageTime] = {}
    for unit in units:
        for name, time in unit.stages.items():
            mine = total.setdefault(name, StageTime(0, 0))
            mine.wall_ns += time.wall_ns
            mine.busy_ns += time.busy_ns
    return total


def _unit_entry(
    row: RowDigest, place: int, steady: Steady, offset_ns: int, out: set[str], *, is_single: bool
) -> UnitEntry:
    """Return one unit; `out` names the units that no mean of this rank counts."""
    unit = row.units[place]
    is_real = unit.kind not in ("head", "tail")
    single = is_real and is_single
    kind = "head" if unit.name in steady.moved and is_real else unit.kind
    return UnitEntry(
        name=unit.name,
        kind=kind,
        steady=is_real and unit.name not in out,
        start_ns=unit.start_ns + offset_ns,
        wall_ns=unit.ledger.wall_ns,
        between_ns=unit.between_ns,
        completion_ns=unit.completion_ns + offset_ns,
        period_ns=_own_period(row, place, single=single),
        lag_ns=unit.completion_ns - unit.start_ns - unit.ledger.wall_ns if is_real else 0,
        items=unit_items(unit),
        device_by_time_ns=unit.device_by_time_ns,
        device_by_launch_ns=unit.device_by_launch_ns,
        exposed_ns={name: time.exposed_ns for name, time in unit.ledger.objects.items()},
        stages=unit.stages,
        single_unit=True if single else msgspec.UNSET,
    )


def _own_period(row: RowDigest, place: int, *, single: bool) -> int | Unknown:
    unit = row.units[place]
    if unit.kind in ("head", "tail"):
        return Unknown("not a unit of work", [])
    if single:
        return unit.completion_ns - unit.start_ns
    before = row.units[place - 1] if place else None
    if before is None or before.kind == "head":
        return Unknown("the first unit has none: when the one before it was complete is not recorded", [])
    return unit.completion_ns - before.completion_ns


def _steady_ledgers(digests: list[RankDigest], steady: Steady) -> dict[tuple[int, str], list[Ledger]]:
    """Return the ledgers of steady units by row; of all units where none is steady."""
    out = {(name, rank) for name, _, rank in steady.left_out if _ != "not_separable"}
    result: dict[tuple[int, str], list[Ledger]] = {}
    everything: dict[tuple[int, str], list[Ledger]] = {}
    for digest in digests:
        for row in digest.rows:
            key = (digest.rank, row.device)
            for unit in real_units(row.units):
                if unit.name in steady.moved:
                    continue
                everything.setdefault(key, []).append(unit.ledger)
                if (unit.name, None) not in out and (unit.name, digest.rank) not in out:
                    result.setdefault(key, []).append(unit.ledger)
    return result or everything


def _unit_summary(digests: list[RankDigest], steady: Steady, settings: Settings) -> UnitSummary:
    units = [unit for unit in real_units(digests[0].rows[0].units) if unit.name not in steady.moved]
    periods = list(steady.periods.values())
    n = len(periods)
    none = Unknown("no unit has a period: a run needs two steady units after one another", [])
    few = Unknown(f"n < {settings.p95_min_count}", [])
    return UnitSummary(
        kind=units[0].kind if units else "trace",
        count=len(units),
        left_out=[LeftOut(name, why, rank) for name, why, rank in steady.left_out],
        items=run_items(digests, steady),
        period_ns=PeriodStatistics(
            median=median_ns(periods) if periods else none,
            p95=percentile_ns(periods, 0.95) if n >= settings.p95_min_count else few,
            mean=mean_ns(periods) if periods else none,
            n=n,
        ),
    )


def _world_size(digests: list[RankDigest]) -> int | Unknown:
    worlds = [digest.world_size for digest in digests if digest.world_size]
    if not worlds:
        return Unknown("no file says how many ranks the job has", ["distributedInfo"])
    largest = max(digest.rank for digest in digests)
    if largest >= max(worlds):
        return Unknown(f"files say {max(worlds)}, and one is of rank {largest}", ["distributedInfo"])
    return max(worlds)


def run_summary(digests: list[RankDigest], selection: SelectionEntry) -> RunSummary:
    """Say who ran.

    Args:
        digests: The ranks.
        selection: What part was asked for.
    """
    kinds = [digest.kind for digest in digests]
    return RunSummary(
        kind=next((kind for kind in ("training", "inference") if kind in kinds), "unknown"),
        ranks_present=sorted(digest.rank for digest in digests),
        world_size=_world_size(digests),
        ranks_assumed=any(digest.rank_assumed for digest in digests),
        sources=[
            SourceEntry(d.path, d.format, d.format_version, d.size_bytes, d.n_events, d.n_skipped, d.n_repaired)
            for d in _by_file(digests).values()
        ]
        + [
            SourceEntry(one.path, d.format, d.format_version, one.size_bytes, one.lines, one.left_out, 0)
            for d in digests
            if d.program is not None
            for one in d.program.beside
        ],
        environment=_environment(digests),
        selection=selection,
    )


def _by_file(digests: list[RankDigest]) -> dict[str, RankDigest]:
    """Return the first digest of each file; a file may hold several ranks."""
    by_file: dict[str, RankDigest] = {}
    for digest in digests:
        by_file.setdefault(digest.path, digest)
    return by_file


def _environment(digests: list[RankDigest]) -> dict[str, Any]:
    """Join the ranks' environments; a field in which they differ lists its values."""
    joined: dict[str, list[Any]] = {}
    for digest in digests:
        for key, value in digest.environment.items():
            values = joined.setdefault(key, [])
            if value not in values:
                values.append(value)
    environment: dict[str, Any] = {key: values[0] if len(values) == 1 else values for key, values in joined.items()}
    devices = sorted({row.device_name for digest in digests for row in digest.rows if row.device_name})
    return environment | ({"devices": devices} if devices else {})


def _run_findings(run: Run, together: CrossRank) -> list[Finding]:
    findings = []
    digests = run.digests
    assumed = [digest for digest in digests if digest.rank_assumed]
    if assumed:
        message = (
            f"the file does not say its rank; rank {assumed[0].rank} is assumed"
            if len(digests) == 1
            else f"{len(assumed)} of {len(digests)} files do not say their rank;"
            " ranks were given in order of the files' names"
        )
        findings.append(Finding("rank.assumed", "note", None, len(assumed), Example(assumed[0].path), message, []))
    world = max((digest.world_size or 0 for digest in digests), default=0)
    missing = sorted(set(range(world)) - {digest.rank for digest in digests})
    if missing:
        some = ", ".join(map(str, missing[:8])) + (" …" if len(missing) > 8 else "")
        whole = any(entry.split == "known" for entry in together.collectives)
        beyond = [digest.rank for digest in digests if digest.rank >= world]
        message = f"{len(digests) - len(beyond)} of {world} ranks present, missing: {some}"
        message += f", and rank {beyond[0]} is none of the {world}" if beyond else ""
        message += "; time in collectives "
        message += "of groups with a missing rank " if whole else ""
        message += "is transfer plus waiting, which cannot be split"
        message += "" if whole else ", and no straggler can be named"
        example = Example(digests[0].path)
        voids = missing_voids(together.collectives, [digest.rank for digest in digests])
        findings.append(Finding("rank.missing", "warn", None, len(missing), example, message, voids))
    if run.displaced:
        message = (
            f"left out: {format_count(len(run.displaced), 'more file')} of ranks that are there already, the first"
            f" one of rank {run.displaced[0].rank}"
        )
        findings.append(
            Finding("rank.duplicate", "warn", None, len(run.displaced), Example(run.displaced[0].path), message, [])
        )
    return findings


def _ordered(findings: list[Finding]) -> list[Finding]:
    order = {"void": 0, "warn": 1, "note": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])


def _withdraw_periods(report: Report) -> None:
    """Withdraw the run's periods where a finding voids them."""
    for finding in report.integrity:
        if finding.severity == "void" and "/unit/period_ns" in finding.voids:
            why = Unknown(f"{finding.code}: {finding.message}", [])
            report.unit.period_ns = PeriodStatistics(why, why, why, 0)
            return


def _withhold_services(report: Report, digests: list[RankDigest]) -> None:
    """Withdraw service and hidden times that the record cannot carry, and the waiting part where it is not known."""
    waiting = Unknown("telling waiting from moving needs all members of a collective", ["traces of all ranks"])
    unknown = {digest.rank: digest.services_unknown for digest in digests}
    for entry in report.ranks:
        _withdraw(entry.ledger, unknown[entry.rank], waiting)
    merged = {name: why for services in unknown.values() for name, why in services.items()}
    _withdraw(report.ledger, merged, waiting)


def _withdraw(ledger: Ledger, unknown: dict[str, Unknown], waiting: Unknown) -> None:
    for name, why in unknown.items():
        ledger.objects[name].service_ns = why
        ledger.objects[name].hidden_ns = why
    collective = ledger.objects["collective"]
    if not isinstance(collective.waiting_ns, int | Unknown):
        collective.waiting_ns = waiting if collective.exposed_ns or collective.service_ns else 0
