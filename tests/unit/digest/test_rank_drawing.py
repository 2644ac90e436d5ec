"""What a picture shows: nothing is lost by drawing short spans together, and lanes say what the ledger says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.analyses.name_book import OBJECT_CODE
from longpole.digest.digest import Selection, lay_out
from longpole.digest.rank_drawing import (
    IDLE,
    LINK,
    STREAM,
    THREAD,
    RankDrawing,
    Spans,
    Use,
    coarsen,
    draw_laid,
    draw_rank,
)
from longpole.settings import Settings
from tests.build import LOADER, VOCABULARY, Script, measure, units


def drawn(script: Script) -> RankDrawing:
    return draw_rank(script.timeline(), VOCABULARY, Settings(), Selection())


def row(*times: tuple[int, int], lane: int = 0) -> Spans:
    """Return spans of one lane."""
    n = len(times)
    return Spans(
        lane=np.full(n, lane, np.int32),
        depth=np.zeros(n, np.int8),
        start_ns=np.array([start for start, _ in times], np.int64),
        end_ns=np.array([end for _, end in times], np.int64),
        object=np.zeros(n, np.int8),
        name=np.arange(n, dtype=np.int32),
        count=np.ones(n, np.int32),
        size_bytes=np.full(n, -1, np.int64),
        share=np.full(n, np.nan, np.float32),
        use=np.full(n, -1, np.int32),
        stack=np.full(n, -1, np.int32),
    )


def busy_step() -> Script:
    """thread   ├──────── step ────────┤
              ├ loader ┤ ├ launch ┤
    stream                 ├ gemm ┤
    """
    script = Script()
    script.step(0, 0, 100)
    script.span(LOADER, 5, 40)
    script.kernel(60, 90, script.launch(50, 55))
    return script


def test_a_rank_has_lanes_for_its_threads_its_streams_and_why_nothing_ran() -> None:
    found = drawn(busy_step())

    assert [lane.kind for lane in found.lanes] == [THREAD, STREAM, IDLE]
    assert found.lanes[0].label.startswith("main ")
    assert found.threads_left_out == 0


def detailed(script: Script) -> RankDrawing:
    """Draw with the details of a page; the first span of a device used half of a peak, nothing is known of others."""
    laid, rows = lay_out(script.timeline(), VOCABULARY, Settings(), Selection())

    def gauge(_: object, row: object) -> Use:
        n = len(row.spans)  # type: ignore[attr-defined]
        share = np.full(n, np.nan, np.float32)
        share[0] = 0.5
        return Use(share, np.where(np.arange(n) == 0, 0, 1).astype(np.int32), ["a peak", "no shapes"])

    return draw_laid(laid, rows, gauge=gauge)


def on_lane(found: RankDrawing, label: str) -> list[tuple[str, int]]:
    """Return name and level of the spans of a lane."""
    lane = next(place for place, one in enumerate(found.lanes) if one.label.endswith(label))
    mine = found.spans.take(found.spans.lane == lane)
    return [(found.names[name], depth) for name, depth in zip(mine.name.tolist(), mine.depth.tolist(), strict=True)]


def test_with_details_what_crosses_a_link_or_the_host_bus_has_a_row_too() -> None:
    script = busy_step()
    script.collective(92, 96, script.launch(56, 57))
    script.copy("htod", 40, 48, script.launch(41, 42, name="cudaMemcpyAsync"), stream=9)
    found, plain = detailed(script), drawn(script)

    assert [lane.label for lane in found.lanes if lane.kind == LINK] == ["cuda:0 links", "cuda:0 host bus"]
    assert [name.startswith("nccl") for name, _ in on_lane(found, "links")] == [True]
    assert [name.startswith("Memcpy HtoD") for name, _ in on_lane(found, "host bus")] == [True]
    assert not [lane for lane in plain.lanes if lane.kind == LINK]


def test_spans_that_run_at_once_on_a_stream_lie_on_levels_of_their_own() -> None:
    script = busy_step()
    script.kernel(80, 95, script.launch(56, 58), name="early_start")

    assert on_lane(detailed(script), "stream 7") == [("gemm_kernel", 0), ("early_start", 1)]


def test_a_span_has_its_share_and_what_it_is_a_share_of_also_when_it_is_drawn_with_others() -> None:
    found = detailed(busy_step())
    at = int(np.flatnonzero(found.spans.share == 0.5)[0])

    assert found.names[found.spans.name[at]] == "gemm_kernel"
    assert found.names[found.spans.use[at]] == "a peak"
    both = row((0, 9), (9, 11))
    both.share[:] = 0.25, 0.75
    assert coarsen(both, 100).share.tolist() == [0.25]


def test_the_idle_lane_adds_up_to_the_ledgers_idle_time() -> None:
    script = busy_step()
    found, ledger = drawn(script), units(measure(script))[0].ledger
    idle = found.spans.take(found.spans.lane == 2)
    inside = np.minimum(idle.end_ns, 100_000) - np.maximum(idle.start_ns, 0)

    assert int(inside[inside > 0].sum()) == sum(ledger.idle_ns.values())
    reasons = {found.names[code] for code in idle.name.tolist()}
    assert "input" in reasons


def test_a_loader_has_the_colour_of_input_and_a_kernel_that_of_compute() -> None:
    found = drawn(busy_step())
    by_name = {found.names[name]: int(code) for name, code in zip(found.spans.name, found.spans.object, strict=True)}

    assert by_name[LOADER] == OBJECT_CODE["input"]
    assert by_name["gemm_kernel"] == OBJECT_CODE["compute"]


def test_short_neighbours_are_drawn_together_by_the_name_of_the_longest() -> None:
    found = coarsen(row((0, 2), (3, 9), (10, 11), (500, 900)), 10)

    assert list(zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True)) == [(0, 11), (500, 900)]
    assert found.count.tolist() == [3, 1]
    assert found.name.tolist() == [1, 3]


def test_spans_of_other_lanes_are_not_drawn_together() -> None:
    both = Spans.joined([row((0, 1), (2, 3)), row((0, 1), (2, 3), lane=1)])

    assert coarsen(both, 10).lane.tolist() == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=40), st.integers(1, 40))
def test_drawing_together_loses_no_span_and_no_time(steps: list[tuple[int, int]], finest_ns: int) -> None:
    times, at = [], 0
    for gap, length in steps:
        times.append((at + gap, at + gap + length))
        at += gap + length
    spans = row(*times)
    found = coarsen(spans, finest_ns)

    assert found.count.sum() == len(spans)
    assert (np.diff(found.start_ns) > 0).all()
    assert (found.start_ns[1:] >= found.end_ns[:-1]).all()
    covered = np.zeros(at + 1, bool)
    for start, end in zip(found.start_ns, found.end_ns, strict=True):
        covered[start:end] = True
    assert all(covered[start:end].all() for start, end in times)
    assert int(covered.sum()) - sum(end - start for start, end in times) <= len(spans) * finest_ns
    long = {span for span in times if span[1] - span[0] >= finest_ns}
    assert long <= set(zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True))
