"""`longpole scaling` from the command line to its outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.report.scaling import scaling_schema
from longpole.report.schema import read_schema
from tests.scaling_runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGPOLE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs" / "n1", 1)
    write_run(tmp_path / "runs" / "n2", 2, idle_us=60)
    return tmp_path / "runs"


def test_a_page_and_a_file(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scaling.json"

    assert main(["scaling", str(runs), "--items", "256", "--json", str(file)]) == 0

    out, err = capsys.readouterr()
    assert "SCALING  n2 (2 ranks): a rank processes its items at 73% of the pace of n1" in out
    assert err == ""
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["schema"] == "longpole.scaling/1"
    assert document["items"] == {"basis": "declared", "says": "items per rank as declared"}


def test_json_on_standard_output_is_all_there_is(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scaling", str(runs), "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["base"] == "n1"


def test_runs_of_two_jobs_end_with_six(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "n1", 1)
    write_run(tmp_path / "n2", 2, name="conv")

    assert main(["scaling", str(tmp_path / "n1"), str(tmp_path / "n2")]) == 6

    assert "NOT COMPARABLE  these are not one job" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--items", "0"], "--items: expected a whole number of at least 1"),
        (["--items-of", "n1"], "--items-of: expected RUN=N"),
        (["--items-of", "n1=4", "--items-of", "n1=4"], "--items-of: expected each run once"),
        (["--strong", "--items", "4"], "--strong is an assumption"),
        (["--json", "/nowhere/at/all.json"], "does not exist"),
    ],
)
def test_a_wrong_option_ends_with_two(
    runs: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scaling", str(runs), *options]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_a_trace_is_never_written_over(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = runs / "n1" / "rank0.json"
    before = trace.read_bytes()

    assert main(["scaling", str(runs), "--json", str(trace)]) == 2

    assert trace.read_bytes() == before
    assert "found one of the traces" in capsys.readouterr().err


def test_the_schema_is_current_and_printed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Write it anew with `python -m tools.write_generated`."""
    assert main(["schema", "scaling"]) == 0

    assert capsysbinary.readouterr().out == read_schema("scaling") == scaling_schema()
