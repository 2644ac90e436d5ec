"""`longpole candidates` from the command line: what it writes, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.report.candidates import candidates_schema
from longpole.report.schema import read_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trace(root: Path) -> str:
    return str(root / "examples" / "loader-bound")


def test_the_page_names_the_remedy_and_a_command(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["candidates", trace, "--no-cache"]) == 0

    page = capsys.readouterr().out
    assert "1  input.prefetch" in page
    assert f"longpole whatif {trace} " in page.replace(" \\\n", " ")
    assert "TOGETHER" in page


def test_json_goes_to_standard_output(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["candidates", trace, "--no-cache", "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.candidates/1"
    assert document["candidates"][0]["id"] == "input.prefetch"
    assert document["explained"] is None


def test_json_and_page_together(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "candidates.json"
    arguments = ["candidates", trace, "--no-cache", "--json", str(target), "--explain", "input.cache"]

    assert main(arguments) == 0

    assert json.loads(target.read_text(encoding="utf-8"))["explained"]["id"] == "input.cache"
    assert "CONTRACT" in capsys.readouterr().out


def test_quiet_prints_nothing(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["candidates", trace, "--no-cache", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_mistake_in_the_catalogue_ends_with_two(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[[change]]\nid = "input.cache"\neffort = "tiny"\n', encoding="utf-8")

    assert main(["candidates", trace, "--catalogue", str(mine)]) == 2

    assert f"{mine}, line 3: row 'input.cache' of [[change]], key 'effort'" in capsys.readouterr().err


def test_an_unknown_row_ends_with_two(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["candidates", trace, "--explain", "input.nothing"]) == 2
    assert "expected the id of a row of the catalogue" in capsys.readouterr().err


def test_nothing_to_read_ends_as_for_a_report(tmp_path: Path) -> None:
    assert main(["candidates", str(tmp_path)]) == main(["report", str(tmp_path)])


def test_the_schema_is_shipped_as_the_code_makes_it(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["schema", "candidates"]) == 0

    assert capsysbinary.readouterr().out == read_schema("candidates") == candidates_schema()
