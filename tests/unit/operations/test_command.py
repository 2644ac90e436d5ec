"""`longpole report` on operation tables: the page, the document, and what goes wrong."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.cli.main import main
from longpole.records.strict_json import encode_document
from longpole.report.operations import Operations, operations_schema
from longpole.report.schema import read_schema
from longpole.report.schema_of import written_type
from longpole.report.text.layout import columns_of
from longpole.report.text.operations import render_operations
from tests.operation_tables import Job, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.operation_tables import Row

    Report = Callable[[Iterable[Row]], Operations]

SLOW = Job(slow={(1, 0): 2.0}, steps=(1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(write_table(tmp_path / "operations.parquet", SLOW.rows()))


@pytest.mark.parametrize("name", ["operations.parquet", "operations.csv", "."])
def test_a_table_gives_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    if name != ".":
        write_table(tmp_path / name, SLOW.rows())
    else:
        write_table(tmp_path / "rank0.parquet", SLOW.rows())

    assert main(["report", str(tmp_path / name)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("4 ranks · 2 data-parallel × 2 stages · 3 micro-batches · 3 steps\n")
    assert "THE LONG POLE  rank 1 (stage 0, data-parallel rank 1) holds the job up" in out
    assert re.search(r"if nobody straggled +159\.0  slowdown 1\.252\n", out)
    assert err == ""


def test_the_document_has_its_schema(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", path, "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.operations/1"
    assert set(document) == set(json.loads(operations_schema())["$defs"]["Operations"]["properties"])
    assert document["culprit"]["ranks"] == [1]
    assert document["steps"]["error"] == 0.0
    assert [step["worst_rank"] for step in document["steps"]["each"]] == [1, 1, 1]


def test_a_written_document_reads_back(report: Report) -> None:
    document = report(SLOW.rows())

    read = msgspec.json.decode(encode_document(document), type=written_type(Operations))

    assert msgspec.to_builtins(read) == msgspec.to_builtins(document)


def test_every_unknown_and_limited_figure_is_there_to_be_found(report: Report) -> None:
    document = report([row for row in SLOW.rows() if row["rank"] != 1])
    plain = msgspec.json.decode(encode_document(document))

    for entry in document.unknown:
        value = plain
        for key in entry.at.split("/")[1:]:
            value = value[int(key)] if isinstance(value, list) else value[key]
    assert len(document.unknown) >= 5


def test_the_shipped_schema_is_current() -> None:
    assert read_schema("operations") == operations_schema(), "run python -m tools.write_generated"


def test_the_schema_can_be_printed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["schema", "operations"]) == 0

    assert capsysbinary.readouterr().out == operations_schema()


@pytest.mark.parametrize("option", [["--csv", "tables"], ["--step", "x"], ["--rank", "1"], ["--units", "1..2"]])
def test_options_of_traces_are_refused(path: str, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", path, *option]) == 2

    assert "is an operation table, and there this means nothing; leave it out" in capsys.readouterr().err


def test_a_table_is_never_written_over(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", path, "--json", path]) == 2

    assert "expected a file to write to" in capsys.readouterr().err


def test_missing_columns_are_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_table(tmp_path / "metrics.parquet", [{"step": 1, "loss": 0.5}])

    assert main(["report", str(path)]) == 3

    err = capsys.readouterr().err
    assert "without the columns rank, dp_rank, stage, optype, start_ts, duration" in err
    assert "docs/reference/operation-tables.md" in err


def test_settings_move_the_verdict(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[settings]\noperation_slowdown_min = 1.5\n", encoding="utf-8")

    assert main(["report", path, "--settings", str(settings)]) == 0

    assert "NO STRAGGLER  nobody holds the job up: a step takes 199.0 ms" in capsys.readouterr().out


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize("color", [False, True])
def test_no_name_breaks_the_page(report: Report, width: int, color: bool) -> None:
    """A type called like a control sequence, with a slow rank on it, a bad row, a hole and a left-out step."""
    nasty = "\x1b[2J\u202ecompute" + "n" * 90
    rows = [row | {"optype": nasty} if row["optype"] == "forward-compute" else row for row in SLOW.rows()]
    rows = [row for row in rows if (row["rank"], row["step"]) != (1, 2)]
    rows += [rows[0] | {"duration": -1.0, "seq_id": 77}]

    page = render_operations(report(rows), width=width, color=color)

    lines = re.sub(r"\x1b\[[0-9;]*m", "", page).splitlines()
    assert max(columns_of(line) for line in lines) <= max(width, 60)
    assert "\x1b[2J" not in page
    assert "\u202e" not in page
    assert "LEFT OUT" in page


def test_a_withdrawn_verdict_is_said_first(report: Report) -> None:
    page = render_operations(report([row for row in SLOW.rows() if row["rank"] != 1]), width=80, color=False)

    assert "NO VERDICT  because 1 place of the layout without a rank" in page
    assert "WRONG WITH THE RECORD" in page
    assert "THE LONG POLE" not in page


def test_a_stage_and_moving_slowness_are_said_as_such(report: Report) -> None:
    stage = render_operations(report(Job(slow={(0, 1): 2.0, (1, 1): 2.0}).rows()), width=200, color=False)
    turns = Job(steps=(1, 2, 3, 4), slow_in={(1, 0, 0): 3.0, (2, 1, 0): 3.0, (3, 0, 1): 3.0, (4, 1, 1): 3.0})
    moving = render_operations(report(turns.rows()), width=200, color=False)

    assert "THE LONG POLE  stage 1, the last one, holds the job up" in stage
    assert "THE LONG POLE  no rank is persistently slow" in moving
    assert "2 different data-parallel ranks were the worst in 4 steps" in moving


def test_a_step_on_other_clocks_is_left_out_by_name(report: Report) -> None:
    place = {"stage": 0, "duration": 1.0}
    rows = [
        {**place, "step": step, "rank": dp, "dp_rank": dp, "optype": name, "start_ts": start}
        for step in (1, 2)
        for dp in (0, 1)
        for name, start in (
            ("params-all-gather", 2.0 if (step, dp) == (1, 1) else 0.0),
            ("grads-all-reduce", 0.0 if (step, dp) == (1, 1) else 2.0),
        )
    ]

    document = report(rows)
    page = render_operations(document, width=80, color=False)

    assert [(step.step, step.why) for step in document.steps.left_out] == [(1, "its times contradict each other")]
    assert "  warn  1 step whose times contradict each other: 1" in page
    assert "2 ranks · 2 data-parallel × 1 stage · 1 step, 1 left out" in page
