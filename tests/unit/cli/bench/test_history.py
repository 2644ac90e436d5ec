"""`longpole bench history`: files, exit codes, and what is said of wrong use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.records.run_record_file import encode_record
from tests.bench_runs import bench_record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> str:
    records = tmp_path / "records"
    records.mkdir()
    for day in range(20):
        record = bench_record(1e8 * (1.1 if day >= 10 else 1.0), label=f"night-{day:02}", day=day + 1)
        (records / f"{day:02}.json").write_bytes(encode_record(record))
    return str(records)


def test_a_drift_is_told_and_fails_only_where_that_was_asked_for(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "history", folder, "--baseline", "10"]) == 0
    assert "SLOWER  train takes 10.0 % more time" in capsys.readouterr().out
    assert main(["bench", "history", folder, "--baseline", "10", "--fail-on-drift", "-q"]) == 1


def test_json_and_picture_are_written(folder: str, tmp_path: Path) -> None:
    data, picture = tmp_path / "h.json", tmp_path / "h.svg"

    assert main(["bench", "history", folder, "--json", str(data), "--picture", str(picture), "-q"]) == 0

    assert json.loads(data.read_bytes())["schema"] == "longpole.history/1"
    assert picture.read_text().startswith("<svg")


def test_accepting_asks_for_a_reason(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "history", folder, "--accept", "night-10"]) == 2
    assert "--because" in capsys.readouterr().err


def test_an_accepted_level_is_steady_from_then_on(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "history", folder, "--accept", "night-10", "--because", "meant", "--fail-on-drift"]) == 0
    assert "STEADY" in capsys.readouterr().out


def test_a_history_too_short_to_judge_is_no_pass(folder: str) -> None:
    assert main(["bench", "history", folder + "/00.json", "--fail-on-drift", "-q"]) == 5


def test_a_benchmark_that_is_not_there_is_usage(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "history", folder, "--benchmark", "nope"]) == 2
    assert "there are train" in capsys.readouterr().err
