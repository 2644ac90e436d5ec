"""Answers from a journal, by way of the example that is shipped: a 7B job from 1,200 to 2,200 tokens/s."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from longpole.errors import UsageError
from longpole.pipeline.journal import (
    check_journal,
    list_entries,
    open_journal,
    search,
    show_entry,
    summarise_journal,
)
from longpole.records.journal import Measured
from longpole.records.ledger import Unknown
from longpole.records.run_record_file import decode_record
from longpole.report.journal import ClaimCheck

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.advice.journal.lines import Journal


@pytest.fixture
def example(root: Path) -> tuple[Path, Journal]:
    return open_journal(None, root / "examples" / "journal-7b")


def test_the_example_adds_up_to_83_percent(example: tuple[Path, Journal]) -> None:
    (summary,) = summarise_journal(*example).summary  # type: ignore[misc]

    figures = [figure for one in summary.kept for figure in (one.before, one.after)]
    assert figures == pytest.approx([1200, 1500, 1500, 1650, 1650, 2100, 2100, 2200])
    assert summary.compound == pytest.approx(2200 / 1200)
    assert (summary.before, summary.after) == pytest.approx((1200, 2200))
    assert (summary.unit, summary.scope) == ("tokens/s", "total")
    assert summary.unaccounted == pytest.approx(1)
    assert "+83 % in all, 1,200 → 2,200 tokens/s" in summary.says
    assert [one.why for one in summary.not_counted] == ["reverted"]


def test_the_stated_mfu_of_one_job_contradicts_what_its_entries_measured(example: tuple[Path, Journal]) -> None:
    """2200/1200 is 1.83 and 55/35 is 1.57: whatever the model and the devices are, if they stayed the same."""
    document = summarise_journal(*example)

    assert [(claim.what, claim.of, claim.stated) for claim in document.claims] == [
        ("mfu", "before", "35 %"),
        ("mfu", "after", "55 %"),
    ]
    for claim in document.claims:
        assert isinstance(claim.check, ClaimCheck)
        assert claim.check.verdict == "inconsistent"
        assert "1.83× the throughput a device against 1.57× the MFU" in claim.check.says
    (audit,) = document.audits
    assert [one.code for one in audit.audit.across] == ["R5"]


def test_one_stated_mfu_alone_is_not_checked(example: tuple[Path, Journal]) -> None:
    path, journal = example

    document = show_entry(path, journal, journal.entries[0].id)

    (claim,) = document.claims
    assert isinstance(claim.check, Unknown)
    assert "too little is stated" in claim.check.unknown
    assert "/claims/0/check" in {one.at for one in document.unknown}


def test_the_records_of_the_example_are_valid_and_carry_its_figures(example: tuple[Path, Journal]) -> None:
    path, journal = example

    for entry in journal.entries:
        assert isinstance(entry.measured, Measured)
        for side, figure in (("before", entry.measured.before), ("after", entry.measured.after)):
            links = [link for link in entry.records if link.side == side]
            records = [
                decode_record((path.parent / link.path).read_bytes(), link.path)
                for link in links
                if link.kind == "longpole.record/1"
            ]
            assert records
            # The statistic of a verdict: the median over runs of the median over each run's units.
            rates = [
                statistics.median(record.items_per_unit / unit.period_ns * 1e9 for unit in record.counted())  # type: ignore[operator]
                for record in records
            ]
            assert statistics.median(rates) == pytest.approx(figure, rel=1e-6)


def test_the_example_is_sound(example: tuple[Path, Journal]) -> None:
    document = check_journal(*example)

    assert document.problems == []
    assert isinstance(document.checked, int)
    assert document.checked >= 6


def test_have_we_tried_more_workers(example: tuple[Path, Journal]) -> None:
    document = search(*example, "have we tried more loader workers?")

    assert document.entries[0].title == "Twelve loader workers"
    assert document.entries[0].decision == "reverted"


def test_an_entry_is_shown_by_a_part_of_its_id(example: tuple[Path, Journal]) -> None:
    (entry,) = show_entry(*example, "bfloat16").entries

    assert entry.title == "Optimizer moments in bfloat16"


@pytest.mark.parametrize(
    ("name", "says"), [("2026-03", "expected one entry, found"), ("fp8", "no entry of .* has this id")]
)
def test_an_id_of_none_or_of_several_is_refused(example: tuple[Path, Journal], name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        show_entry(*example, name)


def test_entries_are_chosen_by_tag(example: tuple[Path, Journal]) -> None:
    document = list_entries(*example, tag="memory")

    assert len(document.entries) == 2
    with pytest.raises(UsageError, match=r"--tag speed: no entry has it; there are communication, input"):
        list_entries(*example, tag="speed")
    with pytest.raises(UsageError, match="--job a: no entry has it; there are none"):
        list_entries(*example, job="a")


def test_a_search_for_no_word_is_refused(example: tuple[Path, Journal]) -> None:
    with pytest.raises(UsageError, match="expected words"):
        search(*example, " ?! ")
