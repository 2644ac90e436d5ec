"""`longpole report` from the command line to its outputs, on the example traces and on hostile ones."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGPOLE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def example(root: Path) -> str:
    return str(root / "examples" / "loader-bound")


def make_trace(folder: Path, name: str) -> Path:
    """A trace whose every name is the given one."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10, "dur": 20},
        {"ph": "X", "cat": "cpu_op", "name": f"{name}2", "pid": 1, "tid": 1, "ts": 70, "dur": 5},
    ]
    path = folder / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


def test_an_example_gives_a_page_of_80_columns(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", example]) == 0

    out, err = capsys.readouterr()
    assert "THE LONG POLE" in out
    assert "WHERE A STEP GOES" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert err == ""


def test_json_on_standard_output_is_all_there_is(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", example, "--json", "-"]) == 0

    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == "longpole.report/1"
    assert err == ""


def test_a_second_look_says_the_same(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From the cache, and without it."""
    pages = []
    for options in ([], [], ["--no-cache"], ["--verify-cache"]):
        assert main(["report", example, *options]) == 0
        pages.append(capsys.readouterr().out)

    assert len(set(pages)) == 1


def test_units_may_be_chosen(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", example, "--json", "-"])
    numbers = [int(unit["name"].split("#")[1]) for unit in units_of(capsys) if unit["kind"] == "step"]
    first, last = numbers[1], numbers[2]

    assert main(["report", example, "--json", "-", "--units", f"{first}..{last}"]) == 0

    chosen = [int(unit["name"].split("#")[1]) for unit in units_of(capsys) if unit["kind"] == "step"]
    assert chosen == [first, last]


def test_tables_and_document_agree(example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", example, "-q", "--json", str(tmp_path / "r.json"), "--csv", str(tmp_path / "tables")]) == 0

    assert capsys.readouterr().out == ""
    row = json.loads((tmp_path / "r.json").read_bytes())["ranks"][0]
    with (tmp_path / "tables" / "ledger.csv").open(encoding="utf-8", newline="") as file:
        exposed = {cells["object"]: int(cells["exposed_ns"]) for cells in csv.DictReader(file)}
    assert exposed == {name: time["exposed_ns"] for name, time in row["ledger"]["objects"].items()}


def test_colour_is_there_when_it_is_asked_for(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", example, "--color", "always"])

    assert "\x1b[1mWHERE A STEP GOES\x1b[0m" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["\x1b[2J\x1b]0;owned\x07", "a\nb\rc", "\u202egnp.exe", "\ud800", "=cmd|' /C calc'!A0", "x" * 100_000]
)
def test_no_name_reaches_the_terminal_as_more_than_text(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_trace(tmp_path, name)

    assert main(["report", str(path), "--csv", str(tmp_path / "tables")]) == 0

    out = capsys.readouterr().out
    assert out.isprintable() or not [char for char in out if char != "\n" and not char.isprintable()]
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--units", "7..3"], "--units"),
        (["--rank", "x"], "--rank"),
        (["--job", "0"], "--job"),
        (["--jobs", "-3"], "--jobs"),
        (["--detail", "all"], "--detail"),
        (["--color", "red"], "--color"),
        (["--json", "no/such/folder/r.json"], "--json"),
        (["--rank", "77"], "--rank"),
        (["--rules", "no/such/rules.toml"], "rules.toml"),
        (["--settings", "no/such/settings.toml"], "settings.toml"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_exit_code_2(
    options: list[str], found: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", example, *options]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("longpole: ")
    assert found in err
    assert err.count("\n") == 1


def test_a_path_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "no/such/path"]) == 2

    assert "no/such/path" in capsys.readouterr().err


def test_a_file_that_is_no_trace_is_an_input_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.json").write_text('{"shopping": ["milk"]}')

    assert main(["report", str(tmp_path / "notes.json")]) == 3

    assert "notes.json" in capsys.readouterr().err


def test_the_cache_can_be_measured_and_emptied(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", example, "-q"])

    assert main(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith("1 entry, ")
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.endswith(" freed\n")
    assert main(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith("0 entries, 0 B in ")


def test_the_schema_is_the_shipped_one(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "report"]) == 0

    shipped = root / "src" / "longpole" / "report" / "schema" / "report.json"
    assert json.loads(capsys.readouterr().out) == json.loads(shipped.read_bytes())


def units_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    units: list[dict[str, str]] = json.loads(capsys.readouterr().out)["ranks"][0]["units"]
    return units
