"""`longpole verify`: read the runs before and after a change, replay what was predicted, and judge."""

from __future__ import annotations

import glob
import hashlib
import os
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from longpole.advice.verify.contract import read_metrics
from longpole.advice.verify.effect import STATISTICS, Design
from longpole.advice.verify.judge import Question, judge
from longpole.advice.verify.limits import parse_limit
from longpole.advice.verify.part import parse_part
from longpole.advice.verify.prediction import Forecast
from longpole.advice.verify.processes import replicates_of, without_failed
from longpole.errors import InputError, NotATraceError, UsageError
from longpole.pipeline.reading import ReportOptions, choose_ranks, read_digests, selection_of
from longpole.pipeline.run_records import ItemsOfUnit, make_record, read_record
from longpole.pipeline.version import package_version
from longpole.records.ledger import Unknown
from longpole.records.run_record import NOT_RECORDED, RunRecord
from longpole.records.run_record_file import looks_like_record
from longpole.records.verdict import RunEntry
from longpole.report.verify import make_verify
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from longpole.advice.catalogue import Row
    from longpole.advice.verify.sides import Side
    from longpole.report.verify import Verify
    from longpole.settings import Settings
    from longpole.whatif.change import Change

_HEAD_BYTES: Final = 1 << 16
_NO_GRAPH: Final = 0  # the version of an answer that is none
_ONE_RUN: Final = "\nHere a path is one run: name its files with a pattern, such as 'runs/a/rank*.json'"
SIDES: Final = ("before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """What is asked of a change, and how its runs are read.

    Attributes:
        report: How runs are read from traces.
        candidate: Id of a row of the catalogue.
        catalogue: The user's rows, over the shipped ones.
        part: What must shrink, over the candidate's.
        changes: What was predicted, as options of `longpole whatif`, over the candidate's.
        limits: Each as `FIGURE<=NUMBER`.
        metrics: Files of quality measures.
        threshold: What a change must exceed, as a share; `regression_min_share` where None.
        items: `before` or `after` -> items of a unit of all ranks together.
        paired: Runs in the order given are pairs.
        statistic: `median` or `mean` of the units of a run; `auto` takes the mean where the part lies in few of them.
        allow: Differences that are the change itself.
    """

    report: ReportOptions = field(default_factory=ReportOptions)
    candidate: str | None = None
    catalogue: Path | None = None
    part: str | None = None
    changes: Sequence[Change] = ()
    limits: Sequence[str] = ()
    metrics: Sequence[Path] = ()
    threshold: float | None = None
    items: Mapping[str, ItemsOfUnit] = field(default_factory=dict)
    paired: bool = False
    statistic: str = "auto"
    allow: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    path: str
    record: RunRecord
    blake2b: str


def verify_runs(
    before: Sequence[str],
    after: Sequence[str],
    options: VerifyOptions,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verify:
    """Say whether a change did what it was made for.

    Args:
        before: Each is one run before the change: a folder of traces, a file, a pattern, or a run record.
        after: The same after it.
        options: What is asked.
        progress: Hears (what is being read, bytes done, bytes in all) of each run in turn.

    Raises:
        UsageError: A side has no run, or an option is wrong.
        InputError: A run cannot be read.
    """
    settings = read_settings(options.report.settings)
    before, after = _expanded(before), _expanded(after)
    row = _row(options)
    question = _question(before, after, options, row, settings)
    sides = [
        [_read(path, name, options, settings, progress) for path in paths]
        for name, paths in zip(SIDES, (before, after), strict=True)
    ]
    _tell_apart([run for side in sides for run in side])
    if row is not None or options.changes:
        question = replace(question, forecast=_forecast(sides[0][0], options, row, progress))
    found = replicates_of(*([run.record for run in side] for side in sides))
    if options.paired and any(run.record.processes for side in sides for run in side):
        msg = (
            "--paired: expected runs of one process each; found benchmark records, whose processes are paired by"
            " themselves where they were interleaved. Leave --paired out"
        )
        raise UsageError(msg)
    if found.paired:
        question = replace(question, design=replace(question.design, paired=True))
    judgement = judge(found.before, found.after, question, settings)
    judgement.also.extend(found.notes)
    comparison = judgement.comparison
    return make_verify(
        judgement,
        [_entry(run, comparison.before) for run in sides[0]],
        [_entry(run, comparison.after) for run in sides[1]],
        version=package_version(),
        candidate=options.candidate or "",
    )


def _expanded(paths: Sequence[str]) -> list[str]:
    """Replace patterns whose files are all run records by those files: each is a run; traces of one run stay one."""
    found: list[str] = []
    for path in paths:
        matches = [] if Path(path).exists() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - may be absolute
        found += matches if matches and all(map(is_record, matches)) else [path]
    return found


def _question(
    before: Sequence[str], after: Sequence[str], options: VerifyOptions, row: Row | None, settings: Settings
) -> Question:
    """Check what can be checked before anything is read.

    Raises:
        UsageError: An option is wrong.
    """
    for name, paths in zip(SIDES, (before, after), strict=True):
        if not paths:
            msg = f"verify: expected at least one run {name}; found none"
            raise UsageError(msg)
    if options.paired and len(before) != len(after):
        msg = f"--paired: expected as many runs before as after; found {len(before)} and {len(after)}"
        raise UsageError(msg)
    if options.paired and len(before) < 2:
        msg = "--paired: expected at least two pairs of runs; found one run a side"
        raise UsageError(msg)
    if options.statistic not in STATISTICS:
        msg = f"--statistic: expected one of {', '.join(STATISTICS)}; found {options.statistic!r}"
        raise UsageError(msg)
    threshold = settings.regression_min_share if options.threshold is None else options.threshold
    if not 0 < threshold < 1:
        msg = f"--threshold: expected a share between 0 and 1 (or a percentage below 100 %); found {threshold:g}"
        raise UsageError(msg)
    part = parse_part(options.part) if options.part is not None else row.part if row is not None else ""
    return Question(
        design=Design(
            threshold=threshold,
            paired=options.paired,
            statistic=options.statistic,
            run_spread=settings.run_spread_share,
        ),
        part=part,
        part_from="given" if options.part is not None else "candidate",
        limits=[parse_limit(text) for text in options.limits],
        metrics=[metric for path in options.metrics for metric in read_metrics(path)],
        allowed=frozenset(options.allow),
    )


def _row(options: VerifyOptions) -> Row | None:
    """Look the candidate up.

    Raises:
        UsageError: The catalogue has no such row, or a mistake.
    """
    if options.candidate is None:
        return None
    from longpole.advice.catalogue import load_catalogue

    rows = {row.id: row for row in load_catalogue(options.catalogue)}
    if options.candidate not in rows:
        near = get_close_matches(options.candidate, rows, n=3)
        hint = f"; close to it: {', '.join(near)}" if near else "; longpole candidates lists those of a run"
        msg = f"--candidate {options.candidate}: no row of the catalogue has that id{hint}"
        raise UsageError(msg)
    return rows[options.candidate]


def _read(
    path: str,
    side: str,
    options: VerifyOptions,
    settings: Settings,
    progress: Callable[[str, int, int], None] | None,
) -> _Run:
    """Read one run: a record as it is, traces into a record.

    Raises:
        UsageError: There is no such path, or it holds several runs.
        InputError: It cannot be read.
    """
    items = options.items.get(side)
    if is_record(path):
        record = read_record(path)
        digest = hashlib.blake2b(Path(path).read_bytes(), digest_size=20).hexdigest()
        return _Run(path, _with_items(record, items), digest)
    from longpole.digest.jobs import choose_run
    from longpole.records.critical_path import PathAnswer
    from longpole.report.build import build_report

    try:
        digests, refused = read_digests([path], options.report, settings, progress)
        run = choose_run(choose_ranks(digests, options.report), options.report.job, settings)
    except UsageError as error:
        msg = f"{side}: {error}{_ONE_RUN if '--job' in str(error) else ''}"
        raise UsageError(msg) from None
    except NotATraceError as error:
        msg = f"{side}: {error}, or a run record (longpole.record/1)"
        raise NotATraceError(msg) from None
    except InputError as error:
        msg = f"{side}: {error}"
        raise InputError(msg) from None
    answer = PathAnswer(_NO_GRAPH)  # a comparison needs ledgers, periods and collectives
    report = build_report(run, refused, selection_of(options.report), package_version(), settings, answer)
    return _Run(path, make_record(run, report, settings, items=items), "")


def is_record(path: str) -> bool:
    """Tell whether a path is a run record, by its first and last bytes: keys stand in any order."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(-min(_HEAD_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            return looks_like_record(head, file.read(_HEAD_BYTES))
    except OSError:
        return False


def _with_items(record: RunRecord, items: ItemsOfUnit | None) -> RunRecord:
    """Let what is declared now stand over what the record says."""
    if items is None:
        return record
    units = [msgspec.structs.replace(unit, items=NOT_RECORDED) for unit in record.units]
    kind = items.kind or record.item_kind
    return msgspec.structs.replace(
        record, units=units, items_per_unit=items.count, item_kind=kind, items_from="declared"
    )


def _tell_apart(runs: Sequence[_Run]) -> None:
    """Give runs without a label the shortest endings of their paths that tell them apart."""
    parts = [Path(run.path).parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        endings = [str(Path(*part[-length:])) for part in parts]
        if len(set(endings)) == len(endings):
            break
    else:
        endings = [run.path for run in runs]
    labels = [run.record.label for run in runs]
    for run, ending in zip(runs, endings, strict=True):
        if not run.record.label or labels.count(run.record.label) > 1:
            run.record.label = ending


def _forecast(
    first: _Run, options: VerifyOptions, row: Row | None, progress: Callable[[str, int, int], None] | None
) -> Forecast:
    """Replay the first run before with the change, as it would have been predicted then."""
    texts = [str(change.to_text()) for change in options.changes]
    if first.blake2b:
        why = Unknown("the side before is a run record, and a replay needs traces", ["traces of a run before"])
        return Forecast(changes=texts, share=why, error_share=why)
    if options.changes:
        return _what_if(first.path, options, progress)
    assert row is not None
    from longpole.pipeline.candidates import find_candidates

    found = find_candidates([first.path], options.report, catalogue=options.catalogue, progress=progress)
    entry = next((entry for entry in found.candidates if entry.id == row.id), None)
    if entry is None:
        because = "; ".join(next((verdict.why for verdict in found.rows if verdict.id == row.id), []))
        why = Unknown(f"{row.id} does not apply to the run before{f': {because}' if because else ''}")
        return Forecast(changes=[], share=why, error_share=why)
    gain = entry.predicted_gain_share
    share = gain if isinstance(gain, Unknown) else -gain
    return Forecast(changes=entry.changes, share=share, error_share=entry.error_share)


def _what_if(path: str, options: VerifyOptions, progress: Callable[[str, int, int], None] | None) -> Forecast:
    from longpole.pipeline.whatif import what_if

    texts = [str(change.to_text()) for change in options.changes]
    answer = what_if([path], options.changes, options.report, progress)
    predicted, replayed = answer.predicted_period_ns, answer.replayed_period_ns
    error = answer.what_if_error
    share: float | Unknown
    if isinstance(predicted, Unknown):
        share = predicted
    elif isinstance(replayed, Unknown):
        share = replayed
    else:
        share = predicted / replayed - 1
    return Forecast(changes=texts, share=share, error_share=error if isinstance(error, Unknown) else error.p90_share)


def _entry(run: _Run, side: Side) -> RunEntry:
    record = without_failed(run.record)
    units = record.counted()
    none = Unknown("no unit has a period", [])
    periods = [unit.period_ns for unit in units if isinstance(unit.period_ns, int)]
    items = [items for items in map(record.items_of, units) if isinstance(items, int)]
    return RunEntry(
        label=record.label,
        path=run.path,
        run_id=record.run_id,
        blake2b=run.blake2b,
        sources=[{"path": source.path, "blake2b": source.blake2b} for source in record.sources],
        units=len(units),
        processes=len(record.processes),
        period_ns=round(float(np.median(periods))) if periods else none,
        time_per_item_ns=_per_item(record, side) if units else none,
        items_per_unit=sum(items) / len(items)
        if items and len(items) == len(units)
        else Unknown("not declared", ["items per unit"]),
    )


def _per_item(record: RunRecord, side: Side) -> float:
    times = side.times(record)
    items = side.items if side.per_item and isinstance(side.items, float) else 1.0
    return float(np.median(times)) * side.ratio / items


def verify(
    before: str | PathLike[str] | Sequence[str | PathLike[str]],
    after: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    candidate: str | None = None,
    part: str | None = None,
    limits: Sequence[str] = (),
    options: VerifyOptions | None = None,
) -> Verify:
    """Say whether a change did what it was made for.

    Args:
        before: A run before the change, or several: each a folder of traces, a file, a pattern, or a run record.
        after: The same after it.
        candidate: Id of the row of the catalogue that was tried.
        part: What must shrink: an object, `stage:NAME` or `idle:REASON`.
        limits: What the runs after must keep, such as `peak_bytes<=80e9`.
        options: What else is asked, and how runs are read.

    Raises:
        UsageError: An argument is wrong.
        InputError: A run cannot be read.
    """
    asked = options or VerifyOptions()
    asked = replace(
        asked,
        candidate=candidate or asked.candidate,
        part=part or asked.part,
        limits=[*asked.limits, *limits],
    )
    return verify_runs(_paths(before), _paths(after), asked)


def _paths(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        return [str(given)]
    return [str(path) for path in given]
