"""From points to a record: fits, the best setting by size, where it changes, and one sentence."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from longpole.bench.collectives.choose import choose_best, find_crossovers
from longpole.bench.collectives.fits import fit_points
from longpole.bench.collectives.plan import write_size
from longpole.records.bench_collectives import DEFAULT_SETTING, SCHEMA, CollectivesRecord
from longpole.records.run_record import RecordEnvironment
from longpole.units import format_count

if TYPE_CHECKING:
    from longpole.records.bench_collectives import (
        CollectivesBand,
        CollectivesDesign,
        CollectivesMachine,
        CollectivesPoint,
        CollectivesSetting,
        CollectivesSource,
        NotRun,
        Origin,
    )
    from longpole.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a record says beside what was measured.

    Attributes:
        origin: Who measured.
        longpole: Version of the package.
        label: What the user calls it.
        created: When, UTC; empty for a log.
        machine: Where it ran.
        design: How it was measured.
        environment: Of the machine.
        sources: Files that were read.
        not_run: What was not measured, and why.
    """

    origin: Origin
    longpole: str
    label: str
    machine: CollectivesMachine
    design: CollectivesDesign
    created: str = ""
    environment: RecordEnvironment = field(default_factory=RecordEnvironment)
    sources: list[CollectivesSource] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)


def build_record(
    points: list[CollectivesPoint], measured: list[CollectivesSetting], about: About, settings: Settings
) -> CollectivesRecord:
    """Make the record of points.

    Args:
        points: All of them.
        measured: Under which settings they were measured, the default first where there is one.
        about: What else the record says.
        settings: From how many sizes a model is fitted.
    """
    in_pieces = {setting.name for setting in measured if setting.bucket_bytes is not None}
    fits = fit_points([point for point in points if point.setting not in in_pieces], settings)
    best = choose_best(points)
    wrong = [point for point in points if point.correctness == "failed"]
    failed = [setting for setting in measured if setting.status == "failed"]
    record = CollectivesRecord(
        schema=SCHEMA,
        longpole=about.longpole,
        record_id="",
        label=about.label,
        origin=about.origin,
        created=about.created,
        status="invalid" if wrong else "failed" if failed or not points else "passed",
        says=_sentence(points, wrong, failed, best),
        machine=about.machine,
        design=about.design,
        environment=about.environment,
        sources=about.sources,
        settings=measured,
        points=points,
        fits=fits,
        best=best,
        crossovers=find_crossovers(best, fits),
        not_run=about.not_run,
    )
    record.record_id = hashlib.blake2b(msgspec.json.encode(record), digest_size=10).hexdigest()
    return record


def _sentence(
    points: list[CollectivesPoint],
    wrong: list[CollectivesPoint],
    failed: list[CollectivesSetting],
    best: list[CollectivesBand],
) -> str:
    """Say the most important thing of the record."""
    if wrong:
        what = f"{wrong[0].kind} of {write_size(wrong[0].bytes)} under {wrong[0].setting}"
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return f"wrong results: {what}{more}; their times are withdrawn"
    if not points:
        return f"nothing was measured: {failed[0].failure}" if failed else "nothing was measured"
    if failed:
        return f"{failed[0].name} failed: {failed[0].failure}; what was measured before it, and all else, is kept"
    better = [band for band in best if band.setting not in ("", DEFAULT_SETTING)]
    if better:
        top = max(better, key=lambda band: band.gain_high)
        reach = f"{write_size(top.from_bytes)} to {write_size(top.to_bytes)}"
        return f"{top.setting} makes {top.kind} of {reach} up to {top.gain_high:.2f} times as fast as the default"
    kinds = len({point.kind for point in points})
    what = f"{format_count(len(points), 'point')} of {format_count(kinds, 'kind')}"
    checked = all(point.correctness == "passed" for point in points)
    told = " measured, every result as it must be" if checked else "; not every result was checked"
    return what + told + ("; no setting is faster than the default beyond noise" if best else "")
