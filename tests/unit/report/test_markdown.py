"""The report as Markdown: what a comment says first, and that nothing of a trace becomes more than text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.records.ledger import Unknown
from longpole.report.document import Headline
from longpole.report.markdown import render_markdown
from tests.report_builder import SAMPLES, make_finding, make_ledger, make_report, make_row, ms

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import Report

HOSTILE = "@team see #12 at https://x.org or www.x.org | <img src=x onerror=alert(1)> [a](b) `c` **d** \x1b[2J\u202e"
COMMENT_MAX = 65_536


def cells(markdown: str, first: str) -> list[str]:
    """Return the cells of the table line that begins with a cell."""
    line = next(line for line in markdown.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def make_cause(number: int, says: str = "rank 5's data loader") -> CauseFinding:
    return CauseFinding(
        id=f"f{number}",
        cause="data_loader",
        object="input",
        stage="input",
        ranks=[5],
        units=[],
        cost_ns_per_unit=ms(61.3),
        cost_statistic="median",
        cost_share=0.25,
        basis="replay",
        ceiling_ns=ms(70),
        once=False,
        cost_once_ns=0,
        evidence_grade="recorded",
        rests_on=1.0,
        says=says,
        evidence=[],
    )


def make_candidate(number: int, says: str = "") -> CandidateEntry:
    return CandidateEntry(
        id=says or f"input.change_{number}",
        object="input",
        stage="",
        says=says,
        because=[],
        findings=[],
        predicted_period_ns=ms(100),
        predicted_gain_share=0.25,
        ceiling_ns=ms(50),
        error_share=0.078 if number else Unknown("no pairs"),
        effort="low",
        costs=[],
        must_record=[says or "items per unit", "bytes of a batch"],
        missing=[],
        proved_by=[],
        cannot_replace="",
    )


def with_findings(count: int, says: str = "rank 5's data loader") -> Report:
    return msgspec.structs.replace(
        SAMPLES["typical"](),
        findings=[make_cause(number, says) for number in range(1, count + 1)],
        long_pole="f1",
        candidates=[make_candidate(number, says if says == HOSTILE else "") for number in range(count)],
    )


def test_the_comment_is_the_golden_one(root: Path) -> None:
    golden = (root / "tests" / "golden" / "report-typical.md").read_text(encoding="utf-8")

    assert render_markdown(SAMPLES["typical"]()) == golden, "run python -m tools.write_generated"


def test_the_long_pole_comes_first() -> None:
    report = msgspec.structs.replace(SAMPLES["typical"](), headline=Headline("rank 5: loader", "x", ms(61), "replay"))

    assert render_markdown(report).startswith("### The long pole\n\n**rank 5: loader**\n")


def test_no_verdict_says_why_and_what_would_make_one_possible() -> None:
    text = render_markdown(SAMPLES["no-verdict"]())

    assert text.startswith("### No verdict\n\nBecause kernels were recorded for 1 of 9 graph launches")
    assert "To get one: a record in which every graph launch has its kernels." in text
    assert "The long pole" not in text


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_ledgers_figures_add_up_to_the_sum_shown(sample: str) -> None:
    report = SAMPLES[sample]()
    text = render_markdown(report)

    shown = [cells(text, name)[1] for name in report.ledger.objects if f"\n| {name} |" in text.partition("<details")[0]]
    total = cells(text, r"**sum**")[1]
    assert sum(float(value.replace(",", "")) for value in shown) == pytest.approx(float(total.replace(",", "")))


def test_findings_and_candidates_say_what_they_save_and_what_to_record() -> None:
    text = render_markdown(with_findings(8))

    assert cells(text, "**rank 5's data loader**") == [
        "**rank 5's data loader**",
        "61.3 ms",
        "25%",
        "by replay",
        r"data\_loader",
    ]
    assert "and 2 findings more" in text
    change = cells(text, r"input.change\_1")
    assert change[1:] == ["25.0%", "± 7.8%", "low", "items per unit, bytes of a batch"]
    assert cells(text, r"input.change\_0")[2] == "not known"
    assert "Next: `longpole explain data_loader`" in text


def test_what_voids_figures_is_told_and_notes_are_counted() -> None:
    findings = [
        make_finding("clock.base_mixed", "note", "a note"),
        make_finding("kernel.duration.impossible", "warn", "too long"),
        make_finding("graph.nodes_missing", "void", "nodes are missing"),
    ]
    report = msgspec.structs.replace(SAMPLES["typical"](), integrity=findings)

    text = render_markdown(report)

    assert text.index("nodes are missing") < text.index("too long")
    assert "a note" not in text
    only_note = render_markdown(msgspec.structs.replace(report, integrity=findings[:1]))
    assert "nothing withdraws or limits a figure; 1 kind of note" in only_note


def test_nothing_of_a_trace_becomes_markup_a_link_or_a_call() -> None:
    report = with_findings(2, HOSTILE)
    report.headline = Headline(HOSTILE, "x", 1, "replay")
    report.integrity = [make_finding("kernel.duration.impossible", "warn", HOSTILE)]
    for row in report.ranks:
        row.device_name = HOSTILE

    text = render_markdown(report)

    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", text)  # without what Markdown takes literally
    assert text.count("onerror") >= 4
    assert "<img" not in bare
    assert "[a]" not in bare
    assert "**d**" not in bare
    assert not re.search(r"@(?!&#8203;)|(?<!&)#(?!&#8203;|## |[0-9]{4};)", text.replace("### ", ""))
    assert "://" not in bare
    assert "www." not in bare
    assert not re.search("[\x1b\u202e]", text)
    widths = {line.count("|") - line.count(r"\|") for line in text.splitlines() if r"\<img" in line and line[0] == "|"}
    assert widths == {6, 5}


def test_a_comment_has_room_for_the_worst_report() -> None:
    long = HOSTILE * 40
    rows = [make_row(rank, [make_ledger({"compute": 5, "input": 1}, {"host.python": 3})]) for rank in range(512)]
    report = msgspec.structs.replace(
        make_report(rows),
        findings=[make_cause(number, long) for number in range(1, 40)],
        candidates=[make_candidate(number, long) for number in range(40)],
        integrity=[make_finding(f"code.{number}", "warn", long) for number in range(40)],
        headline=Unknown(long, [long]),
    )

    assert len(render_markdown(report)) < COMMENT_MAX
