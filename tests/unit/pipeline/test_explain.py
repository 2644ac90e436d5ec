"""`longpole explain` on recorded runs: every figure is found in a real report, and the run's cause comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.advice.symptoms import load_symptoms
from longpole.errors import UsageError
from longpole.pipeline.explain import explain
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.records.ledger import Unknown
from longpole.report.explain_build import build_symptom
from longpole.report.figures_at import resolve
from longpole.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report

OPTIONS = ReportOptions(use_cache=False, processes=1)
ROWS = load_symptoms().rows


def paths_of(case: str, cases: Path) -> list[str]:
    return [str(path) for path in sorted((cases / case).iterdir()) if not path.name.startswith("expected")]


@pytest.fixture(scope="module")
def one_rank(cases: Path) -> Report:
    return build_report(paths_of("B062", cases), OPTIONS)


@pytest.fixture(scope="module")
def four_ranks(cases: Path) -> Report:
    return build_report(paths_of("B074", cases), OPTIONS)


@pytest.mark.parametrize("symptom", ROWS, ids=lambda row: row.id)
def test_every_pointer_resolves_in_a_real_report(symptom: object, one_rank: Report, four_ranks: Report) -> None:
    """Up to its first `*` at least: a run without collectives has an empty list of them, and not no list."""
    pointers = [p for figure in symptom.figures for p in (figure.at, figure.of) if p]  # type: ignore[attr-defined]

    for report in (one_rank, four_ranks):
        for pointer in pointers:
            assert resolve(report, pointer.split("/*")[0]), pointer


@pytest.mark.parametrize("symptom", ROWS, ids=lambda row: row.id)
def test_every_figure_has_a_value_or_a_reason(symptom: object, four_ranks: Report) -> None:
    entry = build_symptom(symptom, Settings(), four_ranks, ["traces"])  # type: ignore[arg-type]

    for figure in entry.figures:
        assert isinstance(figure.value, int | float | str | Unknown)
        if isinstance(figure.value, Unknown):
            assert figure.value.unknown
            assert figure.is_notable is not True


def test_a_symptom_in_a_run_leads_to_the_cause_that_is_in_it(cases: Path) -> None:
    answer = explain("gpu idle", paths_of("B062", cases), OPTIONS)

    assert answer.answer == "symptom"
    assert answer.symptom is not None
    assert answer.symptom.causes[0].cause == answer.long_pole == "host_sync"
    notable = [figure for figure in answer.symptom.figures if figure.is_notable is True and figure.points_to]
    assert [figure.at for figure in notable] == ["/ledger/idle_ns/host.sync"]


def test_a_late_rank_is_told_from_a_slow_network(cases: Path) -> None:
    answer = explain("communication-share", paths_of("B074", cases), OPTIONS)

    assert answer.symptom is not None
    figures = {figure.what: figure for figure in answer.symptom.figures}
    assert figures["why ranks are late"].points_to == ["slow_rank"]
    assert figures["waiting for late ranks, share of the collectives' time"].is_notable is True
    assert answer.symptom.causes[0].cause == "slow_rank"


def test_a_cause_in_a_run_says_whether_it_is_there(cases: Path) -> None:
    paths = paths_of("B062", cases)

    found, absent = explain("host_sync", paths, OPTIONS), explain("gc", paths, OPTIONS)

    assert found.cause is not None
    assert absent.cause is not None
    assert [finding.cause for finding in found.cause.cause.findings or []] == ["host_sync"]
    assert absent.cause.cause.findings == []


def test_a_users_settings_decide_what_is_notable(cases: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[settings]\nfinding_min_share = 0.5\n", encoding="utf-8")

    answer = explain("device-idle", paths_of("B062", cases), ReportOptions(use_cache=False, settings=mine))

    assert answer.symptom is not None
    assert not [figure for figure in answer.symptom.figures if figure.is_notable is True and figure.points_to]


def test_without_a_run_several_may_be_meant_and_with_one_that_is_an_error(cases: Path) -> None:
    answer = explain("checkpoint", [], OPTIONS)

    assert answer.answer == "several"
    assert len(answer.topics) > 1
    with pytest.raises(UsageError, match=r"may mean several.*\n  checkpoint-stalls: "):
        explain("checkpoint", paths_of("B062", cases), OPTIONS)


def test_words_without_quotes_are_recognised() -> None:
    with pytest.raises(UsageError, match="longpole explain 'gpu idle'"):
        explain("gpu", ["idle"], OPTIONS)


def test_what_nothing_is_like_is_refused() -> None:
    with pytest.raises(UsageError, match="no symptom or cause is like 'xyzzy'"):
        explain("xyzzy", [], OPTIONS)
