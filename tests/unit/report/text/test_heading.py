"""The top of the page."""

from __future__ import annotations

import pytest

from longpole.analyses.sums import empty_ledger
from longpole.records.ledger import Unknown
from longpole.report.document import Headline, LeftOut, SelectionEntry
from longpole.report.text.heading import render_headline, render_who
from longpole.report.text.layout import Style
from tests.report_builder import make_ledger, make_report, make_row, ms

STYLE = Style(80, color=False)
LEDGER = make_ledger({"compute": ms(80)}, {"input": ms(20)})
ROW = make_row(0, [LEDGER, LEDGER])


def test_the_first_line_says_how_much_of_the_job_is_there() -> None:
    report = make_report([ROW], world_size=8)

    assert render_who(report, STYLE)[0].startswith("1 of 8 ranks · 2 steps · A100-SXM4-80GB")


def test_an_unknown_world_is_not_guessed() -> None:
    report = make_report([ROW], world_size=Unknown("not recorded"))

    assert render_who(report, STYLE)[0].startswith("1 rank · ")


def test_assumed_ranks_are_marked() -> None:
    report = make_report([ROW])
    report.run.ranks_assumed = True

    assert "1 of 1 rank (number assumed)" in render_who(report, STYLE)[0]


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("cuda_runtime_version", 12080, "CUDA 12.8"),
        ("hip_runtime_version", 70253211, "HIP 7.2.53211"),
        ("torch_version", "2.9.0+cu128", "torch 2.9.0+cu128"),
        ("nccl_version", "2.27.3", "NCCL 2.27.3"),
    ],
)
def test_versions_are_written_as_people_know_them(key: str, value: object, shown: str) -> None:
    report = make_report([ROW], environment={key: value})

    assert shown in " ".join(render_who(report, STYLE))


@pytest.mark.parametrize("value", [0, "", None, ["2.8", "2.9"]])
def test_a_version_that_is_none_is_left_out(value: object) -> None:
    report = make_report([ROW], environment={"torch_version": value})

    assert "torch" not in " ".join(render_who(report, STYLE))


def test_the_period_is_there_with_its_count() -> None:
    assert "a step completes every 100 ms (median of 2)" in " ".join(
        render_who(make_report([make_row(0, [LEDGER] * 3)]), STYLE)
    )


def test_a_single_period_is_no_median() -> None:
    report = make_report([make_row(0, [LEDGER] * 2)])

    assert "one step took 100 ms" in " ".join(render_who(report, STYLE))


def test_units_left_out_of_means_are_counted_once() -> None:
    out = [LeftOut("ProfilerStep#3", "communicator_setup", 0), LeftOut("ProfilerStep#3", "communicator_setup", 1)]

    assert "2 steps, 1 left out of means" in " ".join(render_who(make_report([ROW], left_out=out), STYLE))


def test_a_unit_of_the_head_is_not_one_of_the_units() -> None:
    out = [LeftOut("ProfilerStep#2", "profiler_start_skew")]

    assert "2 steps · " in " ".join(render_who(make_report([ROW], left_out=out), STYLE))


def test_a_record_without_markers_says_so() -> None:
    report = make_report([make_row(0, [LEDGER], unit_kind="trace")], unit_kind="trace")

    assert "no steps marked, so the whole record is one unit" in " ".join(render_who(report, STYLE))


def test_a_record_of_the_cpu_alone_says_so() -> None:
    report = make_report([make_row(0, [LEDGER], device="cpu")])

    assert "no device recorded, CPU only" in " ".join(render_who(report, STYLE))


def test_other_device_models_are_counted() -> None:
    rows = [make_row(0, [LEDGER]), make_row(1, [LEDGER], device_name="H100"), make_row(2, [LEDGER], device_name="H200")]

    assert "A100-SXM4-80GB and 2 other models" in " ".join(render_who(make_report(rows), STYLE))


def test_a_selection_is_shown() -> None:
    chosen = SelectionEntry("3..7", [0, 1, 2], "my_step")

    text = " ".join(render_who(make_report([ROW], selection=chosen), STYLE))

    assert "only units 3..7" in text
    assert "only ranks 0–2" in text
    assert "units marked by my_step" in text


def test_the_verdict_stands_first_with_what_it_means() -> None:
    headline = Headline("rank 0: waiting for input, 20.0 ms per step", "unknown", ms(20), "ledger", 0, "input")

    lines = render_headline(make_report([ROW], headline=headline), STYLE)

    assert lines[0] == "THE LONG POLE  rank 0: waiting for input, 20.0 ms per step"
    assert lines[1].startswith("  Nothing ran while a batch was prepared")
    assert lines[2] == "  This is the time that the ledger charges; removing it may save less, or more."


def test_a_figure_of_the_replay_is_not_called_one_of_the_ledger() -> None:
    headline = Headline("rank 0: its loader", "data_loader", ms(20), "replay", 0, "input")

    assert "ledger" not in " ".join(render_headline(make_report([ROW], headline=headline), STYLE))


def test_without_a_verdict_the_reason_and_the_remedy_are_given() -> None:
    headline = Unknown("the kernels of 8 graph launches are missing", ["a record with graph nodes"])

    lines = render_headline(make_report([ROW], headline=headline), STYLE)

    assert lines == [
        "NO VERDICT  because the kernels of 8 graph launches are missing",
        "  To get one: a record with graph nodes",
    ]


def test_a_report_without_rows_has_a_top() -> None:
    report = make_report([], headline=Unknown("no rank could be read"))
    report.ledger = empty_ledger()

    assert render_who(report, STYLE)[0].startswith("0 of 0 ranks · 0 steps")
