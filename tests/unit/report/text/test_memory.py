"""The phrase about memory at the top of the page."""

from __future__ import annotations

from longpole.records.ledger import Unknown
from longpole.report.document import RunMemory
from longpole.report.text.heading import render_who
from longpole.report.text.layout import Style
from longpole.report.text.memory import peak_memory
from tests.report_builder import make_ledger, make_report, make_row, ms

GB = 10**9
WHOLE = RunMemory(1, "cuda:0", 20 * GB, 30 * GB, 80 * GB, 0.25)


def _said(memory: RunMemory | None, n_ranks: int = 1) -> str:
    rows = [make_row(rank, [make_ledger({"compute": ms(1)}, {})]) for rank in range(n_ranks)]
    return peak_memory(make_report(rows, memory=memory))


def test_the_peak_stands_beside_what_is_reserved_and_there() -> None:
    assert _said(WHOLE) == "peak memory 20.0 GB allocated of 30.0 GB reserved, 25% of the device's"


def test_among_several_ranks_the_fullest_is_named() -> None:
    assert _said(WHOLE, n_ranks=2).endswith(" (rank 1)")


def test_what_is_not_known_is_left_out() -> None:
    why = Unknown("not written")

    assert _said(RunMemory(0, "cuda:0", 20 * GB, why, why, why)) == "peak memory 20.0 GB allocated"
    assert _said(None) == ""


def test_the_top_of_the_page_says_it() -> None:
    report = make_report([make_row(0, [make_ledger({"compute": ms(1)}, {})])], memory=WHOLE)

    assert any("peak memory 20.0 GB" in line for line in render_who(report, Style(80, color=False)))
