"""Which processes make up a rank, and how their clocks are brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longpole.errors import UsageError
from longpole.pipeline.discover import find_traces
from longpole.settings import Settings
from tests.span_scripts import EPOCH_NS, MS, SpanScript, report_of, timelines

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline

S = 1_000  # ms


def loop(at: float = 0, n: int = 3, **header: object) -> SpanScript:
    """A main process with n steps of 10 ms, ended in order."""
    script = SpanScript(at, **header)
    for k in range(n):
        script.unit(f"step {k}", at + 10 * k, at + 10 * (k + 1))
        script.span("train", at + 10 * k, at + 10 * k + 8, "compute")
    script.close(at + 10 * n)
    return script


def worker(at: float = 0, pid: int = 11, **header: object) -> SpanScript:
    """A loader's worker that loads for 9 ms."""
    fields: dict[str, object] = {"role": "loader_worker", "worker": 0} | header
    script = SpanScript(at, pid=pid, **fields)
    script.span("load", at, at + 9, "input")
    return script


def processes_of(timeline: Timeline) -> list[object]:
    return sorted({track.pid for track in timeline.tracks}, key=str)


def test_a_worker_belongs_to_the_process_that_started_it() -> None:
    first = loop(pid=10, rank=0, world_size=2)
    second = loop(pid=20, rank=1, world_size=2)
    loads = worker(pid=21, rank=None, parent_pid=20)

    made = timelines(first, second, loads)

    assert [(t.identity.rank, processes_of(t)) for t in made] == [(0, [10]), (1, [20, 21])]


def test_a_worker_that_does_not_know_its_parent_belongs_to_its_rank() -> None:
    made = timelines(loop(pid=10, rank=0), loop(pid=20, rank=1), worker(pid=21, rank=1))

    assert [processes_of(t) for t in made] == [[10], [20, 21]]


def test_a_worker_that_says_neither_and_ran_beside_two_ranks_is_left_out_and_said_so() -> None:
    made = timelines(loop(pid=10, rank=0), loop(pid=20, rank=1), worker(pid=21, rank=None))

    assert [processes_of(t) for t in made] == [[10], [20]]
    assert [f.code for t in made for f in t.findings] == ["spans.unplaced"]


def test_a_rank_that_never_finished_a_unit_is_there_all_the_same() -> None:
    stuck = SpanScript(pid=20, rank=1, world_size=2)
    stuck.collective(2, None, seq=0, members=[0, 1])
    stuck.clock(40)

    made = timelines(loop(pid=10, rank=0, world_size=2), stuck)

    assert [t.identity.rank for t in made] == [0, 1]


def test_a_child_with_units_works_for_its_parent() -> None:
    """An evaluation that the main process forked counts its own units; they are spans beside the main loop."""
    made = timelines(loop(pid=10, rank=None, n=5), loop(at=12, pid=30, rank=None, parent_pid=10, n=1))

    assert [processes_of(t) for t in made] == [[10, 30]]
    assert made[0].told is not None
    assert len(made[0].told.units) == 5


def test_a_worker_whose_header_was_written_behind_its_spans_ran_when_they_did() -> None:
    """The header comes with the first flush: the worker's at 90 ms, when the main process has long ended."""
    loads = SpanScript(at=90, pid=11, rank=None, role="loader_worker", worker=0, parent_pid=10)
    loads.span("load", 0, 9, "input")

    made = timelines(loop(rank=None), loads)

    assert [processes_of(t) for t in made] == [[10, 11]]


def test_a_program_that_knows_no_rank_is_a_job_of_one() -> None:
    (timeline,) = timelines(loop(rank=None, world_size=None))

    assert (timeline.identity.rank, timeline.identity.rank_assumed, timeline.identity.world_size) == (0, False, 1)


def test_programs_without_ranks_that_ran_at_once_get_assumed_ones() -> None:
    made = timelines(loop(pid=10, rank=None, world_size=None), loop(pid=20, rank=None, world_size=None))

    assert [t.identity.rank_assumed for t in made] == [True, True]


def test_a_rank_that_becomes_known_later_is_the_rank() -> None:
    script = loop(rank=None, world_size=None)
    script.rank(3, 8)

    (timeline,) = timelines(script)

    assert (timeline.identity.rank, timeline.identity.world_size) == (3, 8)


def test_clocks_of_one_machine_are_compared_as_they_are_though_the_wall_clock_was_set() -> None:
    """The worker's pair of times says that the wall clock went back by 0.4 s: monotonic times stand."""
    loads = worker(epoch_ns=EPOCH_NS + 5_000 * 1_000 * MS - 400 * MS, parent_pid=10)

    (timeline,) = timelines(loop(), loads)

    starts = timeline.host.start_ns - timeline.host.start_ns.min()
    assert starts[[timeline.names[code] == "load" for code in timeline.host.name]].tolist() == [0]
    assert timeline.findings == ()


def test_clocks_of_other_origins_are_brought_together_by_the_wall_clock_and_said_so() -> None:
    """The worker's clock stands 12 s behind, at the same time since the epoch: its span at 1 is one at 12,001 ms."""
    loads = worker(parent_pid=10, epoch_ns=EPOCH_NS + 5_012 * 1_000 * MS)

    (timeline,) = timelines(loop(n=1_500), loads)

    starts = timeline.host.start_ns - timeline.host.start_ns.min()
    assert starts[[timeline.names[code] == "load" for code in timeline.host.name]].tolist() == [12 * S * MS]
    assert [found.code for found in timeline.findings] == ["spans.clock"]


def test_a_job_that_was_started_again_in_the_same_folder_is_two_jobs(tmp_path: Path) -> None:
    loop(rank=0).write(tmp_path / "a.spans.jsonl")
    loop(at=60 * S, rank=0, pid=99).write(tmp_path / "b.spans.jsonl")

    with pytest.raises(UsageError, match="2 distinct runs here; choose one with --job N"):
        report_of(tmp_path)
    assert report_of(tmp_path, job=2).unit.count == 3


def test_ranks_of_a_host_are_read_apart_where_every_file_says_its_rank(tmp_path: Path) -> None:
    for rank in range(2):
        loop(rank=rank, pid=10 + rank).write(tmp_path / f"rank{rank}.spans.jsonl")
        worker(rank=rank, pid=20 + rank).write(tmp_path / f"rank{rank}-worker.spans.jsonl")

    files = find_traces([str(tmp_path)], Settings())

    assert [[part.path.name for part in file.parts()] for file in files] == [
        ["rank0-worker.spans.jsonl", "rank0.spans.jsonl"],
        ["rank1-worker.spans.jsonl", "rank1.spans.jsonl"],
    ]


def test_span_files_beside_traces_are_left_out_and_said_so(tmp_path: Path) -> None:
    loop().write(tmp_path / "main.spans.jsonl")
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]}'
    )

    report = report_of(tmp_path)

    assert [source.format for source in report.run.sources] == ["kineto"]
    assert "spans.beside_traces" in [found.code for found in report.integrity]
    assert report_of(tmp_path / "main.spans.jsonl").unit.count == 3


def test_what_is_kept_of_a_file_is_not_used_once_another_of_its_processes_wrote_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache goes by all files that are read together."""
    from longpole.pipeline.reading import ReportOptions
    from longpole.pipeline.report import build_report

    monkeypatch.setenv("LONGPOLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    loop().write(folder / "main.spans.jsonl")
    worker(parent_pid=10).write(folder / "worker.spans.jsonl")
    before = build_report([str(folder)], ReportOptions()).ledger.objects["input"].service_ns
    again = worker(parent_pid=10)
    again.span("load", 10, 25, "input")
    again.write(folder / "worker.spans.jsonl")

    after = build_report([str(folder)], ReportOptions()).ledger.objects["input"].service_ns

    assert (before, after) == (9 * MS // 3, 24 * MS // 3)
