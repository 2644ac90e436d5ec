"""`longpole bench run`, `doctor` and `calibrate` as they are typed: records, pages, exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from longpole.cli.main import main
from longpole.records.calibration import read_calibration
from longpole.records.run_record_file import decode_record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_command_is_measured_kept_and_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "run", "--processes", "2", "--label", "a", "--out", str(tmp_path), "--", "true"]

    first, (page, _) = main(words), capsys.readouterr()
    second, (_, error) = main(words), capsys.readouterr()

    (path,) = tmp_path.rglob("*.json")
    record = decode_record(path.read_bytes(), str(path))
    assert (first, second) == (0, 2)
    assert (len(record.processes), len(record.counted()), record.failure) == (3, 2, "")
    assert "median of 2 processes" in page
    assert "never written over" in error


def test_a_command_that_fails_leaves_a_record_that_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["bench", "run", "--out", str(tmp_path / "r.json"), "--json", "-", "false"])

    out, _ = capsys.readouterr()
    assert code == 6
    assert json.loads(out)["failure"] == "process 0: exit code 1"
    assert json.loads((tmp_path / "r.json").read_text())["failure"] == "process 0: exit code 1"


def test_a_command_that_cannot_be_started_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "run", "--out", str(tmp_path), "no-such-program"]) == 2

    assert "no-such-program: cannot be started" in capsys.readouterr().err
    assert list(tmp_path.rglob("*.json")) == []


def test_the_doctor_ends_well_whatever_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "doctor", "--watch", "1ms", "--no-loop", "--json", "-"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "longpole.doctor/1"
    assert found["loop"] is None
    assert {"other load", "CPU quota"} <= {check["name"] for check in found["checks"]}


def test_a_calibration_is_kept_for_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "calibrate", "--out", str(tmp_path / "c.json"), "--pairs"]

    enough, few = main([*words, "5", "true"]), main([*words, "4", "true"])

    found = read_calibration(tmp_path / "c.json")
    assert (enough, few) == (0, 6)
    assert found.floors["time"] == found.floors["throughput"] == found.figures[0].floor_share
    assert "at least 5 pairs" in capsys.readouterr().err
