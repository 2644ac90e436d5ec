"""`longpole whatif` on operation tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(root: Path) -> str:
    return str(root / "examples" / "pipeline-timers" / "operations.csv")


def test_changes_of_a_table_are_replayed_together(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", table, "--set", "rank:1&compute=0.5x", "--remove", "name:forward"]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("PREDICTION  a step takes ")
    assert out.index("rank:1&compute: 0.5 times as long, 35 operations") < out.index("name:forward: no time")
    assert "THE CHANGES   replayed together" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert err == ""


def test_a_change_for_the_worse_says_more(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", table, "--set", "compute=2x"]) == 0

    assert " MORE (" in capsys.readouterr().out


def test_the_answer_as_json(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", table, "--equalise", "speed", "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.operations.whatif/1"
    assert document["saving_ns"] == document["replayed_period_ns"] - document["predicted_period_ns"] > 0


def test_a_replay_that_is_too_far_off_gives_no_prediction(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "strict.toml"
    settings.write_text("[settings]\noperation_error_max = 0.0001\n", encoding="utf-8")

    assert main(["whatif", table, "--equalise", "speed", "--settings", str(settings)]) == 5

    assert "NO PREDICTION  because the unchanged replay is off by" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--remove", "input"], "--remove input: expected name:REGEX"),
        (["--prefetch", "input"], "an operation table holds nothing"),
        (["--remove", "name:nothing_like_it"], "there is no such operation"),
        (["--remove", "compute", "--rank", "0"], "--rank: "),
        ([], "expected at least one change"),
    ],
)
def test_what_means_nothing_for_a_table_ends_with_two(
    table: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", table, *options]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
