"""Records made from traces say what the report of the same run says."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.pipeline.run_records import ItemsOfUnit, make_record, read_record
from longpole.records.ledger import Unknown
from longpole.records.run_record_file import decode_record, encode_record
from longpole.settings import Settings
from tests.scaling_runs import write_run
from tests.trace_text import BASE_US, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.run_record import RunRecord
    from longpole.report.document import Report

OPTIONS = ReportOptions(use_cache=False)


def record_of(path: Path, items: ItemsOfUnit | None = None) -> tuple[RunRecord, Report]:
    run, report = report_on([str(path)], OPTIONS)
    return make_record(run, report, Settings(), items=items), report


def test_periods_and_parts_are_those_of_the_report(tmp_path: Path) -> None:
    record, report = record_of(write_run(tmp_path / "run", 2))
    periods = [unit.period_ns for unit in record.counted()]
    assert len(periods) == report.unit.period_ns.n
    assert sorted(periods)[len(periods) // 2] == report.unit.period_ns.median  # type: ignore[type-var]  # integers
    units = [unit for unit in record.units if not unit.left_out]
    exposed = sum(unit.objects["compute"].exposed_ns for unit in units) / len(units)
    assert exposed == pytest.approx(report.ledger.objects["compute"].exposed_ns, abs=2)
    assert [row.rank for row in record.rows] == [0, 1]
    assert record.world_size == 2


def test_every_unit_keeps_the_law_of_the_ledger(corpus: Path) -> None:
    for name in ("ddp2_slow_rank", "ddp2_fsdp", "collectives_3rank", "single/dl_workers0.pt.trace.json.gz"):
        record, _ = record_of(corpus / "own-torch-cpu" / "kineto" / name)
        for unit in record.units:
            assert sum(time.exposed_ns for time in unit.objects.values()) == unit.wall_ns, name


def test_a_record_of_real_traces_is_read_back_as_it_was(corpus: Path) -> None:
    record, _ = record_of(corpus / "own-torch-cpu" / "kineto" / "ddp2_slow_rank", ItemsOfUnit(count=256, kind="sample"))
    assert decode_record(encode_record(record), "a.json") == record
    assert record.items_per_unit == 256
    assert record.environment.must_match["backend"] == "gloo"
    assert record.contract.elements_per_unit
    assert record.contract.shapes
    assert isinstance(record.limits["peak_bytes"], Unknown)


def test_sources_carry_the_hash_of_their_bytes(tmp_path: Path) -> None:
    record, _ = record_of(write_run(tmp_path / "run", 1))
    source = record.sources[0]
    data = (tmp_path / "run" / "rank0.json").read_bytes()
    assert source.bytes == len(data)
    assert source.blake2b == hashlib.blake2b(data, digest_size=20).hexdigest()


def test_the_same_bytes_have_the_same_id_wherever_they_lie(tmp_path: Path) -> None:
    one, _ = record_of(write_run(tmp_path / "one", 2))
    other, _ = record_of(write_run(tmp_path / "other", 2))
    slower, _ = record_of(write_run(tmp_path / "slower", 2, idle_us=40))
    assert one.run_id == other.run_id != slower.run_id


def test_report_writes_a_record_with_what_is_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = write_run(tmp_path / "run", 1), tmp_path / "run.json"
    arguments = [
        "report",
        str(folder),
        "-q",
        "--no-cache",
        "--record",
        str(file),
        "--items",
        "512:token",
        "--label",
        "a",
    ]
    assert main(arguments) == 0
    record = read_record(str(file))
    assert (record.items_per_unit, record.item_kind, record.label) == (512, "token", "a")
    assert json.loads(file.read_text())["schema"] == "longpole.record/1"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (["--items", "512"], "--items: goes into a run record"),
        (["--label", "a"], "--label: goes into a run record"),
        (["--record", "-"], "expected a file"),
        (["--record", "no/such/folder/a.json"], "does not exist"),
        (["--record", "{trace}"], "one of the traces"),
        (["--record", "{folder}/r.json", "--items", "0"], "--items: expected N or N:KIND"),
        (["--record", "{folder}/r.json", "--items", "5:"], "--items: expected N or N:KIND"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], found: str
) -> None:
    folder = write_run(tmp_path / "run", 1)
    filled = [text.format(trace=folder / "rank0.json", folder=tmp_path) for text in more]
    assert main(["report", str(folder), "-q", "--no-cache", *filled]) == 2
    assert found in capsys.readouterr().err


def test_peak_memory_is_what_the_fullest_device_held(tmp_path: Path) -> None:
    """Recorded with `profile_memory=True`: allocated, not what the allocator keeps for later."""
    args = {"Bytes": 512, "Total Allocated": 4096, "Total Reserved": 8192, "Device Type": 1, "Device Id": 0}
    event = {"ph": "i", "s": "t", "name": "[memory]", "pid": 4200, "tid": 4200, "ts": BASE_US + 30, "args": args}

    record, _ = record_of(write(tmp_path / "rank0.json", [*steps(3), event]))

    assert record.limits["peak_bytes"] == 4096
