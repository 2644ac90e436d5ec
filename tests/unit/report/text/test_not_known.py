"""What is not known, and how to make it known."""

from __future__ import annotations

from longpole.report.document import UnknownEntry
from longpole.report.text.layout import Style
from longpole.report.text.not_known import render_not_known
from tests.report_builder import make_finding, make_ledger, make_report, make_row

LEDGER = make_ledger({"compute": 5}, {})
ROWS = [make_row(rank, [LEDGER]) for rank in range(4)]
STYLE = Style(80, color=False)


def render(*unknown: UnknownEntry) -> list[str]:
    return render_not_known(make_report(ROWS, unknown=unknown), STYLE)


def hidden(place: int, why: str = "workers unseen") -> UnknownEntry:
    return UnknownEntry(f"/ranks/{place}/ledger/objects/input/hidden_ns", why, ["workers"])


def test_a_figure_is_named_with_its_reason_and_what_to_record() -> None:
    assert render(hidden(2)) == ["NOT KNOWN", "  rank 2: input (hidden part): workers unseen → record workers"]


def test_figures_with_one_reason_are_named_together() -> None:
    service = UnknownEntry("/ranks/2/ledger/objects/input/service_ns", "workers unseen", ["workers"])

    assert render(hidden(2), service, hidden(1))[1] == (
        "  ranks 1, 2: input (hidden part, time in all): workers unseen → record workers"
    )


def test_ranks_are_not_listed_where_it_is_all_of_them() -> None:
    assert render(*(hidden(place) for place in range(4)))[1] == (
        "  input (hidden part): workers unseen → record workers"
    )


def test_what_cannot_be_recorded_and_is_not_on_the_page_is_counted_only() -> None:
    later = UnknownEntry("/critical_path", "not part of this version", [])

    assert render(hidden(0), later)[-1] == "  and 1 more; --json has them all"


def test_where_nothing_concerns_the_page_one_line_says_so() -> None:
    later = UnknownEntry("/critical_path", "not part of this version", [])

    assert render(later) == ["NOT KNOWN   1 reason, none about the figures above; --json has them"]


def test_a_figure_of_the_page_is_shown_even_if_nothing_can_be_recorded() -> None:
    assert render(UnknownEntry("/unit/period_ns/median", "no unit has one", []))[1] == (
        "  period of a step (median): no unit has one"
    )


def test_the_ledgers_figures_come_first() -> None:
    first = UnknownEntry("/ledger/objects/input/hidden_ns", "why", ["x"])

    assert render(UnknownEntry("/clock/0/offset_ns", "no base", ["base"]), first)[1].startswith("  input (hidden part)")


def test_what_a_finding_says_is_not_said_twice() -> None:
    finding = make_finding("unit.overrun", "void", "late", voids=["/ranks/0/ledger/wall_ns"])
    entry = UnknownEntry("/ranks/0/ledger/wall_ns", "unit.overrun: late", [])

    assert render_not_known(make_report(ROWS, integrity=[finding], unknown=[entry]), STYLE) == []


def test_single_units_are_left_to_the_json() -> None:
    assert render(UnknownEntry("/ranks/0/units/0/period_ns", "the first has none", ["x"])) == []


def test_many_reasons_are_cut_and_counted() -> None:
    lines = render(*(hidden(0, f"why{number}") for number in range(9)))

    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "  and 4 more; --json has them all"


def test_where_everything_is_known_there_is_no_section() -> None:
    assert render() == []
