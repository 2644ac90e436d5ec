"""What holds for every report, whatever it is made from: the laws of DESIGN 3.2 to 3.4 and the rules of REPORT-JSON."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from longpole.errors import LongpoleError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.report.json import render_json
from longpole.report.text.page import render_text
from longpole.timeline.integrity import CODES
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS, STAGES, charged_to

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.ledger import Ledger
    from longpole.report.document import RankEntry, Report, UnitEntry

OUTSIDE = ("head", "tail")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def report_on(*paths: Path | str, options: ReportOptions | None = None) -> Report:
    """Report on files in this process, without the cache."""
    return build_report([str(path) for path in paths], options or ReportOptions(use_cache=False, processes=1))


def check_report(report: Report) -> dict[str, Any]:
    """Check every law on a report; return it as decoded JSON."""
    _check_ledger(report.ledger)
    for entry in report.ranks:
        _check_row(entry)
    document = check_document(report)
    check_page(render_text(report, width=100, color=False))
    return document


def check_page(page: str) -> None:
    """Check that no control character but the line end is on a page, and no line is wider than asked for."""
    for line in page.split("\n"):
        assert not _CONTROL.search(line), repr(line)
        assert len(line) <= 100, repr(line)


def check_refusal(error: LongpoleError, file_name: str | None) -> None:
    """Check that a refusal is one line that names the file, without control characters."""
    lines = str(error).split("\n")
    if len(lines) > 1 and file_name is not None:  # the members of an archive, one by one
        check_listing(error, file_name)
        return
    assert len(lines) == 1, lines
    assert len(lines[0]) < 2000
    assert not _CONTROL.search(lines[0]), repr(lines[0])
    if file_name is not None:
        assert file_name in lines[0], lines[0]
    assert error.exit_code in (2, 3), f"{type(error).__name__}: {error}"


def check_listing(error: LongpoleError, file_name: str) -> None:
    """Check that a message of several lines names the file in each but the first, without control characters."""
    first, *lines = str(error).split("\n")
    assert not _CONTROL.search(first), repr(first)
    assert lines
    for line in lines:
        assert file_name in line, line
        assert not _CONTROL.search(line), repr(line)


def check_document(report: Report) -> dict[str, Any]:
    """Check the JSON: it decodes, holds only finite numbers, and all its pointers lead somewhere."""
    text = render_json(report, "unit")
    document: dict[str, Any] = msgspec.json.decode(text)
    _check_numbers(document, "")
    entries = [entry["at"] for entry in document["unknown"]]
    for pointer in [*entries, *(at for finding in document["integrity"] for at in finding["voids"])]:
        resolve(document, pointer)
    for finding in report.integrity:
        assert finding.code in CODES
        assert finding.count >= 1
        assert finding.message.strip()
        for pointer in finding.voids:
            assert pointer in entries, f"{finding.code} voids {pointer}, which is not listed in unknown"
    for at in _unknown_places({key: value for key, value in document.items() if key != "ranks"}, ""):
        assert at in entries, f"{at} is unknown and not listed"
    return document


def resolve(document: Any, pointer: str) -> Any:
    """Follow a JSON Pointer (RFC 6901); fail where it leads nowhere."""
    value = document
    assert pointer.startswith("/"), pointer
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            assert key.isdecimal(), f"{pointer}: {key} is no place in a list"
            assert int(key) < len(value), f"{pointer}: the list has {len(value)} entries"
            value = value[int(key)]
        else:
            assert isinstance(value, dict), f"{pointer}: {key} of a scalar"
            assert key in value, f"{pointer}: no key {key}"
            value = value[key]
    return value


def whole_units(entry: RankEntry) -> list[UnitEntry]:
    """Return the units of a row without what lies before the first and after the last one."""
    return [unit for unit in entry.units if unit.kind not in OUTSIDE]


def _check_row(entry: RankEntry) -> None:
    _check_ledger(entry.ledger)
    units = whole_units(entry)
    assert sum(unit.wall_ns for unit in entry.units) == entry.recorded_ns, "head, units and tail do not tile the record"
    assert entry.head_ns + sum(unit.wall_ns for unit in units) + entry.tail_ns == entry.recorded_ns
    assert sum(unit.wall_ns for unit in units) == entry.ledger.wall_ns
    for name in OBJECTS:
        total_ns = sum(unit.exposed_ns[name] for unit in units)
        assert total_ns == entry.ledger.objects[name].exposed_ns, f"{name}: the units do not add up to the row"
    ordered = sorted(entry.units, key=lambda unit: unit.start_ns)
    assert ordered == entry.units
    for unit, following in pairwise(ordered):
        assert unit.start_ns + unit.wall_ns == following.start_ns, f"{unit.name} does not touch {following.name}"
        assert unit.completion_ns <= following.completion_ns or following.kind == "tail"
    for unit in entry.units:
        _check_unit(unit)
    _check_stages(entry, units)
    _check_device(entry)
    _check_top(entry)


def _check_unit(unit: UnitEntry) -> None:
    assert unit.wall_ns >= 0
    assert 0 <= unit.between_ns <= unit.wall_ns
    assert sum(unit.exposed_ns.values()) == unit.wall_ns, f"{unit.name}: exposed times do not add up"
    assert min(unit.exposed_ns.values()) >= 0
    assert 0 <= unit.device_by_time_ns <= unit.wall_ns
    assert set(unit.stages) <= set(STAGES)
    assert sum(stage.wall_ns for stage in unit.stages.values()) == unit.wall_ns, f"{unit.name}: stages do not add up"
    assert sum(stage.busy_ns for stage in unit.stages.values()) == unit.device_by_time_ns
    assert all(0 <= stage.busy_ns <= stage.wall_ns for stage in unit.stages.values())
    if unit.kind not in OUTSIDE:
        assert unit.lag_ns >= 0
        assert not isinstance(unit.period_ns, int) or unit.period_ns >= 0


def _check_stages(entry: RankEntry, units: list[UnitEntry]) -> None:
    for name in STAGES:
        for part in ("wall_ns", "busy_ns"):
            total_ns = sum(getattr(unit.stages[name], part) for unit in units if name in unit.stages)
            assert total_ns == (getattr(entry.stages[name], part) if name in entry.stages else 0)


def _check_device(entry: RankEntry) -> None:
    span = entry.device_span
    if entry.device == "cpu":
        assert not isinstance(span.busy_ns, int)
        return
    if isinstance(span.span_ns, int) and isinstance(span.busy_ns, int) and isinstance(span.idle_ns, int):
        assert 0 <= span.busy_ns <= span.span_ns <= entry.recorded_ns
        assert span.busy_ns + span.idle_ns == span.span_ns
        assert sum(unit.device_by_time_ns for unit in entry.units) == span.busy_ns


def _check_top(entry: RankEntry) -> None:
    """Check the tables, which cover the leading units too that all ranks together moved into the head."""
    covered = [unit for unit in entry.units if unit.name not in OUTSIDE]
    busy_ns = sum(unit.device_by_time_ns for unit in covered)
    idle_ns = sum(unit.wall_ns - unit.device_by_time_ns for unit in covered)
    for kernel in entry.top.kernels:
        assert kernel.count >= 1
        assert 0 <= kernel.union_ns <= min(kernel.sum_ns, busy_ns)
        assert 0 <= kernel.share <= 1
    for operator in entry.top.operators:
        assert operator.count >= 1
        assert 0 <= operator.union_ns <= operator.sum_ns
        assert 0 <= operator.share <= 1
    for copy in entry.top.copies:
        assert copy.gb_per_s is None or copy.gb_per_s > 0
    for gap in entry.top.gaps:
        assert 0 < gap.dur_ns <= idle_ns
        assert gap.dur_ns == sum(gap.idle_ns.values())
        assert set(gap.idle_ns) <= set(IDLE_REASONS)
        assert gap.unit in [unit.name for unit in covered]
    for activity in entry.gaps_by_activity:
        assert 0 < activity.idle_ns <= idle_ns
        assert activity.count >= 1


def _check_ledger(ledger: Ledger) -> None:
    ledger.check()
    assert list(ledger.objects) == list(OBJECTS)
    assert list(ledger.idle_ns) == list(IDLE_REASONS)
    assert min(ledger.idle_ns.values()) >= 0
    device = ledger.device
    assert 0 <= device.collective_exposed_ns <= device.collective_ns <= ledger.wall_ns
    assert 0 <= device.copy_exposed_ns <= device.copy_ns <= ledger.wall_ns
    assert 0 <= device.compute_ns <= ledger.wall_ns
    for name in OBJECTS:
        of_gaps_ns = sum(time_ns for reason, time_ns in ledger.idle_ns.items() if charged_to(reason) == name)
        assert of_gaps_ns <= ledger.objects[name].exposed_ns, f"{name}: more idle time than is charged to it"
        waiting_ns = ledger.objects[name].waiting_ns
        assert not isinstance(waiting_ns, int) or waiting_ns >= 0


def check_rungs(ledger: Ledger) -> None:
    """Check that what ran, rung by rung, adds up to busy; not for a mean, whose unions are rounded one by one."""
    device = ledger.device
    assert device.compute_ns + device.collective_exposed_ns + device.copy_exposed_ns == device.busy_ns


def _check_numbers(value: Any, at: str) -> None:
    """Check that times are whole numbers and no number is infinite."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_numbers(inner, f"{at}/{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _check_numbers(inner, f"{at}/{place}")
    elif isinstance(value, float):
        assert math.isfinite(value), at
        assert not at.endswith("_ns"), f"{at} is {value}, not a whole number"


def _unknown_places(value: Any, at: str) -> list[str]:
    if isinstance(value, dict):
        if isinstance(value.get("unknown"), str):
            return [at]
        return [place for key, inner in value.items() for place in _unknown_places(inner, f"{at}/{key}")]
    if isinstance(value, list):
        return [place for i, inner in enumerate(value) for place in _unknown_places(inner, f"{at}/{i}")]
    return []


def refusal_of(path: Path) -> LongpoleError | None:
    """Return the error with which a file is refused, None where it is reported on."""
    try:
        report_on(path)
    except LongpoleError as error:
        return error
    return None
