"""Whole runs as traces for the viewer: against the report to the nanosecond, and on clocks that agree."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longpole.digest.digest import Selection, lay_out, row_pieces
from longpole.digest.jobs import choose_run
from longpole.digest.rank_drawing import draw_laid
from longpole.errors import LongpoleError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.pipeline.timeline_outputs import Wanted, make_outputs
from longpole.records.critical_path import ANSWER_VERSION, CriticalPath, PathAnswer
from longpole.report.build import build_report
from longpole.report.document import SelectionEntry
from longpole.report.perfetto.tracks import RankTracks, RowUnits, RunTracks
from longpole.vocabulary.objects import IDLE_REASONS, OBJECTS
from tests.build import VOCABULARY, Script, measure
from tests.perfetto_reader import Slice, Track, Viewed, read_trace
from tests.strategies import SMALL_SETTINGS, device_scripts, scripts
from tests.trace_text import annotation, call, kernel, steps, write

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.report.document import RankEntry, Report

RANKS = ("rank 0", "rank 1")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def export(*paths: Path, **options: object) -> tuple[Report, Viewed]:
    named = [str(path) for path in paths]
    asked = ReportOptions(use_cache=False, **options)  # type: ignore[arg-type]
    run, report = report_on(named, asked)
    out = io.BytesIO()
    assert make_outputs(named, asked, run, report, Wanted(trace=out)).missing == []
    return report, read_trace(out.getvalue())


def two_ranks(folder: Path, *, steps: int = 3, shift_us: float = 0.0, drift: float = 0.0) -> tuple[Path, Path]:
    """Two ranks whose steps hold an all-reduce each; the second one's kernels take longer, and overlap once.

    Its clock is off by a constant, and goes faster by a share.
    """
    group = {"Collective name": "allreduce", "Process Group Name": "0", "dtype": "Float", "In msg nelems": 1024}
    paths = []
    for rank in (0, 1):
        events = []
        for k in range(steps):
            at = 1000.0 * k * (1 + drift * rank) + shift_us * rank
            events += [annotation(at, 1000, f"ProfilerStep#{k}")]
            events += [call(at + 5, 5, correlation=10 * k + 1), call(at + 15, 5, correlation=10 * k + 2)]
            events += [kernel(at + 20, 200 + 300 * rank, "gemm", 10 * k + 1)]
            events += [kernel(at + 520, 100, ALL_REDUCE, 10 * k + 2, **group)]
            events += [call(at + 30, 600, "cudaDeviceSynchronize", 10 * k + 3)]
        events += [kernel(2300 + shift_us * rank, 50, "beside", 99)] if rank else []
        path = folder / f"rank{rank}.json"
        world = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}
        info = {"backend": "nccl", "rank": rank, "world_size": 2, "pg_config": [world]}
        paths.append(write(path, events, host_name=f"host{rank}", distributedInfo=info))
    return paths[0], paths[1]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Viewed]:
    return export(*two_ranks(tmp_path_factory.mktemp("two ranks")))


def check_sums(report: Report, viewed: Viewed) -> None:
    digits = len(str(max(row.rank for row in report.ranks)))
    for row in report.ranks:
        _check_row(row, viewed, f"rank {row.rank:0{digits}}")


def _check_row(row: RankEntry, viewed: Viewed, rank: str) -> None:
    charged: Counter[str] = Counter()
    idle: Counter[str] = Counter()
    inside = [(one.start_ns, one.end_ns) for one in viewed.on(rank) if one.category == "unit"]
    for piece in viewed.on(rank, f"{row.device} charged to"):
        if any(start <= piece.start_ns and piece.end_ns <= end for start, end in inside):
            charged[piece.category] += piece.dur_ns
            idle[piece.name] += piece.dur_ns
        else:
            assert not any(start < piece.end_ns and piece.start_ns < end for start, end in inside)
    for name in OBJECTS:
        exposed_ns = row.ledger.objects[name].exposed_ns
        assert sum(viewed.counted(rank, f"{row.device} exposed per unit", name)) == exposed_ns
        assert charged[name] == exposed_ns
    for reason in IDLE_REASONS:
        if reason not in OBJECTS:
            assert idle[reason] == row.ledger.idle_ns[reason]


def test_tracks_add_up_to_the_ledger_and_ranks_stand_on_one_clock(exported: tuple[Report, Viewed]) -> None:
    report, viewed = exported

    check_sums(report, viewed)
    assert [one.start_ns for one in viewed.on("rank 0")] == [one.start_ns for one in viewed.on("rank 1")]
    for rank in RANKS:
        assert sum(one.name == ALL_REDUCE for one in viewed.on(rank, "cuda:0 stream 7")) == 3


def test_a_kernel_that_overlaps_another_on_its_stream_is_not_lost(exported: tuple[Report, Viewed]) -> None:
    _, viewed = exported

    beside = viewed.on("rank 1", "cuda:0 stream 7 (2)")

    assert [(one.name, one.dur_ns, one.depth) for one in beside] == [("beside", 50_000, 0)]
    assert all(one.depth == 0 for one in viewed.on("rank 1", "cuda:0 stream 7"))


def test_the_path_tiles_its_unit_and_arrows_are_where_it_changes_its_row(exported: tuple[Report, Viewed]) -> None:
    report, viewed = exported
    path = report.critical_path
    assert isinstance(path, CriticalPath)

    found = pieces_of_path(viewed)

    assert sum(one.dur_ns for one in found) == path.period_ns
    assert [(one.start_ns, one.dur_ns) for one in found] == [(piece.start_ns, piece.dur_ns) for piece in path.pieces]
    assert all(one.end_ns == after.start_ns for one, after in pairwise(found))
    changes = [(a, b) for a, b in pairwise(found) if a.track is not b.track]
    assert sorted(((a.start_ns, b.start_ns) for a, b in viewed.arrows)) == [
        (a.start_ns, b.start_ns) for a, b in changes
    ]
    assert changes


def test_every_top_row_has_rows_below_it_and_something_on_it(exported: tuple[Report, Viewed]) -> None:
    """A viewer puts a lonely row under a heading of its own, above all else, and opens with all groups closed."""
    _, viewed = exported

    top = [track for track in viewed.tracks.values() if not track.parent]

    assert sorted(track.name for track in top) == ["critical path", "integrity", *RANKS]
    for track in top:
        assert any(one.parent == track.uuid for one in viewed.tracks.values())
        assert viewed.on(track.name)


def test_a_ranks_devices_stand_above_its_threads_each_with_its_counters(exported: tuple[Report, Viewed]) -> None:
    _, viewed = exported

    rows = sorted((t for t in viewed.tracks.values() if viewed.path_of(t)[:-1] == ("rank 1",)), key=_order)

    names = [row.name for row in rows]
    streams = ["cuda:0 stream 7", "cuda:0 stream 7 (2)"]
    assert names[:4] == ["cuda:0 charged to", *streams, "cuda:0 exposed per unit"]
    assert names[4].startswith("main ")


def test_an_object_that_is_charged_nothing_on_any_rank_has_no_counter(exported: tuple[Report, Viewed]) -> None:
    report, viewed = exported

    charged = {name for row in report.ranks for name in OBJECTS if row.ledger.objects[name].exposed_ns}
    for rank in RANKS:
        group = (rank, "cuda:0 exposed per unit")
        assert {name[2] for name in viewed.names() if name[:2] == group and len(name) == 3} == charged
    assert 0 < len(charged) < len(OBJECTS)


def pieces_of_path(viewed: Viewed) -> list[Slice]:
    found = [one for one in viewed.slices if (path := viewed.path_of(one.track))[0] == "critical path" and path[1:]]
    return sorted(found, key=lambda one: (one.start_ns, one.end_ns))


def _order(track: Track) -> int:
    return track.order


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    named = [str(path) for path in two_ranks(tmp_path)]
    options = ReportOptions(use_cache=False)
    written = []
    for _ in range(2):
        out = io.BytesIO()
        make_outputs(named, options, *report_on(named, options), Wanted(trace=out))
        written.append(out.getvalue())

    assert written[0] == written[1]


def test_a_file_that_is_gone_costs_its_spans_and_not_its_ledger(tmp_path: Path) -> None:
    paths = two_ranks(tmp_path)
    named, options = [str(tmp_path)], ReportOptions(use_cache=False)
    run, report = report_on(named, options)
    paths[1].unlink()
    out = io.BytesIO()

    missing = make_outputs(named, options, run, report, Wanted(trace=out)).missing

    viewed = read_trace(out.getvalue())
    assert missing == [1]
    assert len(viewed.on("rank 1")) == 3
    assert not viewed.on("rank 1", "cuda:0 stream 7")
    assert viewed.on("rank 0", "cuda:0 stream 7")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>\x1b[2J\u202e"
    path = write(tmp_path / "rank0.json", [*steps(2), annotation(0, 150, name)])

    _, viewed = export(path)

    names = {one.name for one in viewed.slices}
    assert "<img src=x onerror=alert(1)>\\x1b[2J\\u202e" in names
    assert name not in names


def test_a_single_event_gives_a_trace(tmp_path: Path) -> None:
    report, viewed = export(write(tmp_path / "rank0.json", [annotation(0, 5, "alone")], rank=None))

    check_sums(report, viewed)
    assert len([one for one in viewed.slices if one.name == "alone"]) == len(pieces_of_path(viewed)) + 1


def test_ten_ranks_are_named_so_that_a_viewer_sorts_them(tmp_path: Path) -> None:
    for rank in range(11):
        write(tmp_path / f"rank{rank}.json", steps(1), rank, 11)

    _, viewed = export(tmp_path)

    ranks = [name[0] for name in viewed.names() if name[0].startswith("rank") and len(name) == 1]
    assert ranks == sorted(ranks)
    assert ranks[0] == "rank 00"


@pytest.mark.parametrize(("shift_us", "drift"), [(400.0, 0.0), (0.0, 2e-4)], ids=["shifted", "drifting"])
def test_a_clock_that_is_off_is_put_right_and_counters_stay_the_reports(
    tmp_path: Path, shift_us: float, drift: float
) -> None:
    """The ranks leave their all-reduces together, whatever their clocks say; the values are not of the run's clock."""
    report, viewed = export(*two_ranks(tmp_path, steps=40, shift_us=shift_us, drift=drift))

    ends = [[one.end_ns for one in viewed.on(rank, "cuda:0 stream 7") if one.name == ALL_REDUCE] for rank in RANKS]
    assert len(ends[0]) == 40
    assert max(abs(a - b) for a, b in zip(*ends, strict=True)) < 1000
    assert bool(report.clock[1].drift) == bool(drift)
    for row in report.ranks:
        for name in OBJECTS:
            shown = viewed.counted(f"rank {row.rank}", f"{row.device} exposed per unit", name)
            assert sum(shown) == row.ledger.objects[name].exposed_ns


@pytest.mark.slow
def test_every_odd_record_that_gives_a_report_gives_a_trace_that_adds_up(cases: Path) -> None:
    seen = 0
    for folder in sorted(cases.iterdir()):
        try:
            report, viewed = export(folder)
        except LongpoleError:
            continue
        check_sums(report, viewed)
        seen += 1
    assert seen > 30


@settings(max_examples=12)
@given(st.one_of(device_scripts(), scripts()))
def test_sums_equal_the_ledger_on_drawn_records(script: Script) -> None:
    report, viewed = _of_script(replace(script, rank=0))

    check_sums(report, viewed)


def _of_script(script: Script) -> tuple[Report, Viewed]:
    run = choose_run([measure(script, SMALL_SETTINGS)], None, SMALL_SETTINGS)
    digest = run.digests[0]
    report = build_report(run, [], SelectionEntry(), "0", SMALL_SETTINGS, PathAnswer(ANSWER_VERSION))
    rows = [
        RowUnits(
            entry,
            [
                (one.start_ns - digest.start_ns, one.start_ns - digest.start_ns + one.ledger.wall_ns)
                for one in row.units
            ],
        )
        for entry, row in zip(report.ranks, digest.rows, strict=True)
    ]
    out = io.BytesIO()
    tracks = RunTracks(out, report, rows, 0)
    laid, devices = lay_out(script.timeline(), VOCABULARY, SMALL_SETTINGS, Selection())
    charged = {f"{laid.timeline.device_type}:{row.device}": row_pieces(laid, row) for row in devices}
    charged = charged or {"cpu": row_pieces(laid, None)}
    to_run_ns = lambda times_ns: times_ns - digest.start_ns  # noqa: E731
    tracks.add_rank(RankTracks(0, draw_laid(laid, devices, 127, 99), charged, laid.bounds_ns, to_run_ns))
    return report, read_trace(out.getvalue())
