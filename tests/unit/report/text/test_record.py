"""What is wrong with the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.text.layout import Style
from longpole.report.text.record import render_record
from tests.report_builder import make_finding, make_ledger, make_report, make_row

if TYPE_CHECKING:
    from longpole.timeline.integrity import Finding


def render(*findings: Finding, color: bool = False) -> list[str]:
    report = make_report([make_row(0, [make_ledger({"compute": 5}, {})])], integrity=findings)
    return render_record(report, Style(80, color=color))


def test_what_withdraws_figures_stands_first() -> None:
    lines = render(
        make_finding("kernel.unlinked", "note", "a note"),
        make_finding("rank.missing", "warn", "a warning", rank=None),
        make_finding("graph.nodes_missing", "void", "a void"),
    )

    assert lines == [
        "WRONG WITH THE RECORD   void withdraws figures, warn limits them",
        "  void  rank 0: a void",
        "  warn  a warning",
        "  note  rank 0: a note",
    ]


def test_findings_of_one_code_are_counted_together() -> None:
    lines = render(*(make_finding("kernel.unlinked", "warn", "…", rank=rank, count=3) for rank in range(8)))

    assert lines[1] == "  warn  ranks 0–7: 24 × device spans without the call that launched them"


def test_many_kinds_of_note_take_one_entry() -> None:
    codes = ("kernel.unlinked", "rank.assumed", "event.duplicate")

    lines = render(*(make_finding(code, "note", "…") for code in codes))

    assert lines[0] == "THE RECORD"
    text = " ".join(" ".join(lines[1:]).split())
    assert text == "note 3 kinds of note, which change no figure: kernel.unlinked, rank.assumed, event.duplicate"


def test_a_code_of_a_later_version_is_shown_by_its_message() -> None:
    lines = render(*(make_finding("new.code", "warn", "something new", rank=rank) for rank in (0, 1)))

    assert lines[1] == "  warn  ranks 0, 1: 2 × something new"


def test_more_than_five_kinds_are_cut_and_counted() -> None:
    lines = render(*(make_finding(f"code.{number}", "warn", "bad") for number in range(7)))

    assert lines[-1] == "  and 2 more kinds; --json has them all"


def test_severity_is_said_in_words_and_not_in_colour_alone() -> None:
    plain = render(make_finding("x.y", "void", "bad"))
    painted = render(make_finding("x.y", "void", "bad"), color=True)

    assert plain[1] == "  void  rank 0: bad"
    assert "\x1b[" in painted[1]
    assert "void" in painted[1]


def test_a_hostile_message_is_escaped() -> None:
    assert render(make_finding("x.y", "warn", "file \x1b[31mred"))[1] == "  warn  rank 0: file \\x1b[31mred"


def test_a_sound_record_has_no_section() -> None:
    assert render() == []
