"""Every file of the corpus gives a lawful report or a clear refusal: what `expected_outcomes.toml` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import LongpoleError, UsageError
from longpole.report.document import Report
from tests.corpus.recordings import OUTCOMES, REFUSED, Refused, is_slow, outcome_of
from tests.laws import check_refusal, check_report, check_rungs

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN_MAX_SHARE = 0.05


def _marked(path: str) -> Any:
    return pytest.param(path, marks=pytest.mark.slow) if is_slow(path) else path


def test_every_file_of_the_corpus_is_listed_once(corpus: Path) -> None:
    found = [path.relative_to(corpus).as_posix() for path in sorted(corpus.rglob("*")) if path.is_file()]

    listed = {path: [path] if path in OUTCOMES["reported"] else [] for path in found}
    for path, entries in listed.items():
        entries += [group.says for group in REFUSED if group.holds(path)]

    assert not {path: entries for path, entries in listed.items() if len(entries) != 1}
    assert set(OUTCOMES["reported"]) <= set(found)


@pytest.mark.parametrize("path", [_marked(path) for path in OUTCOMES["reported"]])
def test_a_trace_gives_its_report(corpus: Path, path: str) -> None:
    expected = OUTCOMES["reported"][path]

    report = outcome_of(corpus / path)

    assert isinstance(report, Report), report
    rows = [f"{row.rank} {row.device}" for row in report.ranks]
    assert (report.unit.count, report.unit.kind, report.run.kind) == (
        expected["units"],
        expected["unit"],
        expected["run"],
    )
    assert rows == expected["rows"]
    assert sorted({f.code for f in report.integrity if f.severity != "note"}) == expected["warns"]
    assert report.run.sources[0].bytes == (corpus / path).stat().st_size


@pytest.mark.parametrize("path", [_marked(path) for path in OUTCOMES["reported"]])
def test_all_laws_hold_on_a_trace(corpus: Path, path: str) -> None:
    report = outcome_of(corpus / path)

    assert isinstance(report, Report), report
    check_report(report)
    for row in report.ranks:
        check_rungs(row.ledger)


@pytest.mark.parametrize("path", [_marked(path) for path, row in OUTCOMES["reported"].items() if row["good"]])
def test_little_of_a_good_trace_is_unknown(corpus: Path, path: str) -> None:
    report = outcome_of(corpus / path)

    assert isinstance(report, Report), report
    for row in report.ranks:
        assert row.ledger.objects["unknown"].exposed_ns <= UNKNOWN_MAX_SHARE * row.ledger.wall_ns


def test_a_trace_that_is_not_good_says_why() -> None:
    rows = OUTCOMES["reported"].values()

    assert all(("reason" in row) != row["good"] for row in rows)


@pytest.mark.parametrize("group", REFUSED, ids=lambda group: f"{group.files[0]}: {group.says}")
def test_a_file_of_another_kind_is_refused_with_a_clear_line(corpus: Path, group: Refused) -> None:
    files = [path for path in sorted(corpus.rglob("*")) if group.holds(path.relative_to(corpus).as_posix())]
    files = [path for path in files if path.is_file()]

    assert len(files) == group.count
    for path in files:
        error = outcome_of(path)
        assert isinstance(error, LongpoleError), path
        assert type(error).__name__ == group.error
        assert group.says in str(error), path
        check_refusal(error, path.name)


@pytest.mark.parametrize("folder", OUTCOMES["run"])
def test_the_ranks_of_a_job_make_one_run(corpus: Path, folder: str) -> None:
    expected = OUTCOMES["run"][folder]

    report = outcome_of(corpus / folder)

    assert isinstance(report, Report), report
    assert len(report.run.ranks_present) == expected["ranks"]
    assert report.run.ranks_present == sorted({row.rank for row in report.ranks})
    assert (report.unit.count, report.unit.kind) == (expected["units"], expected["unit"])
    moved = [unit.name for unit in report.ranks[0].units if unit.kind == "head" and unit.name != "head"]
    assert moved == expected["moved"]
    assert sorted({f.code for f in report.integrity if f.severity != "note"}) == expected["warns"]
    check_report(report)


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "runs"), list(OUTCOMES["several"].items()))
def test_a_folder_of_several_jobs_is_listed_and_refused(corpus: Path, folder: str, runs: int) -> None:
    error = outcome_of(corpus / folder)

    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert str(error).startswith(f"{runs} distinct runs here; choose one with --job N")
    assert len(str(error).splitlines()) == runs + 1
