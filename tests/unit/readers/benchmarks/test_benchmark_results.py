"""Results of other benchmark programs become run records; the files here were written by those programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError
from longpole.pipeline.measurements import read_measurements
from longpole.readers.benchmarks.asv import ONLY_MEDIAN as ASV_ONLY_MEDIAN
from longpole.readers.benchmarks.pytest_benchmark import ONLY_MEDIAN
from longpole.records.run_record_file import decode_record, encode_record

if TYPE_CHECKING:
    from longpole.records.run_record import RunRecord

DATA = Path(__file__).parent / "data"


def _read(name: str) -> tuple[dict[str, RunRecord], list[str]]:
    found = read_measurements(str(DATA / name))
    return {record.label: record for record in found.records}, found.refused


def _write(folder: Path, document: Any) -> str:
    file = folder / "results.json"
    file.write_text(json.dumps(document))
    return str(file)


def test_every_round_of_pytest_benchmark_is_a_unit_of_as_many_calls_as_it_timed() -> None:
    records, refused = _read("pytest-benchmark.json")

    record = records["test_b.py::test_sum"]
    stats = json.loads((DATA / "pytest-benchmark.json").read_text())["benchmarks"][1]["stats"]
    assert [unit.items for unit in record.units] == [5] * 8
    assert [unit.period_ns for unit in record.units] == [round(seconds * 5e9) for seconds in stats["data"]]
    assert refused == []


def test_pytest_benchmark_without_its_data_is_one_sample_and_says_so() -> None:
    records, _ = _read("pytest-benchmark.json")

    record = records["test_b.py::test_sort"]
    assert len(record.units) == 1
    assert record.extra["samples"] == ONLY_MEDIAN


def test_the_machine_is_what_must_match_and_its_name_is_not() -> None:
    records, _ = _read("pytest-benchmark.json")

    environment = records["test_b.py::test_sum"].environment
    assert environment.must_match["cpu"] == "AMD EPYC"
    assert environment.informational["host"] == "buildhost"
    assert "host" not in environment.must_match


def test_every_run_of_hyperfine_is_a_process_of_its_own() -> None:
    records, _ = _read("hyperfine.json")

    record = records["sleep 0.01"]
    assert [unit.process for unit in record.units] == list(range(6))
    assert [process.exit_code for process in record.processes] == [0] * 6


def test_a_run_of_hyperfine_that_failed_is_left_out_and_told() -> None:
    records, _ = _read("hyperfine.json")

    record = records["python3 -c pass"]
    assert [unit.left_out for unit in record.units] == ["", "", "exit code 3", "", "", ""]
    assert record.failure == "1 of 6 processes failed: exit code 3"
    assert len(record.counted()) == 5


def test_every_combination_of_parameters_of_asv_is_a_benchmark() -> None:
    records, _ = _read("asv.json")

    assert [name for name in records if "time_sum" in name] == [
        "b.S.time_sum(10, 'a')",
        "b.S.time_sum(10, 'b')",
        "b.S.time_sum(1000, 'a')",
        "b.S.time_sum(1000, 'b')",
    ]


def test_samples_of_asv_are_units_of_the_calls_timed_together() -> None:
    records, _ = _read("asv.json")

    record = records["b.time_pass"]
    assert [(unit.period_ns, unit.items) for unit in record.units] == [
        (3_300_000, 100),
        (3_400_000, 100),
        (3_200_000, 100),
    ]


def test_a_row_of_asv_whose_last_columns_are_missing_is_its_median() -> None:
    records, _ = _read("asv.json")

    record = records["b.S.time_sum(10, 'a')"]
    assert [unit.period_ns for unit in record.units] == [6182]
    assert record.extra["samples"] == ASV_ONLY_MEDIAN


def test_what_asv_measured_that_is_no_time_is_left_out_and_named() -> None:
    _, refused = _read("asv.json")

    assert [line.partition("asv.json: ")[2] for line in refused] == [
        "b.mem_list: is no time, by its name",
        "b.time_broken: failed or was skipped",
        "b.track_n: is no time, by its name",
    ]


@pytest.mark.parametrize("name", ["pytest-benchmark.json", "hyperfine.json", "asv.json"])
def test_an_imported_record_is_one_that_can_be_written_and_read_back(name: str) -> None:
    records, _ = _read(name)

    for record in records.values():
        assert decode_record(encode_record(record), "written.json") == record


def test_a_folder_is_all_measurements_in_it() -> None:
    found = read_measurements(str(DATA))

    assert len(found.paths) == 3
    assert len(found.records) == 9


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([1, 2], "is no JSON object"),
        ({"a": 1}, "is no measurement that can be read"),
        ({"results": [{"command": "x", "mean": 1.0}]}, "kept no time in it (x: has no times"),
        ({"machine_info": {}, "benchmarks": [{"name": "x"}]}, "benchmarks[0]: has no stats"),
        ({"version": 1, "result_columns": [], "results": {}}, "an asv result of version 1, expected 2"),
    ],
)
def test_a_file_without_a_time_is_refused_with_its_reason(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_measurements(_write(tmp_path, document))

    assert says in str(caught.value)


@pytest.mark.parametrize("bad", [-1.0, 0, float("nan"), float("inf"), True, "1", None, 1e300])
def test_times_that_are_none_cost_only_themselves(tmp_path: Path, bad: Any) -> None:
    row = {"command": "x", "times": [0.5, bad, 0.25], "exit_codes": [0, 0, 0]}

    found = read_measurements(_write(tmp_path, {"results": [row]}))

    assert [unit.period_ns for unit in found.records[0].units] == [500_000_000, 250_000_000]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot be read"):
        read_measurements(str(tmp_path / "none.json"))
