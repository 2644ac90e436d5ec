"""What figures show: the report's numbers, all of them, and nothing that a name smuggles in."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import msgspec
import numpy as np
import pytest

from longpole.analyses.name_book import OBJECT_CODE
from longpole.digest.rank_drawing import IDLE, STREAM, THREAD, Lane, Spans
from longpole.records.critical_path import PathPiece
from longpole.records.ledger import Unknown
from longpole.records.resources import (
    Cell,
    ColumnEntry,
    Contention,
    Indicator,
    MatrixRow,
    Resources,
    StageIndicators,
)
from longpole.report.drawing import Drawing, DrawnLane, DrawnUnit
from longpole.report.figures.gantt import draw_gantt
from longpole.report.figures.ledger import BARS_MAX, draw_ledger
from longpole.report.figures.matrix import draw_matrix
from longpole.report.figures.path import ROWS_MAX, draw_path
from longpole.report.figures.sheet import FORMATS, encode_figure, fitting, shown, text_color_on
from longpole.report.palette import OBJECT_COLORS
from longpole.units import NS_PER_MS
from tests.report_builder import make_ledger, make_report, make_row, ms, typical, typical_path

mpl = pytest.importorskip("matplotlib")

WIDE = 7.2
HOSTILE = "<img src=x onerror=alert(1)> $\\frac{1}{0}$ \u202egnp \u4e2d\u6587 " + "k" * 4000


def texts(figure: Any) -> list[str]:
    """Return everything that is written in a figure."""
    return [one.get_text() for one in figure.findobj(mpl.text.Text) if one.get_text()]


def bars_of(figure: Any) -> dict[str, list[tuple[float, str]]]:
    """Return label -> (length in units of the axis, colour) of the thick parts of its bar."""
    axes: Any = figure.axes[0]
    labels = [one.get_text() for one in axes.get_yticklabels()]
    found: dict[str, list[tuple[float, str]]] = {label: [] for label in labels}
    for part in axes.patches:
        if part.get_height() > 0.5:
            place = round(part.get_y() + part.get_height() / 2)
            found[labels[place]].append((part.get_width(), mpl.colors.to_hex(part.get_facecolor())))
    return found


def path_of(*pieces: tuple[int | None, str, str, str, int]) -> Any:
    """Return a path of (rank, track, name, object, ms) one behind the other."""
    found, at_ns = [], ms(5)
    for rank, track, name, charged, long_ms in pieces:
        found.append(PathPiece(rank, track, name, charged, at_ns, ms(long_ms), "recorded", "it ran"))
        at_ns += ms(long_ms)
    return msgspec.structs.replace(typical_path(), pieces=found, period_ns=at_ns - ms(5))


def spans_of(*rows: tuple[int, int, int, int, str, int]) -> Spans:
    """Return spans of (lane, depth, start in ms, end in ms, object, name)."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    n = len(rows)
    return Spans(
        lane=np.array(columns[0], np.int32),
        depth=np.array(columns[1], np.int8),
        start_ns=np.array(columns[2], np.int64) * NS_PER_MS,
        end_ns=np.array(columns[3], np.int64) * NS_PER_MS,
        object=np.array([OBJECT_CODE[str(name)] for name in columns[4]], np.int8),
        name=np.array(columns[5], np.int32),
        count=np.ones(n, np.int32),
        size_bytes=np.full(n, -1, np.int64),
        share=np.full(n, np.nan, np.float32),
        use=np.full(n, -1, np.int32),
        stack=np.full(n, -1, np.int32),
    )


def small_drawing(*names: str, pieces: tuple[PathPiece, ...] = ()) -> Drawing:
    """thread   ├──── loader ────┤
    stream 7                 ├─ gemm ─┤
    idle     ├──── input ────┤
    """
    lanes = [
        Lane(THREAD, "main 7", "", "main 7"),
        Lane(STREAM, "cuda:0 stream 7", "cuda:0", "stream 7"),
        Lane(IDLE, "cuda:0 idle", "cuda:0", ""),
    ]
    spans = spans_of((0, 0, 0, 40, "input", 0), (1, 0, 40, 60, "compute", 1), (2, 0, 0, 40, "input", 2))
    unit = DrawnUnit("ProfilerStep#3", ms(5), ms(65), spans, list(pieces))
    return Drawing([DrawnLane(0, lane) for lane in lanes], list(names or ("loader", "gemm", "input")), [unit], {}, [])


def matrix() -> Resources:
    unknown = Unknown("no peak of it is known")
    row = MatrixRow(
        name="aten::mm",
        kind="operator",
        family="matmul",
        stage="forward",
        dtype="bf16",
        calls=4,
        device_ns=ms(80),
        time_share=0.8,
        cells={"tensor": Cell(8.0e12, 0.64), "hbm": Cell(1.0e9)},
        bound_by="tensor",
        next_bound="hbm",
    )
    tiny = msgspec.structs.replace(row, name="aten::tiny", time_share=0.001, cells={}, bound_by=unknown)
    stage = StageIndicators("all", ms(100), 0.9, Indicator(0.51), Indicator(0.2), Indicator(unknown), 0.8, "compute")
    return Resources(
        device="H100 SXM",
        device_name="NVIDIA H100 80GB HBM3",
        basis="shapes",
        columns=[ColumnEntry("tensor", "FLOP"), ColumnEntry("hbm", "byte"), ColumnEntry("l2", "byte", "no counters")],
        peaks=[],
        compute_ns=ms(100),
        covered_share=0.8,
        flops_covered_share=0.8,
        bytes_covered_share=0.8,
        rows=[row, tiny],
        uncounted=[],
        contention=[],
        indicators=[stage],
    )


def test_a_bar_of_the_ledger_is_as_long_as_its_unit_and_has_the_objects_colours() -> None:
    ledger = make_ledger({"compute": ms(60)}, {"input": ms(30), "host.gc": ms(10)})
    other = make_ledger({"compute": ms(80)}, {"input": ms(10), "host.gc": ms(10)})
    report = make_report([make_row(0, [ledger, other], device="cpu")])
    bars = bars_of(draw_ledger(report, by="rank", unit=None, width_in=WIDE).figure)

    assert list(bars) == ["rank 0"]
    assert [length for length, _ in bars["rank 0"]] == pytest.approx([70, 20, 10])
    assert [color for _, color in bars["rank 0"]] == [OBJECT_COLORS[name] for name in ("compute", "input", "host")]


def test_a_unit_that_is_not_steady_is_in_no_mean() -> None:
    row = make_row(0, [make_ledger({"compute": ms(60)}, {}), make_ledger({"compute": ms(600)}, {})], device="cpu")
    row.units[1].steady = False
    report = make_report([row])
    by_rank = bars_of(draw_ledger(report, by="rank", unit=None, width_in=WIDE).figure)
    by_unit = bars_of(draw_ledger(report, by="unit", unit=None, width_in=WIDE).figure)

    assert [length for length, _ in by_rank["rank 0"]] == [pytest.approx(60)]
    assert [length for length, _ in by_unit["ProfilerStep#4 *"]] == [pytest.approx(600)]


def test_one_unit_of_the_ledger_is_that_unit() -> None:
    row = make_row(0, [make_ledger({"compute": ms(60)}, {}), make_ledger({"compute": ms(90)}, {})], device="cpu")
    drawn: Any = draw_ledger(make_report([row]), by="rank", unit="ProfilerStep#4", width_in=WIDE)

    assert [length for length, _ in bars_of(drawn.figure)["rank 0"]] == [pytest.approx(90)]


def test_of_many_ranks_those_that_wait_most_are_drawn_and_the_others_counted() -> None:
    rows = [make_row(rank, [make_ledger({"compute": ms(60)}, {"input": ms(rank)})]) for rank in range(60)]
    drawn: Any = draw_ledger(make_report(rows), by="rank", unit=None, width_in=WIDE)

    assert "rank 59 cuda:0" in bars_of(drawn.figure)
    assert "rank 0 cuda:0" not in bars_of(drawn.figure)
    assert f"{BARS_MAX} of 60 ranks, those with the largest waits" in drawn.notes
    assert drawn.notes[0] in "\n".join(texts(drawn.figure))


def test_a_report_without_ranks_or_units_gives_a_ledger() -> None:
    empty = make_report([make_row(0, [], device="cpu")])
    for drawn in (
        draw_ledger(empty, by="rank", unit=None, width_in=WIDE),
        draw_ledger(empty, by="unit", unit=None, width_in=WIDE),
        draw_ledger(msgspec.structs.replace(typical(), ranks=[]), by="rank", unit=None, width_in=WIDE),
    ):
        assert encode_figure(drawn.figure, "svg")


def test_the_gantts_boxes_are_the_spans() -> None:
    figure: Any = draw_gantt(small_drawing(), width_in=WIDE).figure
    boxes = {one.get_gid(): one.get_path().get_extents() for one in figure.axes[0].patches}

    assert set(boxes) == {"input", "compute"}
    assert (boxes["compute"].x0, boxes["compute"].x1) == (pytest.approx(40), pytest.approx(60))
    assert (boxes["input"].x0, boxes["input"].x1) == (pytest.approx(0), pytest.approx(40))
    assert [one.get_text() for one in figure.axes[0].get_yticklabels()] == ["main 7", "stream 7", "idle"]


def test_gaps_are_labelled_with_their_reason_and_length_and_spans_with_their_name() -> None:
    written = texts(draw_gantt(small_drawing(), width_in=WIDE).figure)

    assert "input 40.0 ms" in written
    assert "gemm" in written
    assert "loader" in written


def test_the_path_runs_below_the_rows_that_it_comes_by_and_dotted_where_no_row_shows_it() -> None:
    pieces = (
        PathPiece(0, "main 7", "loader", "input", ms(5), ms(40), "recorded", "it ran"),
        PathPiece(0, "stream 7", "gemm", "compute", ms(45), ms(15), "recorded", "it ran"),
        PathPiece(None, "", "", "unknown", ms(60), ms(5), "guess", "nothing is recorded"),
    )
    axes: Any = draw_gantt(small_drawing(pieces=pieces), width_in=WIDE).figure.axes[0]
    path = next(line for line in axes.lines if line.get_gid() == "critical path")
    points = [(x, y) for x, y in zip(*path.get_data(), strict=True) if not np.isnan(x)]
    dotted = next(line for line in axes.lines if line.get_linestyle() == ":")

    assert [x for x, _ in points] == pytest.approx([0, 40, 40, 55])
    assert points[0][1] == points[1][1] < points[2][1] == points[3][1]
    assert list(dotted.get_xdata())[:2] == pytest.approx([55, 60])
    assert list(dotted.get_ydata())[:2] == [points[-1][1]] * 2


def test_a_unit_without_spans_still_gives_a_picture() -> None:
    drawing = small_drawing()
    unit = DrawnUnit("empty", 0, 0, spans_of(), [])
    drawn: Any = draw_gantt(Drawing(drawing.lanes, [], [unit], {}, []), width_in=WIDE)

    assert "no span was recorded in it" in texts(drawn.figure)


def test_more_lanes_than_fit_are_counted_and_streams_are_kept_before_threads() -> None:
    lanes = [DrawnLane(0, Lane(THREAD, f"thread {n}", "", f"thread {n}")) for n in range(60)]
    lanes.append(DrawnLane(0, Lane(STREAM, "cuda:0 stream 7", "cuda:0", "stream 7")))
    spans = spans_of(*((n, 0, 0, 60, "host", 0) for n in range(60)), (60, 0, 0, 1, "compute", 0))
    drawn: Any = draw_gantt(Drawing(lanes, ["name"], [DrawnUnit("unit", 0, ms(60), spans, [])], {}, []), width_in=WIDE)

    assert "stream 7" in [one.get_text() for one in drawn.figure.axes[0].get_yticklabels()]
    assert "21 more threads and streams not drawn" in drawn.notes


def test_the_pieces_of_a_path_are_drawn_on_their_tracks_and_add_up_by_object() -> None:
    path = path_of(
        (5, "main 7", "loader", "input", 70),
        (5, "stream 7", "gemm", "compute", 20),
        (0, "stream 9", "all_reduce", "collective", 10),
    )
    figure: Any = draw_path(path, width_in=WIDE).figure
    written = texts(figure)

    assert [one.get_text() for one in figure.axes[0].get_yticklabels()] == [
        "rank 0 · stream 9",
        "rank 5 · main 7",
        "rank 5 · stream 7",
    ]
    assert "input 70.0 ms (70 %)" in written
    assert "collective 10.0 ms (10 %)" in written
    assert "loader" in written


def test_neighbouring_pieces_of_one_name_are_one_box() -> None:
    path = path_of(*[(0, "main 7", "loader", "input", 1)] * 50)
    figure: Any = draw_path(path, width_in=WIDE).figure
    (box,) = figure.axes[0].patches

    assert len(box.get_path().vertices) == 5
    assert texts(figure).count("loader") == 1


def test_a_path_over_more_tracks_than_fit_shows_the_rest_in_one_row() -> None:
    path = path_of(*[(rank, "main", "loader", "input", 1 + rank) for rank in range(40)], (None, "", "", "unknown", 1))
    rows = [one.get_text() for one in draw_path(path, width_in=WIDE).figure.axes[0].get_yticklabels()]

    assert len(rows) == ROWS_MAX
    assert "rank 39 · main" in rows
    assert "other tracks" in rows


def test_a_path_of_very_many_short_pieces_is_a_file_of_bounded_size() -> None:
    many = [(0, "main", f"op {n % 7}", "compute" if n % 2 else "host", 1) for n in range(10_000)]
    figure: Any = draw_path(path_of(*many), width_in=WIDE).figure

    assert sum(len(one.get_path().vertices) for one in figure.axes[0].patches) <= 5 * 2 * 2 * 2049


def test_a_path_without_pieces_says_so() -> None:
    assert "the path has no pieces" in texts(draw_path(typical_path(), width_in=WIDE).figure)


def test_a_cell_of_the_matrix_says_its_share_and_what_is_not_known_is_a_question_mark() -> None:
    drawn: Any = draw_matrix(matrix(), width_in=WIDE)
    written = texts(drawn.figure)

    assert "64 %" in written
    assert written.count("?") == 2  # of a demand without a peak, and of the link
    assert "51 %" in written
    assert "tensor, then hbm" in written
    assert "l2" not in written
    assert not any("aten::tiny" in one for one in written)
    assert "the 1 longest of 2 rows" in drawn.notes


def test_what_ran_at_once_stands_below_the_matrix() -> None:
    pair = Contention("aten::mm", "collective", ms(3), "hbm", demand_share=1.3, first_slowdown=1.25)
    drawn: Any = draw_matrix(msgspec.structs.replace(matrix(), contention=[pair] * 8), width_in=WIDE)
    written = texts(drawn.figure)

    assert "aten::mm + collective  3.00 ms" in written
    assert written.count("130 %") == written.count("1.25 ×") == 6
    assert written.count("?") == 2 + 6
    assert any("2 shorter pairs" in note for note in drawn.notes)


def test_a_share_that_may_be_larger_is_marked_so() -> None:
    resources = msgspec.structs.replace(matrix(), at_least_share=0.25)
    resources.rows[0].cells["hbm"] = Cell(1.0e9, 0.125, at_least=True)
    drawn: Any = draw_matrix(resources, width_in=WIDE)

    assert "≥ 12 %" in texts(drawn.figure)
    assert "FLOPs or bytes are known of 80 % of compute time, of 25 % only a lower bound, from shapes" in drawn.notes


def test_a_matrix_of_a_device_without_peaks_says_that_it_has_none() -> None:
    none = msgspec.structs.replace(matrix(), device=Unknown("the device table has no Foo 3000"), rows=[], indicators=[])
    drawn: Any = draw_matrix(none, width_in=WIDE)

    assert "no peaks: the device table has no Foo 3000" in drawn.notes


def test_a_figure_drawn_twice_is_the_same_file_in_all_formats() -> None:
    first, second = (draw_gantt(small_drawing(HOSTILE, "gemm", "input"), width_in=WIDE).figure for _ in range(2))

    for kind in FORMATS:
        written = encode_figure(first, kind)
        assert encode_figure(second, kind) == written, kind
        assert not re.search(rb"CreationDate|dc:date|tEXtCreation", written), kind


def test_a_hostile_name_is_text() -> None:
    figure: Any = draw_gantt(small_drawing(HOSTILE, HOSTILE, HOSTILE), width_in=WIDE).figure
    written = encode_figure(figure, "svg")

    assert any("<img src=x" in one for one in texts(figure))
    assert not any(one.get_parse_math() for one in figure.axes[0].texts)
    assert b"<img" not in written
    assert not any(one.tag.endswith(("}img", "}script")) for one in ET.fromstring(written).iter())


def test_the_users_own_style_neither_changes_a_figure_nor_is_changed() -> None:
    plain = encode_figure(draw_path(path_of((0, "main", "loader", "input", 70)), width_in=WIDE).figure, "svg")
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "theirs", "xtick.labelsize": 40, "axes.facecolor": "red"}):
        styled = encode_figure(draw_path(path_of((0, "main", "loader", "input", 70)), width_in=WIDE).figure, "svg")
        assert mpl.rcParams["font.size"] == 30

    assert styled == plain


def test_a_notebook_is_handed_a_picture() -> None:
    figure: Any = draw_path(path_of((0, "main", "loader", "input", 70)), width_in=WIDE).figure

    assert figure._repr_png_().startswith(b"\x89PNG")


def test_names_keep_to_their_room_and_to_their_font() -> None:
    assert shown("\u4e2d\u6587") == "\\u4e2d\\u6587"
    assert len(shown("k" * 4000, 30)) == 30
    assert fitting("a_long_kernel_name", 0.5) == "a_long…e"
    assert fitting("a_long_kernel_name", 0.2) == ""
    assert text_color_on("#000000") == "white"
    assert text_color_on("#ffffff") == "black"
