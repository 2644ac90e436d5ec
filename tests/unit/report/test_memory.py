"""Memory in the report: per unit and row, the run's fullest device, and why it is not known."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.records.ledger import Unknown
from longpole.report.csv import render_csv
from tests.trace_text import BASE_US, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report

GB = 10**9


def _event(at_us: float, changed: int, total: int | None, reserved: int | None, device: int = 0) -> dict[str, Any]:
    args: dict[str, int | None] = {"Bytes": changed, "Device Type": int(device >= 0), "Device Id": device}
    args |= {} if total is None else {"Total Allocated": total, "Total Reserved": reserved}
    event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 4200, "tid": 4200}
    return {**event, "ts": BASE_US + at_us, "args": args}


def _report(folder: Path, *ranks: list[dict[str, Any]], **header: Any) -> Report:
    for rank, events in enumerate(ranks):
        write(folder / f"rank{rank}.json", [*steps(3), *events], rank, len(ranks), **header)
    return build_report([str(folder)], ReportOptions(use_cache=False))


def test_the_fullest_device_of_the_run_is_named(tmp_path: Path) -> None:
    mine = [_event(10, 2 * GB, 5 * GB, 8 * GB), _event(150, GB, 6 * GB, 9 * GB), _event(160, -GB, 5 * GB, 9 * GB)]
    properties = [{"id": 0, "totalGlobalMem": 12 * GB}]

    report = _report(tmp_path, [_event(10, GB, 5 * GB, 9 * GB)], mine, deviceProperties=properties)

    assert not isinstance(report.memory, Unknown)
    assert (report.memory.rank, report.memory.memory) == (1, "cuda:0")
    assert (report.memory.peak_allocated_bytes, report.memory.peak_reserved_bytes) == (6 * GB, 9 * GB)
    assert (report.memory.capacity_bytes, report.memory.peak_share) == (12 * GB, 0.5)
    ends = [[unit.memory[0].end_allocated_bytes for unit in row.units] for row in report.ranks]
    assert ends == [[5 * GB] * 3, [5 * GB] * 3]
    assert [unit.memory[0].peak_allocated_bytes for unit in report.ranks[1].units] == [5 * GB, 6 * GB, 5 * GB]
    assert report.ranks[1].memory[0].reserved_at_peak_bytes == 9 * GB


def test_the_first_row_of_a_rank_shows_what_has_no_row_of_its_own(tmp_path: Path) -> None:
    """Device 3 allocates and runs nothing; the host has no row beside a device."""
    (row,) = _report(tmp_path, [_event(10, 8, 8, 0, -1), _event(20, GB, GB, GB, 3), _event(30, GB, GB, GB)]).ranks

    assert [memory.memory for memory in row.memory] == ["cuda:0", "cuda:3", "cpu"]


def test_without_memory_events_it_is_not_known_and_says_what_to_record(tmp_path: Path) -> None:
    report = _report(tmp_path, [])

    assert isinstance(report.memory, Unknown)
    assert report.memory.missing == ["profile_memory=True"]
    assert [entry.at for entry in report.unknown if "memory" in entry.at] == ["/memory"]
    assert report.ranks[0].memory == []
    assert report.ranks[0].units[0].memory == []


def test_the_host_alone_or_changes_alone_are_no_peak(tmp_path: Path) -> None:
    on_host = _report(tmp_path / "host", [_event(10, 8, 8, 0, -1)])
    of_2021 = _report(tmp_path / "2021", [_event(10, 8, None, None)])

    assert isinstance(on_host.memory, Unknown)
    assert "only the host's" in on_host.memory.unknown
    assert isinstance(of_2021.memory, Unknown)
    assert "no totals" in of_2021.memory.unknown
    assert of_2021.ranks[0].memory[0].from_start


def test_a_device_of_unknown_size_has_no_share(tmp_path: Path) -> None:
    report = _report(tmp_path, [_event(10, GB, GB, GB)])

    assert not isinstance(report.memory, Unknown)
    assert isinstance(report.memory.capacity_bytes, Unknown)
    assert isinstance(report.memory.peak_share, Unknown)


def test_the_tables_hold_what_the_document_does(tmp_path: Path) -> None:
    mine = [_event(10, 2 * GB, 5 * GB, 8 * GB), _event(150, GB, 6 * GB, 9 * GB), _event(20, 7, None, None, device=-1)]
    report = _report(tmp_path, mine)

    texts = render_csv(report)
    memory, units = (list(csv.DictReader(io.StringIO(texts[name]))) for name in ("memory.csv", "unit_memory.csv"))

    assert [(row["memory"], row["from_start"]) for row in memory] == [("cuda:0", "false"), ("cpu", "true")]
    assert [row["peak_allocated_bytes"] for row in memory] == [str(6 * GB), "7"]
    assert [row["peak_reserved_bytes"] for row in memory] == [str(9 * GB), ""]
    of_device = [row for row in units if row["memory"] == "cuda:0"]
    assert [row["unit"] for row in of_device] == [f"ProfilerStep#{k}" for k in range(3)]
    assert [int(row["end_allocated_bytes"]) // GB for row in of_device] == [5, 6, 6]
