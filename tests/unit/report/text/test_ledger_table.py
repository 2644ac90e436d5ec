"""The table of the ledger."""

from __future__ import annotations

from longpole.records.ledger import Ledger, Unknown
from longpole.report.document import LeftOut, Report
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style
from longpole.report.text.ledger_table import render_ledger
from tests.report_builder import WORKERS_UNSEEN, make_ledger, make_report, make_row, ms

STYLE = Style(80, color=False)


def render(report: Report) -> list[str]:
    return render_ledger(report, scale_for(report.ledger.wall_ns), STYLE)


def row_of(lines: list[str], name: str) -> str:
    return next(line for line in lines if line.split()[:1] == [name])


def of_one(ledger: Ledger) -> list[str]:
    return render(make_report([make_row(0, [ledger])]))


def test_exposed_figures_add_up_to_the_last_row() -> None:
    lines = of_one(make_ledger({"compute": ms(33.349), "collective": ms(33.349)}, {"input": ms(33.349)}))

    figures = [float(line.split()[1]) for line in lines[2:]]
    assert round(sum(figures[:-1]), 3) == figures[-1] == 100.0


def test_objects_stand_by_size_and_unknown_stands_last() -> None:
    lines = of_one(make_ledger({"compute": 10, "collective": 30}, {"unlinked": 50, "input": 20}))

    assert [line.split()[0] for line in lines[2:]] == ["collective", "input", "compute", "unknown", "sum"]


def test_compute_has_a_row_even_if_nothing_was_computed() -> None:
    assert row_of(of_one(make_ledger({}, {"input": 20})), "compute").split()[1:3] == ["0.000", "0.0"]


def test_an_object_that_is_only_hidden_has_a_row() -> None:
    lines = of_one(make_ledger({"compute": ms(20)}, {}, hidden={"collective": ms(7)}))

    assert row_of(lines, "collective").split()[1:] == ["0.00", "0.0", "%", "7.00"]


def test_host_and_unknown_have_nothing_hidden() -> None:
    lines = of_one(make_ledger({"compute": ms(20)}, {"host.gc": ms(5), "unlinked": ms(2)}))

    assert row_of(lines, "host").split()[4] == "–"
    assert row_of(lines, "unknown").split()[4] == "–"


def test_an_unknown_hidden_part_is_a_question_mark_with_its_reason() -> None:
    ledger = make_ledger({"compute": ms(20)}, {"input": ms(1)}, hidden={"input": Unknown("workers unseen")})

    assert row_of(of_one(ledger), "input").endswith("?  ▊  ? workers unseen")


def test_a_reason_that_does_not_fit_is_pointed_at() -> None:
    ledger = make_ledger({"compute": ms(20)}, {"input": ms(1)}, hidden={"input": WORKERS_UNSEEN})

    assert row_of(of_one(ledger), "input").endswith("? reason under NOT KNOWN")


def test_waiting_is_told_apart_from_moving_where_it_is_known() -> None:
    ledger = make_ledger({"compute": ms(80), "collective": ms(20)}, {}, hidden={"collective": ms(10)}, waiting=ms(20))

    assert row_of(of_one(ledger), "collective").endswith("20.0 of its 30.0 is waiting")


def test_waiting_and_moving_are_said_to_be_one_where_it_is_not() -> None:
    ledger = make_ledger({"compute": ms(95), "collective": ms(5)}, {}, waiting=Unknown("ranks missing"))

    assert row_of(of_one(ledger), "collective").endswith("waiting and moving, not told apart")


def test_the_title_says_of_what_it_is_the_mean() -> None:
    ledger = make_ledger({"compute": ms(90)}, {})
    rows = [make_row(0, [ledger] * 3), make_row(1, [ledger] * 3)]

    assert render(make_report(rows))[0] == "WHERE A STEP GOES   ms, mean of 3 steady steps and 2 ranks"


def test_units_left_out_are_not_counted_but_those_without_a_period_are() -> None:
    rows = [make_row(rank, [make_ledger({"compute": ms(90)}, {})] * 4) for rank in (0, 1)]
    out = [LeftOut("ProfilerStep#3", "communicator_setup", 1), LeftOut("ProfilerStep#5", "not_separable")]

    assert render(make_report(rows, left_out=out))[0].endswith("mean of 3 to 4 steady steps and 2 ranks")


def test_that_no_unit_is_steady_is_said() -> None:
    row = make_row(0, [make_ledger({"compute": ms(90)}, {})])

    report = make_report([row], left_out=[LeftOut("ProfilerStep#3", "compilation")])

    assert render(report)[0] == "WHERE A STEP GOES   ms, mean of 1 step; none is steady"


def test_several_devices_of_a_rank_are_counted_as_devices() -> None:
    ledger = make_ledger({"compute": ms(90)}, {})
    rows = [make_row(0, [ledger]), make_row(0, [ledger], device="cuda:1")]

    assert render(make_report(rows))[0].endswith("mean of 1 steady step and 2 devices of 1 rank")


def test_a_record_without_units_is_a_whole() -> None:
    row = make_row(0, [make_ledger({"compute": ms(90)}, {})], unit_kind="trace")

    assert render(make_report([row], unit_kind="trace"))[0] == "WHERE THE TIME GOES   ms, the whole record"
