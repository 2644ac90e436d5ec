"""`longpole whatif` from the command line: what is handed to the engine, what is written, and how it ends."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from longpole.cli.main import main
from longpole.report.schema import read_schema
from longpole.report.whatif import whatif_schema
from tests.whatif_samples import refused, usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.pipeline.reading import ReportOptions
    from longpole.report.whatif import WhatIf
    from longpole.whatif.change import Change


@dataclass
class Engine:
    """Stands in for the engine: it answers what it is told to, and remembers what it was asked."""

    answer: WhatIf = field(default_factory=usable)
    paths: Sequence[str] = ()
    changes: Sequence[Change] = ()
    options: ReportOptions | None = None

    def what_if(self, paths: Sequence[str], changes: Sequence[Change], options: ReportOptions, progress: Any) -> WhatIf:
        del progress
        self.paths, self.changes, self.options = paths, changes, options
        return self.answer


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    module: Any = ModuleType("longpole.pipeline.whatif")
    module.what_if = engine.what_if
    monkeypatch.setitem(sys.modules, "longpole.pipeline.whatif", module)
    return engine


@pytest.fixture
def trace(root: Any) -> str:
    return str(root / "examples" / "loader-bound")


def test_changes_reach_the_engine_in_the_order_typed(engine: Engine, trace: str) -> None:
    arguments = ["--remove", "input", "--set", "rank:2&compute=0.5x", "--async-copy", "--set", "host=+1ms"]

    assert main(["whatif", trace, *arguments, "--remove", "output"]) == 0

    assert [change.to_text() for change in engine.changes] == [
        "--set input=0",
        "--set compute&rank:2=0.5x",
        "--async-copy",
        "--set host=+1ms",
        "--set output=0",
    ]
    assert list(engine.paths) == [trace]


def test_every_change_has_an_option(engine: Engine, trace: str) -> None:
    arguments = ["--prefetch", "input", "--fuse", "all_reduce=25MB", "--split", "all_gather=1MB"]
    arguments += ["--equalise", "work", "--issue-early", "collective", "--graph-launches", "--off-path", "output"]

    assert main(["whatif", trace, *arguments]) == 0

    assert " ".join(change.to_text() for change in engine.changes).split() == arguments


def test_the_selection_is_that_of_a_report(engine: Engine, trace: str) -> None:
    selection = ["--step", "train", "--units", "3..7", "--rank", "0,2", "--job", "1", "--no-cache", "--jobs", "1"]

    assert main(["whatif", trace, "--remove", "input", *selection]) == 0

    options = engine.options
    assert options is not None
    assert (options.step, options.units, options.ranks) == ("train", (3, 7), frozenset({0, 2}))
    assert (options.job, options.use_cache, options.processes) == (1, False, 1)


def test_a_page_is_printed(engine: Engine, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", trace, "--remove", "input"]) == 0

    out, err = capsys.readouterr()
    assert "PREDICTION  a step every 118 ms instead of 180 ms" in out
    assert err == ""
    assert engine.changes


def test_json_on_standard_output_is_all_there_is(
    engine: Engine, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", trace, "--remove", "input", "--json", "-"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.whatif/1"
    assert document["saving_ns"] == engine.answer.saving_ns
    assert document["refused"] is None


def test_a_refused_prediction_ends_with_five(engine: Engine, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine.answer = refused()

    assert main(["whatif", trace, "--remove", "input", "--json", "-"]) == 5

    document = json.loads(capsys.readouterr().out)
    assert document["refused"]["why"].startswith("40.0 % of the path is unexplained")
    assert document["predicted_period_ns"] == {"unknown": "the replay is refused"}
    assert {"at": "/predicted_period_ns", "why": "the replay is refused", "missing": []} in document["unknown"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "expected at least one change (--set, --remove"),
        (["--remove", "inptu"], "--remove inptu: expected an object"),
        (["--set", "input"], "--set input: expected SELECTOR=VALUE"),
        (["--remove", "input", "--units", "x"], "--units: expected a range"),
        (["--remove", "input", "--json", "/nowhere/at/all.json"], "does not exist"),
    ],
)
def test_a_wrong_call_ends_with_two(
    engine: Engine, trace: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", trace, *options]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert not engine.changes


def test_the_schema_is_current_and_printed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Write it anew with `python -m tools.write_generated`."""
    assert main(["schema", "whatif"]) == 0

    assert capsysbinary.readouterr().out == read_schema("whatif") == whatif_schema()
