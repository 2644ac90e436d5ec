"""`longpole figure` from the command line to its file, on the example traces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from longpole.cli.figure import FIGURES, FORMATS, LEDGER_BY
from longpole.cli.main import main

STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_cache(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGPOLE_CACHE", cache)


@pytest.fixture
def example(root: Path) -> str:
    return str(root / "examples" / "loader-bound")


def test_the_words_are_those_of_the_figures_themselves() -> None:
    """They are written twice, so that a slip of the pen is answered without loading anything."""
    from longpole.pipeline import figure
    from longpole.report.figures import sheet

    assert (FIGURES, FORMATS, LEDGER_BY) == (figure.FIGURES, sheet.FORMATS, figure.LEDGER_BY)


@pytest.mark.parametrize(("name", "kind"), [("gantt", "svg"), ("ledger", "pdf"), ("path", "png")])
def test_a_figure_is_written_as_its_files_name_says(
    example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / f"x.{kind}"

    assert main(["figure", name, example, "-o", str(out)]) == 0
    assert out.read_bytes().startswith(STARTS[kind])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{out}: ")


def test_a_figure_goes_to_standard_output_as_svg(example: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    pytest.importorskip("matplotlib")

    assert main(["figure", "ledger", example, "-o", "-", "-q"]) == 0
    said = capsysbinary.readouterr()
    assert said.out.startswith(b"<?xml")
    assert said.err == b""


def test_what_is_not_known_is_said_and_drawn_nowhere(
    example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example was recorded without a device."""
    pytest.importorskip("matplotlib")
    out = tmp_path / "x.svg"

    assert main(["figure", "matrix", example, "-o", str(out)]) == 5
    assert "figure matrix: not known: the trace holds no device spans; record: device activities" in (
        capsys.readouterr().err
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["pie", "-o", "x.svg"], "expected one of gantt, ledger, path, matrix; found 'pie'"),
        (["gantt"], "Add -o gantt.svg"),
        (["gantt", "-o", "x.jpg"], "ends in .svg, .png or .pdf; found .jpg"),
        (["gantt", "-o", "no/such/folder/x.svg"], "does not exist"),
        (["gantt", "-o", "x.svg", "--by", "unit"], "--by is for the ledger"),
        (["ledger", "-o", "x.svg", "--by", "stage"], "--by: expected one of rank, unit"),
        (["ledger", "-o", "x.svg", "--by", "unit", "--unit", "a"], "--by unit shows them all"),
        (["matrix", "-o", "x.svg", "--unit", "a"], "the matrix is over all units"),
        (["path", "-o", "x.svg", "--width", "400"], "expected inches from 3 to 40"),
        (["matrix", "-o", "x.svg", "--width", "3.4"], "expected inches from 6 to 40"),
        (["path", "-o", "x.svg", "--dpi", "300"], "SVG has no dots"),
        (["path", "-o", "x.png", "--dpi", "9999"], "expected 50 to 1200"),
        (["ledger", "-o", "x.svg", "--unit", "step 99"], "expected the name of a unit (ProfilerStep#"),
    ],
)
def test_a_slip_of_the_pen_is_a_sentence(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)

    assert main(["figure", words[0], example, *words[1:]]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_it_says_what_to_install(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    assert main(["figure", "gantt", example, "-o", str(tmp_path / "x.svg")]) == 2
    assert "pip install 'longpole[figures]'" in capsys.readouterr().err


def test_a_trace_is_never_drawn_over(example: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trace = tmp_path / "trace.svg"
    trace.write_bytes(next(Path(example).glob("*.json*")).read_bytes())
    before = trace.read_bytes()

    assert main(["figure", "ledger", str(trace), "-o", str(trace)]) == 2
    assert trace.read_bytes() == before
