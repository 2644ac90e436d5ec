"""`longpole bench compare`, `import` and `export`: files, formats, and what is said of wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longpole.cli.main import main
from longpole.records.run_record_file import decode_record, encode_record
from tests.bench_runs import bench_record

RESULTS = Path(__file__).parents[2] / "readers" / "benchmarks" / "data"


@pytest.fixture
def sides(tmp_path: Path) -> list[str]:
    files = []
    for label, period_ns in (("old", 1e8), ("new", 1.3e8)):
        file = tmp_path / f"{label}.json"
        file.write_bytes(encode_record(bench_record(period_ns, label=label, processes=6, noise=0.01)))
        files.append(str(file))
    return files


def test_two_files_are_compared(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", *sides]) == 0
    assert "+3" in capsys.readouterr().out


def test_json_on_standard_output_is_all_there_is(sides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", "--base", sides[0], "--new", sides[1], "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.compare/1"
    assert document["benchmarks"][0]["row"]["answer"] == "slower"


@pytest.mark.parametrize("asked", [[], ["one.json"], ["a", "b", "c"], ["a", "b", "--base", "c"], ["--base", "a"]])
def test_anything_but_two_sides_is_usage(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", *asked]) == 2
    assert "--base" in capsys.readouterr().err


def test_results_of_other_programs_become_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "records"

    assert main(["bench", "import", str(RESULTS / "hyperfine.json"), "--out", str(out)]) == 0

    files = capsys.readouterr().out.split()
    records = [decode_record(Path(file).read_bytes(), file) for file in files]
    assert [record.label for record in records] == ["sleep 0.01", "python3 -c pass"]


def test_a_record_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "import", str(RESULTS / "hyperfine.json"), "--out", str(tmp_path)]
    assert main(asked) == 0

    assert main(asked) == 2
    assert "never written over" in capsys.readouterr().err


def test_what_is_no_time_is_told_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "import", str(RESULTS / "asv.json"), "--out", str(tmp_path)]) == 0
    assert "b.track_n: is no time" in capsys.readouterr().err


def test_the_metric_format_has_a_measure_for_time_rate_and_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.json"
    record = bench_record(512e6, label="r", processes=5, noise=0.01, stages={"Forward Pass": 0.5})
    file.write_bytes(encode_record(record))

    assert main(["bench", "export", str(file)]) == 0

    measures = json.loads(capsys.readouterr().out)["train"]
    assert set(measures) == {"latency", "throughput", "stage-forward-pass"}
    latency = measures["latency"]
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert latency["value"] == pytest.approx(1e6, rel=0.02)
    assert measures["throughput"]["value"] == pytest.approx(1000, rel=0.02)


def test_results_of_other_programs_can_be_exported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "export", str(RESULTS)]) == 0
    assert "b.time_pass" in json.loads(capsys.readouterr().out)
