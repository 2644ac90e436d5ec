"""Exports of Nsight Systems as they are found: several processes, older columns, parts missing, and hostile ones."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile
from typing import TYPE_CHECKING

import pytest

from longpole.errors import InputError, NotATraceError
from longpole.pipeline.drawing import draw_run
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import report_on as report_on_run
from longpole.readers.nsys.lower import read_nsys
from longpole.settings import Settings
from longpole.timeline.columns import NONE_ID, Kind, SyncKind
from tests.laws import check_refusal, check_report, refusal_of, report_on
from tests.nsys_files import Export, process_id

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.timeline.timeline import Timeline


def _read(path: Path) -> list[Timeline]:
    return read_nsys(path, str(path), path.stat().st_size, Settings())


def _job(pid: int = 100, device: int = 0, export: Export | None = None) -> Export:
    """A step: a launch from 10 to 15 µs, its kernel from 20 to 50 µs, all under an annotation up to 60 µs."""
    export = export or Export()
    export.range("ProfilerStep#1", 0, 60_000, pid=pid)
    export.call("cudaLaunchKernel", 10_000, 15_000, 1, pid=pid)
    export.kernel("gemm", 20_000, 50_000, 1, pid=pid, device=device)
    return export


def test_a_call_loses_the_version_behind_its_name_and_launches_its_kernel(tmp_path: Path) -> None:
    (timeline,) = _read(_job().write(tmp_path / "a.sqlite"))

    assert timeline.device.launch.tolist() == [1]
    assert timeline.names[timeline.host.name[1]] == "cudaLaunchKernel"
    assert timeline.base_ns == Export().epoch_ns
    assert (timeline.source.format, timeline.source.version) == ("nsys", "3.25.0")


def test_correlation_ids_belong_to_a_process(tmp_path: Path) -> None:
    """Both processes number their launches from 1: a join by number alone would make false pairs."""
    export = _job(pid=200, device=1, export=_job(pid=100, device=0))
    export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        row for row in export.rows["CUPTI_ACTIVITY_KIND_RUNTIME"] if row["globalTid"] & ~0xFFFFFF != process_id(200)
    ]

    first, second = _read(export.write(tmp_path / "a.sqlite"))

    assert [track.pid for track in first.tracks] == [100]
    assert first.device.launch.tolist() == [1]
    assert second.device.launch.tolist() == [NONE_ID]


def test_processes_are_ranks_in_the_order_of_their_devices(tmp_path: Path) -> None:
    timelines = _read(_job(pid=100, device=1, export=_job(pid=200, device=0)).write(tmp_path / "rank7.sqlite"))

    assert [(one.identity.rank, one.identity.rank_assumed, one.tracks[0].pid) for one in timelines] == [
        (0, True, 200),
        (1, True, 100),
    ]


def test_a_process_alone_has_the_rank_that_its_files_name_tells(tmp_path: Path) -> None:
    (timeline,) = _read(_job().write(tmp_path / "report_rank7.sqlite"))

    assert (timeline.identity.rank, timeline.identity.rank_assumed) == (7, False)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_a_communicator_of_all_tells_the_order_and_no_more(tmp_path: Path, order: tuple[int, ...]) -> None:
    """It may be that of one node among many, so neither ranks nor their number follow."""
    export = Export()
    for place, rank in enumerate(order):
        _job(pid=100 + place, device=place, export=export)
        export.nccl("ncclCommInitRank", 1_000, 2_000, (5, 4, rank, 0), pid=100 + place)

    timelines = _read(export.write(tmp_path / "a.sqlite"))

    assert [one.tracks[0].pid for one in timelines] == [100 + order.index(rank) for rank in range(4)]
    assert {(one.identity.rank_assumed, one.identity.world_size) for one in timelines} == {(True, None)}


def test_communicators_of_part_of_the_file_do_not_even_tell_the_order(tmp_path: Path) -> None:
    """Two pairs of two: each has a rank 0."""
    export = Export()
    for place in range(4):
        _job(pid=100 + place, device=place, export=export)
        export.nccl("ncclCommInitRank", 1_000, 2_000, (5 + place // 2, 2, 1 - place % 2, 0), pid=100 + place)

    timelines = _read(export.write(tmp_path / "a.sqlite"))

    assert [one.tracks[0].pid for one in timelines] == [100, 101, 102, 103]


def test_nodes_whose_communicators_are_their_own_are_one_job(tmp_path: Path) -> None:
    """Every file's largest communicator holds its two processes alone; the job has four ranks."""
    for node in range(2):
        export = Export()
        for place in range(2):
            pid = 100 + 10 * node + place
            _job(pid=pid, device=place, export=export)
            export.nccl("ncclCommInitRank", 1_000, 2_000, (5 + node, 2, place, 0), pid=pid)
        export.write(tmp_path / f"node{node}.sqlite")

    assert report_on(tmp_path).run.ranks_present == [0, 1, 2, 3]


def test_a_launcher_without_a_device_is_no_rank_and_is_named(tmp_path: Path) -> None:
    export = _job()
    export.range("spawn", 0, 5_000, pid=50)
    export.add("PROCESSES", globalPid=process_id(50), pid=50, name="torchrun")

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    (finding,) = timeline.findings
    assert finding.code == "nsys.process.no_device"
    assert "torchrun" in finding.message


def test_operators_lose_their_numbers_and_keep_their_shapes(tmp_path: Path) -> None:
    export = _job()
    export.range("aten::mm, seq = 3, op_id = 4, sizes = [[2, 3], [3, 5]]", 5_000, 16_000)

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    (row,) = [row for row, kind in enumerate(timeline.host.kind.tolist()) if kind == Kind.OPERATOR]
    assert timeline.names[timeline.host.name[row]] == "aten::mm"
    assert timeline.input_dims.at(row) == "[[2, 3], [3, 5]]"


def test_a_backward_function_belongs_to_the_forward_call_that_made_it(tmp_path: Path) -> None:
    export = _job()
    export.range("aten::mm, seq = 3, op_id = 4", 5_000, 16_000)
    export.range("autograd::engine::evaluate_function: MmBackward0, seq = 3, op_id = 9", 30_000, 40_000, tid=101)

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    assert timeline.flows.time_ns.tolist() == [5_000, 30_000]
    assert timeline.flows.is_target.tolist() == [False, True]
    assert timeline.host.start_ns[timeline.backward].tolist() == [30_000]


def test_a_stream_waits_for_the_stream_that_recorded_the_event(tmp_path: Path) -> None:
    export = _job()
    export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", streamId=7, correlationId=8, globalPid=process_id(100), eventSyncId=77)
    where = {"deviceId": 0, "streamId": 20, "globalPid": process_id(100), "correlationId": 9}
    export.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=1, end=2, syncType=2, eventSyncId=77, **where)

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    syncs = timeline.syncs
    assert (syncs.kind.tolist(), syncs.stream.tolist()) == ([SyncKind.STREAM_WAIT], [20])
    assert (syncs.waited_stream.tolist(), syncs.record.tolist()) == ([7], [8])


def test_an_older_export_without_processes_and_demangled_names(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            CREATE TABLE StringIds (id INTEGER, value TEXT);
            INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm');
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 15, 1, 5, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, shortName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 50, 0, 7, 5, 2);
        """)
    connection.close()

    (timeline,) = _read(path)

    assert timeline.device.launch.tolist() == [0]
    assert timeline.names[timeline.device.name[0]] == "gemm"


def test_what_has_no_usable_time_is_left_out_and_counted(tmp_path: Path) -> None:
    export = _job()
    export.kernel("lost", 0, 0, 2)
    export.kernel("backwards", 40_000, 30_000, 3)
    export.call("cudaLaunchKernel", -50, 10, 4)
    export.range("never closed", 20_000, None)

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    assert len(timeline.device) == 1
    assert {finding.code: finding.count for finding in timeline.findings} == {
        "kernel.time.missing": 1,
        "event.negative_duration": 1,
        "event.no_timestamp": 1,
        "event.unfinished": 1,
    }
    assert timeline.source.n_skipped == 4
    assert any("'lost' (row 2 of CUPTI_ACTIVITY_KIND_KERNEL)" in finding.message for finding in timeline.findings)


def test_cells_of_another_type_than_their_columns_cost_their_rows_only(tmp_path: Path) -> None:
    export = _job()
    export.kernel("text", "soon", 3, 2)  # type: ignore[arg-type]
    export.kernel("real", 30_000.5, 40_000, 3)  # type: ignore[arg-type]
    export.kernel("name", 52_000, 55_000, 4)
    export.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["demangledName"] = 10**6

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    assert timeline.device.start_ns.tolist() == [20_000, 52_000]
    assert timeline.names[timeline.device.name[1]] == ""


def test_a_graph_recorded_as_a_whole_is_one_span_and_said(tmp_path: Path) -> None:
    export = _job()
    export.call("cudaGraphLaunch", 51_000, 52_000, 6)
    where = {"deviceId": 0, "streamId": 7, "globalPid": process_id(100), "correlationId": 6}
    export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=53_000, end=58_000, graphId=3, **where)

    report = report_on(export.write(tmp_path / "a.sqlite"))

    check_report(report)
    assert report.ranks[0].ledger.device.busy_ns == 35_000
    (finding,) = [finding for finding in report.integrity if finding.code == "nsys.graph.whole"]
    assert "--cuda-graph-trace=node" in finding.message


def test_ranges_that_cross_others_are_left_out_and_those_that_nest_stay(tmp_path: Path) -> None:
    export = _job()
    export.range("nests", 12_000, 40_000, eventType=60)
    export.range("crosses", 55_000, 70_000, eventType=60)
    export.range("changes threads", 1_000, 2_000, eventType=60, endGlobalTid=process_id(100) | 7)
    export.range("a mark", 3_000, None, eventType=34)

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    assert "nests" in timeline.names
    assert not {"crosses", "changes threads", "a mark"} & set(timeline.names)
    assert [(finding.code, finding.count) for finding in timeline.findings] == [("nsys.range.crossing", 2)]


@pytest.mark.parametrize("packing", ["gz", "zip"])
def test_a_packed_export_gives_the_same(tmp_path: Path, packing: str) -> None:
    plain = _job().write(tmp_path / "a.sqlite")
    packed = tmp_path / f"packed.sqlite.{packing}"
    if packing == "gz":
        packed.write_bytes(gzip.compress(plain.read_bytes()))
    else:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(plain, "a.sqlite")

    assert report_on(packed).ranks[0].ledger == report_on(plain).ranks[0].ledger


def test_an_export_in_a_folder_is_found_and_other_databases_are_not(tmp_path: Path) -> None:
    _job().write(tmp_path / "rank0.sqlite")
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    connection.close()

    report = report_on(tmp_path)

    assert [source.format for source in report.run.sources] == ["nsys"]
    assert not [finding for finding in report.integrity if finding.code == "file.refused"]


def test_the_ranks_of_one_file_are_one_source(tmp_path: Path) -> None:
    report = report_on(_job(pid=200, device=1, export=_job(pid=100)).write(tmp_path / "a.sqlite"))

    assert len(report.run.sources) == 1
    assert [row.source for row in report.ranks] == [0, 0]


def test_ranks_that_one_file_holds_without_naming_them_are_all_drawn(tmp_path: Path) -> None:
    path = str(_job(pid=200, device=1, export=_job(pid=100)).write(tmp_path / "a.sqlite"))
    options = ReportOptions(use_cache=False)
    run, report = report_on_run([path], options)

    drawing = draw_run([path], options, run, report)

    assert {lane.rank for lane in drawing.lanes} == {0, 1}


# --- refused ------------------------------------------------------------------------------------------------------


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (id INTEGER)")
    connection.close()

    error = refusal_of(path)

    assert isinstance(error, NotATraceError)
    assert "without the tables of Nsight Systems" in str(error)
    check_refusal(error, path.name)


def test_an_export_without_events_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER)")
    connection.close()

    error = refusal_of(path)

    assert isinstance(error, NotATraceError)
    assert "without a timed event" in str(error)


def test_a_report_that_was_not_exported_says_how(tmp_path: Path) -> None:
    path = tmp_path / "job.nsys-rep"
    path.write_bytes(b"\x00\x01 whatever")

    for asked in (path, tmp_path):
        error = refusal_of(asked)
        assert isinstance(error, NotATraceError)
        assert "nsys export --type sqlite" in str(error)


@pytest.mark.parametrize("kept_bytes", [20, 100, 4096, 5000])
def test_a_cut_database_gives_a_report_or_a_sentence(tmp_path: Path, kept_bytes: int) -> None:
    whole = _job().write(tmp_path / "a.sqlite").read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[:kept_bytes])

    error = refusal_of(path)

    assert isinstance(error, InputError)
    check_refusal(error, path.name)


def test_damage_behind_a_table_costs_only_what_lies_behind(tmp_path: Path) -> None:
    """Pages of the kernels' table are lost; what was read before stays, and the report says so."""
    export = _job()
    for number in range(2_000):
        export.kernel("gemm", 60_000 + 10 * number, 60_005 + 10 * number, number + 10)
    path = export.write(tmp_path / "a.sqlite")
    content = bytearray(path.read_bytes())
    page_bytes = int.from_bytes(content[16:18], "big")
    middle = len(content) // page_bytes // 2 * page_bytes  # nearly all pages are of the kernels
    content[middle : middle + page_bytes] = b"\xff" * page_bytes
    path.write_bytes(content)

    (timeline,) = _read(path)

    assert 0 < len(timeline.device) < 2_001
    (damage,) = [finding for finding in timeline.findings if finding.code == "nsys.table.damaged"]
    assert damage.severity == "warn"


# --- hostile ------------------------------------------------------------------------------------------------------


def test_views_and_virtual_tables_are_not_read(tmp_path: Path) -> None:
    """A view could make every read an endless computation."""
    path = _job().write(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            CREATE VIEW OSRT_API AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
                SELECT x AS start, x AS end, x AS globalTid, x AS nameId FROM n;
        """)
    connection.close()

    (timeline,) = _read(path)

    assert len(timeline.host) == 2


def test_generated_columns_are_not_computed(tmp_path: Path) -> None:
    path = _job().write(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            CREATE TABLE OSRT_API (start INTEGER, end AS (zeroblob(10)), globalTid INTEGER, nameId INTEGER);
            INSERT INTO OSRT_API (start, globalTid, nameId) VALUES (1, 1, 1);
        """)
    connection.close()

    (timeline,) = _read(path)

    assert len(timeline.host) == 2


def test_names_are_harmless_and_no_environment_is_kept(tmp_path: Path) -> None:
    export = _job()
    export.range("\x1b]0;evil\x07 HF_TOKEN=hunter2hunter2", 1_000, 2_000)
    export.add("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value="AWS_SECRET_ACCESS_KEY=abcdefgh12345678")
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node\x1b[2J7")

    (timeline,) = _read(export.write(tmp_path / "a.sqlite"))

    (name,) = [name for name in timeline.names if "evil" in name]
    assert name.isprintable()
    assert "hunter2" not in name
    assert timeline.identity.host.isprintable()
    assert "abcdefgh12345678" not in repr(timeline)
