"""The page of `longpole explain`: what it shows with and without a run, and that nothing hostile passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.advice.cause_pages import read_pages
from longpole.advice.symptoms import load_symptoms
from longpole.advice.topics import all_topics
from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.report.explain import SCHEMA, Explain
from longpole.report.explain_build import build_page, build_symptom, build_topics, headline_of, long_pole_of
from longpole.report.text.explain import render_explain, render_markdown
from longpole.report.text.layout import Style, columns_of
from longpole.settings import Settings
from longpole.vocabulary.causes import CAUSES
from tests.report_builder import ms, typical

if TYPE_CHECKING:
    from longpole.report.document import Report

SYMPTOMS = load_symptoms()
HOSTILE = "evil\x1b[2Jname"


def finding(cause: str, cost_ns: int, *, once: bool = False) -> CauseFinding:
    return CauseFinding(
        id="f1",
        cause=cause,
        object=CAUSES[cause],
        stage="",
        ranks=[0],
        units=["ProfilerStep#3"],
        cost_ns_per_unit=0 if once else cost_ns,
        cost_statistic="one_off" if once else "median",
        cost_share=0.25,
        basis="replay",
        ceiling_ns=cost_ns,
        once=once,
        cost_once_ns=cost_ns if once else 0,
        evidence_grade="recorded",
        rests_on=1.0,
        says=f"a sentence with {HOSTILE}",
        evidence=[],
    )


def candidate(name: str) -> CandidateEntry:
    return CandidateEntry(
        id=name,
        object="input",
        stage="",
        says="prepare the next batch early",
        because=[],
        findings=["f1"],
        predicted_period_ns=ms(100),
        predicted_gain_share=0.2,
        ceiling_ns=ms(30),
        error_share=0.1,
        effort="low",
        costs=[],
        must_record=[],
        missing=[],
        proved_by=[],
        cannot_replace="",
    )


def a_report(*findings: CauseFinding) -> Report:
    report = typical()
    report.findings = list(findings)
    report.long_pole = findings[0].id if findings else None
    return report


def answer_for(name: str, report: Report | None = None) -> Explain:
    answer = Explain(SCHEMA, "0.1.0", name, "symptom", [])
    if name in CAUSES:
        answer.answer, answer.cause = "cause", build_page(name, report)
    else:
        answer.symptom = build_symptom(SYMPTOMS.by_id()[name], Settings(), report, ["my traces/"] if report else [])
    if report is not None:
        answer.run, answer.headline, answer.long_pole = report.run, headline_of(report), long_pole_of(report)
    return answer


def page_for(answer: Explain, width: int = 80) -> str:
    return render_explain(answer, width=width, color=False)


def the_list() -> Explain:
    return Explain(SCHEMA, "0.1.0", "", "list", build_topics(all_topics(SYMPTOMS, read_pages())))


EVERY = [*CAUSES, *(row.id for row in SYMPTOMS.rows)]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    report = a_report(finding("data_loader", ms(30)))
    answers = [the_list(), *(answer_for(name, of) for name in EVERY for of in (None, report))]

    for answer in answers:
        lines = page_for(answer, width).splitlines()
        # A command is not broken: it would no longer be one.
        assert max(columns_of(line) for line in lines if not line.startswith("  longpole ")) <= width


def test_the_list_has_every_symptom_and_every_cause() -> None:
    page = page_for(the_list())

    assert all(name in page for name in EVERY)


def test_without_a_run_figures_say_where_they_stand_and_from_where_on_they_count() -> None:
    page = page_for(answer_for("device-idle"))

    assert "/ledger/idle_ns/input of /ledger/wall_ns" in page
    assert "notable from 10% on" in page
    assert "longpole report PATH" in page
    assert "FOUND" not in page


def test_in_a_run_figures_have_values_and_commands_name_its_files() -> None:
    report = a_report(finding("data_loader", ms(30)))
    idle_share = report.ledger.device.idle_ns / report.ledger.wall_ns

    page = page_for(answer_for("device-idle", report))

    assert f"device idle, share of a step: {idle_share:.0%}" in page
    assert "longpole report 'my traces/'" in page
    assert "the long pole: data_loader" in page


def test_what_was_found_decides_what_to_try_next() -> None:
    found = finding("host_sync", ms(6))
    found.what_if = ["--set name:^cuda(A|B)$=0", "--graph-launches"]

    page = page_for(answer_for("device-idle", a_report(found)))

    assert "  longpole whatif 'my traces/' --set 'name:^cuda(A|B)$=0' --graph-launches\n" in page
    assert "--prefetch input" not in page
    assert "  host.sync_less\n" in page


def test_in_a_run_the_cause_that_was_found_comes_first_and_the_others_are_named() -> None:
    report = a_report(finding("launch_bound", ms(30)))

    page = page_for(answer_for("device-idle", report))

    found, rest = page.split("WHAT WAS NOT")
    assert "FOUND: f1, 30.0 ms per unit (25%) on rank 0" in found.replace("\n" + " " * 29, " ")
    assert "data_loader ·" in rest
    assert "data_loader " not in found.split("WHAT WAS FOUND")[1]


def test_a_one_off_says_that_it_was_paid_once() -> None:
    page = page_for(answer_for("communicator_setup", a_report(finding("communicator_setup", ms(214), once=True))))

    assert "214 ms in all, once on rank 0" in page


def test_a_cause_that_no_trace_holds_is_not_excluded() -> None:
    page = page_for(answer_for("out-of-memory", a_report()))

    assert "none of the causes that this symptom may have" in page
    assert "fragmentation: it needs memory records" in page


def test_candidates_of_the_run_come_with_their_gain() -> None:
    report = a_report(finding("data_loader", ms(30)))
    report.candidates = [candidate("input.prefetch"), candidate("compute.fix_layout")]

    page = page_for(answer_for("device-idle", report))

    assert "input.prefetch" in page
    assert "(20% less)" in page
    assert "compute.fix_layout" not in page


def test_names_from_a_trace_are_harmless() -> None:
    answer = answer_for("device-idle", a_report(finding("data_loader", ms(30))))
    answer.headline = HOSTILE

    for one in (answer, answer_for("data_loader", a_report(finding("data_loader", ms(30))))):
        assert "\x1b" not in page_for(one)


def test_a_figure_that_is_not_known_says_why() -> None:
    page = page_for(answer_for("communication-share", a_report()))

    assert "not known: this run has no such figure" in page


def test_the_page_of_a_cause_is_whole_and_without_marks() -> None:
    page = page_for(answer_for("slow_rank"), 100)

    assert "WHAT IT DOES NOT PROVE" in page
    assert "/stragglers/*/reason" in page
    assert "`" not in page
    assert "](" not in page
    assert "(https://arxiv.org/abs/2505.05713)" in page


def test_markdown_of_several_lines_is_one_paragraph() -> None:
    lines = render_markdown("One\ntwo *three*.\n\n1. first\n   more\n2. second", Style(60, color=False))

    assert lines == ["  One two three.", "  1. first more", "  2. second"]
