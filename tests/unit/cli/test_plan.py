"""`longpole plan` from the command line to its outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.cli.plan import with_figure
from tests.plans import PLAN, write_plan
from tests.unit.cli.test_app import modules_after

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write_plan(tmp_path)


def test_a_page_and_a_file(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"

    assert main(["plan", path, "--json", str(file)]) == 0

    out, err = capsys.readouterr()
    for title in ("FITS", "STEP", "MEMORY", "USE OF THE PEAK", "COLLECTIVES", "WHAT LIMITS", "TAKEN FOR GRANTED"):
        assert f"\n{title}" in out
    assert err == ""
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["schema"] == "longpole.plan/1"
    assert document["figures"]


def test_json_on_standard_output_is_all_there_is(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", path, "--json", "-", "--convention", "palm"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [use["convention"] for use in document["utilisation"] if use["asked"]] == ["palm"]


def test_no_line_is_wider_than_the_page(path: str, cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--search", "--free-memory", "--against", str(cases / "B069" / "input"), "--color", "never"]

    assert main(["plan", path, "--set", "search.tp=[2,4]", "--set", "search.pp=[1,2]", *asked]) == 0

    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert all(title in out for title in ("SEARCH", "IF MEMORY WERE SAVED", "BESIDE THE RUN", "ITS COLLECTIVES"))


def test_a_key_is_set_from_the_command_line(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--set", "layout.tp=8", "--set", "training.recompute=full", "--set", "layout.zero = 0"]

    assert main(["plan", path, *given, "--json", "-"]) == 0

    layout = json.loads(capsys.readouterr().out)["layout"]
    assert (layout["tp"], layout["recompute"], layout["zero"]) == (8, "full", 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "layout.tp"], "--set: expected KEY=VALUE, such as layout.tp=4; found 'layout.tp'"),
        (["--set", "layout.tpp=4"], "[layout] tpp: no key of [layout]; did you mean tp?"),
        (["--set", "layout.tp=3", "--set", "hardware.devices=6"], "tp=3 does not divide 32 heads"),
        (["--convention", "mfu"], "convention 'mfu' is not known. Accepted: 6n"),
        (["--set", "hardware.device=H1000"], "no peak is guessed"),
        (["--set", "hardware.network_gb_per_s=-1"], "expected a finite number above 0; found -1"),
        (["--explain", "speed"], "no figure has that in its name"),
        (["--color", "blue"], "--color: expected one of auto, always, never"),
        (["--against", "no/such/trace"], "no/such/trace"),
    ],
)
def test_a_mistake_ends_with_a_sentence_and_exit_code_2(
    path: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", path, *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_ends_with_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "absent.toml"]) == 3

    assert "expected a plan in TOML, found nothing" in capsys.readouterr().err


def test_a_search_that_finds_nothing_ends_with_exit_code_1(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--set", "hardware.memory_limit_gb=2", "--set", "search.tp=[4]", "--set", "search.pp=[2]"]

    assert main(["plan", path, "--search", *small]) == 1

    assert "none fits; closest is TP4·PP2·DP2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--explain"], ["--explain", "all"]),
        (["--explain", "--search"], ["--explain", "all", "--search"]),
        (["--explain", "-"], ["--explain", "all", "-"]),
        (["--explain=mfu"], ["--explain=mfu"]),
    ],
)
def test_explain_may_stand_without_a_figure(words: list[str], expected: list[str]) -> None:
    assert with_figure(words) == expected


def test_explaining_shows_formulas_and_nothing_else(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--explain", path]) == 0
    everything = capsys.readouterr().out
    assert main(["plan", path, "--explain", "micro-batches"]) == 0
    out = capsys.readouterr().out

    assert "global_batch/(dp*micro_batch) = 32/(2*1) = 16" in out
    assert "STEP " not in out
    assert len(everything) > 5 * len(out)


def test_names_from_a_plan_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'name = "a\\u001b[2Jb"\n' + PLAN.replace("[model]", '[model]\nname = "m\\u202e"')

    assert main(["plan", write_plan(tmp_path, text)]) == 0

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "a\\x1b[2Jb" in out


def test_a_plan_loads_nothing_that_it_does_not_use(path: str) -> None:
    loaded = modules_after(["plan", path])

    assert not loaded & {"numpy", "polars", "scipy", "rich", "torch", "pydantic"}
