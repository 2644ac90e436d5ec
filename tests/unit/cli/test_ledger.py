"""`longpole ledger` from the command line to its outputs."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.report.declared_ledger import ledger_schema
from longpole.report.schema import read_schema
from tests.ledger_samples import ORACLE, STEP

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(ORACLE))
    return file


def test_a_page_and_a_file(events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ledger.json"

    assert main(["ledger", str(events), "--json", str(file)]) == 0

    out, err = capsys.readouterr()
    assert "EXPOSED  a unit waits for 1.02 s of 1.04 s of service; most of it for artifact" in out
    assert err == ""
    assert json.loads(file.read_text(encoding="utf-8"))["total_exposed_ms"] == 1016.0


def test_json_on_standard_output_is_all_there_is(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", str(events), "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["source"] == str(events)


def test_events_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ORACLE).encode())))

    assert main(["ledger", "-", "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["total_bytes"] == 1_400_000_000


def test_what_a_unit_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.json"
    file.write_text(json.dumps(STEP))

    assert main(["ledger", str(file), "--requests-per-unit", "10", "--units-per-run", "2.5e2"]) == 0

    assert "10 requests a unit · 250 units a run" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "x", "", "1_0", "0.0"])
def test_a_conversion_is_a_number_above_zero(value: str, events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", str(events), f"--units-per-run={value}"]) == 2

    assert "--units-per-run: expected a number above 0" in capsys.readouterr().err


def test_a_mistake_ends_with_three(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events.write_text(json.dumps([{**ORACLE[0], "bandwidth_gbps": 0, "name": "a\x1b[2J"}]))

    assert main(["ledger", str(events)]) == 3

    out, err = capsys.readouterr()
    assert out == ""
    assert "event 1 (a\\x1b[2J), line 1: bandwidth_gbps: expected a finite number above 0" in err
    assert "\x1b" not in err


def test_the_events_are_not_written_over(events: Path) -> None:
    before = events.read_bytes()

    assert main(["ledger", str(events), "--json", str(events)]) == 2

    assert events.read_bytes() == before


def test_the_schema_is_the_one_that_is_shipped(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["schema", "ledger"]) == 0

    assert capsysbinary.readouterr().out == read_schema("ledger") == ledger_schema()
