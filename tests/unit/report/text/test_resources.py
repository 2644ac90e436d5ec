"""The section on what operators ask of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.records.resources import Contention
from longpole.report.resources import resources_of
from longpole.report.text.layout import Style, columns_of
from longpole.report.text.resources import render_resources
from tests.build import Script, measure
from tests.report_builder import make_ledger, make_report, make_row, ms

if TYPE_CHECKING:
    from longpole.report.document import Report

TYPES = '["c10::BFloat16", "c10::BFloat16"]'


def report_of(name: str = "aten::mm", device: str = "NVIDIA H100 80GB HBM3") -> Report:
    script = Script()
    script.step(0, 0, 400)
    script.op("aten::mm", 0, 20, shapes="[[4096, 4096], [4096, 4096]]", types=TYPES)
    script.kernel(20, 220, script.launch(1, 5))
    script.kernel(220, 260, script.launch(30, 32), name=name)
    digest = measure(script)
    digest.rows[0].device_name = device
    report = make_report([make_row(0, [make_ledger({"compute": ms(1)}, {})])])
    return msgspec.structs.replace(report, resources=resources_of([digest], []))


def text_of(report: Report, width: int = 80) -> str:
    lines = render_resources(report, Style(width, color=False))
    assert all(columns_of(line) <= width for line in lines)
    return "\n".join(lines)


def test_coverage_indicators_bounds_and_what_is_missing_are_said() -> None:
    text = text_of(report_of())

    assert "H100-SXM5-80GB · FLOPs or bytes known of 83%" in text
    assert "unit               60%      43%*       8%        0%    compute" in text
    assert "83%  aten::mm bf16  tensor 69% of peak, then memory 15%" in text
    assert "not counted: 17% no operator launched it" in text


def test_how_much_is_only_a_bound_is_said() -> None:
    report = report_of()
    bounded = msgspec.structs.replace(report.resources, at_least_share=0.26)

    assert "of 26% only a lower bound of the bytes" in text_of(msgspec.structs.replace(report, resources=bounded))
    assert "bound of the bytes" not in text_of(report)


@pytest.mark.parametrize("width", [60, 72, 100])
def test_lines_fit_their_width(width: int) -> None:
    text_of(report_of(), width)


def test_an_unknown_device_has_no_shares() -> None:
    text = text_of(report_of(device="Imaginary \x1b[31m9000"))

    assert "no peak is guessed" in text
    assert "of peak" not in text
    assert "\x1b" not in text


def test_a_pair_that_slows_names_both_and_what_they_fight_over() -> None:
    report = report_of()
    pair = Contention("aten::\x1bmm", "collective", ms(3), "hbm", 1.2, first_slowdown=2.25)
    report = msgspec.structs.replace(report, resources=msgspec.structs.replace(report.resources, contention=[pair]))

    text = " ".join(text_of(report).split())

    assert "takes 2.2 times as long beside collective (3.00 ms at once; both ask for memory)" in text
    assert "\x1b" not in text


def test_without_shapes_the_section_is_left_out() -> None:
    assert text_of(make_report([make_row(0, [make_ledger({"compute": ms(1)}, {})])])) == ""
