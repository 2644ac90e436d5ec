"""`longpole bench collectives` from the command line: what is written, and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from longpole.bench.collectives import run
from longpole.cli.main import main
from longpole.records.bench_collectives import SCHEMA, CollectivesRecord
from longpole.records.bench_collectives_file import decode_collectives
from longpole.report.schema import read_schema
from longpole.report.schema_of import document_schema
from tests.nccl_logs import render_text
from tests.unit.pipeline.test_collective_logs import made_test

FAKE = [sys.executable, str(Path(__file__).resolve().parents[2] / "fake_ranks.py")]
QUICK = ["--kinds", "all_reduce", "--sizes", "1KiB..1MiBx4", "--rounds", "3", "--repeats", "7"]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where records go, with ranks that measure nothing real."""
    monkeypatch.setattr(run, "worker_command", lambda: FAKE)
    return tmp_path / "results"


def _bench(results: Path, *more: str) -> int:
    return main(["bench", "collectives", *QUICK, "--out", str(results), *more])


def test_a_record_is_written_under_its_semantic_id_and_label(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(results, "--label", "before") == 0

    (path,) = results.glob("*/*.json")
    record = decode_collectives(path.read_bytes(), str(path))
    assert (path.name, path.parent.name) == ("before.json", record.design.semantic_id)
    assert (record.status, record.label, record.machine.backend) == ("passed", "before", "gloo")
    assert len(record.points) == 6
    assert record.environment.must_match
    page = capsys.readouterr().out
    assert page.startswith("MEASURED  6 points of 1 kind measured, every result as it must be")
    assert "written:" in page


def test_no_record_is_written_over(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(results, "--label", "before") == 0
    (path,) = results.glob("*/*.json")
    kept = path.read_bytes()

    assert _bench(results, "--label", "before") == 2

    assert "is there already" in capsys.readouterr().err
    assert path.read_bytes() == kept


@pytest.mark.parametrize(("does", "code", "status"), [("die:1", 1, "failed"), ("wrong:1", 6, "invalid")])
def test_how_it_ends_says_what_became_of_it(results: Path, does: str, code: int, status: str) -> None:
    assert _bench(results, "--set", f"OMP_FAKE_RANKS={does}", "-q") == code

    (path,) = results.glob("*/*.json")
    assert decode_collectives(path.read_bytes(), str(path)).status == status


def test_a_faster_setting_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(results, "--set", "OMP_SPEED=2") == 0

    page = capsys.readouterr().out
    assert page.startswith("MEASURED  OMP_SPEED=2 makes all_reduce")
    assert "next: try OMP_SPEED=2 in the job itself" in page


def test_a_dry_run_measures_nothing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(results, "--dry-run", "--set", "NCCL_ALGO=Ring,Tree", "--bucket", "64KiB") == 0

    assert "would measure 8 points under each of 3 settings, 3 rounds: 9 sets of 2 processes" in capsys.readouterr().out
    assert not results.exists()


def test_a_log_is_read_into_the_same_table(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    log = tmp_path / "all_reduce.log"
    log.write_text(render_text(made_test()), encoding="utf-8")

    assert main(["bench", "collectives", "--read", str(log), "--json", "-"]) == 0

    document = json.loads(capsysbinary.readouterr().out)
    assert document["schema"] == SCHEMA
    assert {point["statistic"] for point in document["points"]} == {"mean"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--world", "1"], "from 2 to 64 ranks"),
        (["--kinds", "all_red"], "--kinds"),
        (["--timeout", "5"], "--timeout"),
        (["--dtype", "float8"], "--dtype"),
        (["--read", "none.log"], "no such file"),
        (["--read", "x.log", "--kinds", "all_reduce,broadcast"], "--kinds"),
        (["--repeats", "0"], "--repeats"),
    ],
)
def test_a_slip_of_the_pen_is_explained(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "collectives", *arguments]) == 2

    assert says in capsys.readouterr().err


def test_the_schema_is_current_and_printed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["schema", "bench-collectives"]) == 0

    shipped = read_schema("bench-collectives")
    assert capsysbinary.readouterr().out == shipped == document_schema(CollectivesRecord, SCHEMA)
