"""The table of idle reasons."""

from __future__ import annotations

from longpole.report.text.figures import scale_for
from longpole.report.text.idle import render_idle
from longpole.report.text.layout import Style
from longpole.vocabulary.objects import IDLE_REASONS
from tests.report_builder import make_ledger, make_report, make_row, ms


def render(idle: dict[str, int], device: str = "cuda:0") -> list[str]:
    report = make_report([make_row(0, [make_ledger({"compute": ms(50)}, idle)], device=device)])
    return render_idle(report, scale_for(report.ledger.wall_ns), Style(80, color=False))


def test_the_worst_reason_stands_first_with_its_share_of_the_step() -> None:
    lines = render({"host.sync": ms(20), "input": ms(30)})

    assert lines == [
        "WHY THE DEVICE IDLED   ms; 50.0 in all, 50 % of a step",
        "       30.0   30.0 %  input               a batch was being fetched or prepared",
        "       20.0   20.0 %  host.sync           the program waited for the device",
    ]


def test_a_device_that_never_idles_has_no_section() -> None:
    assert render({}) == []


def test_small_reasons_are_summed_and_named() -> None:
    lines = render({reason: ms(10 - place / 2) for place, reason in enumerate(IDLE_REASONS[:9])})

    assert len(lines) == 8
    assert lines[-1].split()[3] == "others"
    assert "host.compile, host.sync" in lines[-1]
    assert lines[-1].split()[0] == "19.5"


def test_one_small_reason_is_shown_by_its_own_name() -> None:
    lines = render({"input": ms(50), "host.gc": 1000})

    assert lines[-1].split()[:4] == ["0.0", "0.0", "%", "host.gc"]


def test_figures_add_up_to_the_idle_time() -> None:
    lines = render({"input": ms(16.66), "host.gc": ms(16.66), "output": ms(16.68)})

    assert round(sum(float(line.split()[0]) for line in lines[1:]), 1) == 50.0


def test_without_a_device_it_is_operators_that_did_not_run() -> None:
    assert render({"input": ms(30)}, device="cpu")[0].startswith("WHY NO OPERATOR RAN")
