"""`longpole memory` from the command line to its outputs."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.report.memory_snapshot import memory_schema
from longpole.report.schema import read_schema
from tests.case_answers import CASES
from tests.memory_snapshots import block, failed, segment, snapshot

if TYPE_CHECKING:
    from pathlib import Path

PIECES = snapshot([segment(block(6), block(4, "inactive"), block(6), block(4, "inactive"))], [failed(6, 1)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two ranks, one of them out of memory; a trace and a cut file lie beside them."""
    for rank, fields in enumerate((snapshot([segment(block(9))]), PIECES)):
        (tmp_path / f"rank{rank}_snapshot.pickle").write_bytes(pickle.dumps(fields))
    (tmp_path / "rank0.trace.json").write_text('{"traceEvents": []}')
    (tmp_path / "rank2_snapshot.pickle").write_bytes(pickle.dumps(PIECES)[:40])
    return tmp_path


def test_of_a_folder_the_rank_that_failed_comes_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(folder)]) == 0

    out, err = capsys.readouterr()
    assert "FREE, BUT IN PIECES  rank 1 device 0: a request of 6.00 MiB failed" in out
    assert "this pickle cannot be read" in " ".join(out.split())
    assert err == ""


def test_json_on_standard_output_is_all_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(folder), "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.memory/1"
    assert (document["cause"], document["worst"]) == ("fragmentation", 1)
    assert [device["rank"] for device in document["devices"]] == [0, 1]
    assert len(document["refused"]) == 1


def test_the_shipped_schema_is_that_of_the_code() -> None:
    assert read_schema("memory") == memory_schema()


@pytest.mark.parametrize("name", ["rank0.trace.json", "rank2_snapshot.pickle"])
def test_a_named_file_that_is_no_snapshot_is_an_error(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", str(folder / name)]) == 3

    assert name in capsys.readouterr().err


def test_a_path_that_does_not_exist_is_a_wrong_call(tmp_path: Path) -> None:
    assert main(["memory", str(tmp_path / "none")]) == 2


def test_a_report_names_the_command_that_reads_a_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(CASES / "B090" / "input.json")]) == 3

    assert "longpole memory" in capsys.readouterr().err
