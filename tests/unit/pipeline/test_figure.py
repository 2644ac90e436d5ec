"""Figures in a notebook: the same as the command's, of the tables that have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longpole.errors import Unanswered, UsageError
from longpole.pipeline.figure import make_figure
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.run import Run, open_run
from longpole.report.figures.sheet import Drawn, encode_figure

pytest.importorskip("matplotlib")

EXAMPLE = str(Path(__file__).resolve().parents[3] / "examples" / "ddp-gloo-4ranks")


@pytest.fixture(autouse=True)
def own_cache(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGPOLE_CACHE", cache)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def run() -> Run:
    return open_run(EXAMPLE)


def title_of(figure: Any) -> str:
    return str(figure.legends[0].get_title().get_text())


def test_the_ledgers_plot_is_the_commands_figure(run: Run) -> None:
    figure: Any = run.ledger().plot()

    drawn, _ = make_figure("ledger", [EXAMPLE], ReportOptions(processes=1))

    assert isinstance(drawn, Drawn)
    assert encode_figure(figure, "svg") == encode_figure(drawn.figure, "svg")


def test_the_plot_of_a_units_path_is_of_that_unit(run: Run) -> None:
    path: Any = run.critical_path("ProfilerStep#5")
    figure: Any = path.plot()

    assert title_of(figure).startswith("Critical path of ProfilerStep#5: ")


def test_a_gantt_shows_the_unit_that_was_asked_for_with_all_ranks(run: Run) -> None:
    figure: Any = run.plot("gantt", unit="ProfilerStep#5")
    axes = figure.axes[0]

    assert title_of(figure).startswith("ProfilerStep#5: ")
    assert {one.get_text().split(" · ")[0] for one in axes.get_yticklabels()} == {f"rank {n}" for n in range(4)}


def test_where_there_is_no_device_the_spans_of_gloo_are_collectives(run: Run) -> None:
    figure: Any = run.plot("gantt")

    assert "collective" in {one.get_gid() for one in figure.axes[0].patches}


def test_what_is_not_known_has_a_reason_instead_of_a_figure(run: Run) -> None:
    why = run.plot("matrix")

    assert isinstance(why, Unanswered)
    assert why.missing == ["device activities"]


def test_a_table_without_a_figure_says_which_have_one(run: Run) -> None:
    with pytest.raises(UsageError, match=r"ledger\(\), units\(\) and critical_path\(\)"):
        run.stages().plot()


def test_a_table_with_a_figure_compares_and_shows_as_before(run: Run) -> None:
    assert "lambda" not in repr(run.ledger())
    assert "lambda" not in run.ledger()._repr_html_()
