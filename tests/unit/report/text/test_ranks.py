"""The table of ranks."""

from __future__ import annotations

from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style
from longpole.report.text.ranks import render_ranks
from tests.report_builder import make_ledger, make_report, make_row, ms


def render(waits_ms: list[float]) -> list[str]:
    rows = [
        make_row(rank, [make_ledger({"compute": ms(100 - wait)}, {"input": ms(wait)})] * 3)
        for rank, wait in enumerate(waits_ms)
    ]
    report = make_report(rows)
    return render_ranks(report, scale_for(report.ledger.wall_ns), Style(80, color=False))


def test_a_single_row_needs_no_table() -> None:
    assert render([5]) == []


def test_the_rank_that_waits_most_stands_first() -> None:
    lines = render([10, 40, 20])

    assert [line.split()[:2] for line in lines[1:]] == [["rank", "1"], ["rank", "2"], ["rank", "0"]]
    assert lines[1].split()[2:] == ["60", "%", "input", "40.0", "100.0", "█" * 16]


def test_figures_stand_under_their_heads() -> None:
    lines = render([10, 40])

    for word, figure in (("busy", "60 %"), ("period", "100.0")):
        assert lines[0].index(word) + len(word) == lines[1].index(figure) + len(figure)
    assert lines[0].index("largest wait") == lines[1].index("input")


def test_of_many_ranks_eight_are_shown_and_the_rest_is_bounded() -> None:
    lines = render([99 * 0.9**rank for rank in range(12)])

    assert len(lines) == 1 + 8 + 1
    assert lines[-1] == "  and 4 more; none waits longer than 42.6 for input"


def test_a_ninth_rank_gets_its_line() -> None:
    """A line saying that one more is left out would take as much room."""
    assert len(render([99 * 0.9**rank for rank in range(9)])) == 1 + 9


def test_ranks_that_hardly_differ_share_a_line_with_their_means() -> None:
    lines = render([20, 50, 21, 20.5])

    assert [line.split()[:2] for line in lines[1:]] == [["rank", "1"], ["ranks", "0,"]]
    assert lines[2].startswith("  ranks 0, 2, 3       80 %  input             20.5     100.0")


def test_two_ranks_that_hardly_differ_keep_their_lines() -> None:
    assert len(render([20, 50, 21])) == 1 + 3


def test_ranks_that_differ_in_what_they_wait_for_keep_their_lines() -> None:
    ledgers = [make_ledger({"compute": ms(9)}, {reason: ms(1)}) for reason in ("input", "output", "host.gc", "state")]
    report = make_report([make_row(rank, [ledger]) for rank, ledger in enumerate(ledgers)])

    assert len(render_ranks(report, scale_for(report.ledger.wall_ns), Style(80, color=False))) == 1 + 4


def test_many_scattered_ranks_on_a_line_are_counted() -> None:
    lines = render([50 if rank % 2 else 20 for rank in range(20)])

    assert [line.split()[:2] for line in lines[1:]] == [["10", "ranks"], ["10", "ranks"]]


def test_a_rank_without_a_period_has_a_question_mark() -> None:
    rows = [make_row(rank, [make_ledger({"compute": ms(9)}, {"input": ms(1)})]) for rank in (0, 1)]
    report = make_report(rows)

    lines = render_ranks(report, scale_for(report.ledger.wall_ns), Style(80, color=False))

    assert lines[1].split()[6] == "?"
