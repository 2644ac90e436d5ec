"""Where a report goes, and what is refused before any work is done."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from longpole.cli.outputs import Outputs
from longpole.errors import UsageError
from tests.report_builder import SAMPLES, make_ledger, make_report, make_row

if TYPE_CHECKING:
    from pathlib import Path


def make_outputs(
    *,
    json_file: Path | str | None = None,
    csv_folder: Path | str | None = None,
    quiet: bool = False,
    detail: str = "rank",
    markdown_file: Path | str | None = None,
    parquet_folder: Path | None = None,
) -> Outputs:
    return Outputs(
        json_file=None if json_file is None else str(json_file),
        csv_folder=None if csv_folder is None else str(csv_folder),
        detail=detail,
        quiet=quiet,
        color="never",
        markdown_file=None if markdown_file is None else str(markdown_file),
        parquet_folder=None if parquet_folder is None else str(parquet_folder),
    )


REPORT = SAMPLES["typical"]()
needs_permissions = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")


def test_the_page_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    make_outputs().write(REPORT)

    assert capsys.readouterr().out.startswith("8 of 8 ranks")


def test_who_is_quiet_gets_no_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_outputs(quiet=True, json_file=tmp_path / "r.json").write(REPORT)

    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "r.json").read_bytes())["schema"] == "longpole.report/1"


def test_a_json_file_leaves_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_outputs(json_file=tmp_path / "r.json", detail="run").write(REPORT)

    assert "THE LONG POLE" in capsys.readouterr().out
    assert json.loads((tmp_path / "r.json").read_bytes())["ranks"] == []


def test_json_on_standard_output_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    make_outputs(json_file="-").write(REPORT)

    assert json.loads(capsys.readouterr().out)["run"]["world_size"] == 8


def test_tables_go_into_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "tables"
    outputs = make_outputs(csv_folder=folder, quiet=True)

    outputs.check()
    assert not folder.exists()
    outputs.write(REPORT)

    assert {"ledger.csv", "units.csv", "unknown.csv"} <= {path.name for path in folder.iterdir()}


def test_a_folder_is_no_json_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a file to write, found a folder; name a file in it"):
        make_outputs(json_file=tmp_path).check()


def test_a_json_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the folder .*nowhere does not exist"):
        make_outputs(json_file=tmp_path / "nowhere" / "r.json").check()


def test_a_file_is_no_folder_for_tables(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    with pytest.raises(UsageError, match=r"expected a folder, found the file .*file; name another"):
        make_outputs(csv_folder=tmp_path / "file" / "tables").check()


@needs_permissions
@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_a_place_without_permission_is_refused(option: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(UsageError, match=f"{option}.*no permission"):
        make_outputs(
            json_file=tmp_path / "x" if option == "--json" else None,
            csv_folder=tmp_path / "x" if option == "--csv" else None,
        ).check()


def test_a_write_that_fails_is_one_sentence(tmp_path: Path) -> None:
    """The place was fine when it was checked, and is not any more."""
    target = tmp_path / "r.json"
    outputs = make_outputs(json_file=target)
    outputs.check()
    target.mkdir()

    with pytest.raises(UsageError, match=r"--json .*r\.json: cannot be written: Is a directory; name another place"):
        outputs.write(REPORT)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("mine")

    with pytest.raises(UsageError, match=r"--csv .*tables: cannot be written: File exists"):
        make_outputs(csv_folder=tmp_path / "tables", quiet=True).write(REPORT)


def test_a_trace_is_never_overwritten_by_its_report(tmp_path: Path) -> None:
    trace = tmp_path / "rank0.json"
    trace.write_text("[]")
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})])], path=str(trace))

    with pytest.raises(UsageError, match="found one of the traces; name another"):
        make_outputs(json_file=tmp_path / "." / "rank0.json").write(report)

    assert trace.read_text() == "[]"


def test_markdown_takes_the_pages_place_on_standard_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_outputs(markdown_file="-", parquet_folder=tmp_path / "tables").write(REPORT)

    out = capsys.readouterr().out
    assert out.startswith("### The long pole")
    assert "THE LONG POLE" not in out
    assert (tmp_path / "tables" / "ledger.parquet").read_bytes()[:4] == b"PAR1"


def test_a_file_of_markdown_is_written_beside_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_outputs(markdown_file=tmp_path / "comment.md").write(REPORT)

    assert capsys.readouterr().out.startswith("8 of 8 ranks")
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith("### The long pole")


def test_two_documents_on_standard_output_are_refused() -> None:
    with pytest.raises(UsageError, match="--json - and --markdown -: expected one document"):
        make_outputs(json_file="-", markdown_file="-").check()


def test_a_missing_folder_for_markdown_is_told_by_its_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--markdown .*does not exist"):
        make_outputs(markdown_file=tmp_path / "none" / "comment.md").check()
