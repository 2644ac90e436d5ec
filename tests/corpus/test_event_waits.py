"""Event waits of recorded traces: those of synchronisation rows equal HTA's, those that are inferred are plausible."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from longpole.graph.rules import event_inferred, event_recorded, launch_queue
from longpole.graph.rules.sync_rows import synced_lanes
from longpole.pipeline.discover import find_traces
from longpole.pipeline.work import WorkContext, read_timelines
from longpole.settings import Settings
from longpole.timeline.columns import SyncKind
from longpole.timeline.tables import SyncTable
from tests.grounds import lay

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.graph.ground import Ground

HTA: Final = "facebookresearch-HolisticTraceAnalysis"
WITH_ROWS: Final = ("alexnet", "cuda_event_sync", "cuda_event_sync_multi_stream", "simple_add")


def _ground(path: Path) -> Ground:
    settings = Settings()
    (file,) = find_traces([str(path)], settings)
    (timeline,) = read_timelines(file, WorkContext(None, settings, None, None, None))
    return lay(timeline, settings)


def _pairs(ground: Ground) -> set[tuple[int, int]]:
    """Return the recorded waits as pairs of correlations."""
    correlation = ground.timeline.device.correlation
    source, target = event_recorded.find_rows(ground)
    return set(zip(correlation[source].tolist(), correlation[target].tolist(), strict=True))


def _inferred(ground: Ground) -> dict[tuple[int, int], bool]:
    """Return the inferred waits as pairs of correlations, and whether each is confirmed."""
    correlation = ground.timeline.device.correlation
    waiters, best = event_inferred.find_rows(ground, np.zeros(len(correlation), np.bool_))
    has = best.source >= 0
    source, target = correlation[best.source[has]].tolist(), correlation[waiters.row[has]].tolist()
    return dict(zip(zip(source, target, strict=True), best.is_confirmed[has].tolist(), strict=True))


def _by_hta(path: Path) -> set[tuple[int, int]]:
    """Return the waits between streams that HTA's rule draws, as pairs of correlations.

    `critical_path_analysis.py`: the last launch on the event's stream before the record, by any thread; the next
    launch on the waiting stream after the wait, by the thread that made it.
    """
    (file,) = path.glob("*.gz")
    events = [e for e in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    stream_of = {
        e["args"]["correlation"]: e["args"]["stream"]
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    launches = sorted((call["ts"], number) for number, call in calls.items() if number in stream_of)
    found = set()
    for row in (e["args"] for e in events if e.get("name") == "Stream Wait Event"):
        record, wait = calls.get(row.get("wait_on_cuda_event_record_corr_id")), calls.get(row["correlation"])
        if record is None or wait is None:
            continue
        before = [n for ts, n in launches if ts < record["ts"] and stream_of[n] == row["wait_on_stream"]]
        after = [n for ts, n in launches if ts > wait["ts"] and stream_of[n] == row["stream"] and _same(calls[n], wait)]
        if before and after:
            found.add((before[-1], after[0]))
    return found


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return bool(a["tid"] == b["tid"])


@pytest.mark.parametrize("name", WITH_ROWS)
def test_recorded_waits_are_those_of_hta(corpus: Path, name: str) -> None:
    path = corpus / HTA / "critical_path" / name

    assert _pairs(_ground(path)) == _by_hta(path)


def test_the_waits_that_htas_own_tests_name(corpus: Path) -> None:
    alexnet = _pairs(_ground(corpus / HTA / "critical_path/alexnet"))
    streams = _pairs(_ground(corpus / HTA / "critical_path/cuda_event_sync_multi_stream"))

    assert len(alexnet) == 6
    assert (5606, 5629) in alexnet
    assert [source for source, _ in streams] == [27]


def test_what_rows_record_is_inferred_without_them(corpus: Path) -> None:
    """With the rows withheld, five of the six waits are found; two that are not recorded remain untested."""
    recorded = _ground(corpus / HTA / "critical_path/alexnet")
    ground = lay(replace(recorded.timeline, syncs=SyncTable.empty()))

    found = _inferred(ground)

    assert len(_pairs(recorded) & set(found)) == 5
    assert {pair for pair, confirmed in found.items() if confirmed} == {(5606, 5629)}
    assert len(found) == 7


def test_rows_that_name_streams_but_no_record_leave_nothing_wrong(corpus: Path) -> None:
    """`simple_add` is an older recording of the same program, of a Kineto that did not write the record yet."""
    found = _inferred(_ground(corpus / HTA / "critical_path/simple_add"))

    assert set(found) == _pairs(_ground(corpus / HTA / "critical_path/alexnet"))


def test_rows_of_synchronisation_are_all_read(corpus: Path) -> None:
    ground = _ground(corpus / HTA / "critical_path/alexnet")
    kinds = [SyncKind(kind).name for kind in ground.timeline.syncs.kind.tolist()]

    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"STREAM_WAIT": 20, "STREAM": 16, "CONTEXT": 5}
    rows, _ = synced_lanes(ground)
    assert len(rows) == 21


def test_where_every_gather_waits_most_waits_are_confirmed(corpus: Path) -> None:
    """FSDP: 4,040 spans follow a stream's wait, 975 of them late, and every late one is explained."""
    ground = _ground(corpus / HTA / "df_index_resolver")
    waiters, best = event_inferred.find_rows(ground, np.zeros(len(ground.timeline.device), np.bool_))
    late = waiters.late_ns > Settings().late_start_ns

    assert late.sum() > 900
    assert best.is_confirmed[late].all()
    lag_ns = ground.spans.start_ns[waiters.row[late]] - ground.spans.end_ns[best.source[late]]
    assert np.median(lag_ns) < 5_000


def test_a_queue_that_is_full_holds_1022_and_explains_every_long_launch(corpus: Path) -> None:
    ground = _ground(corpus / HTA / "ns_resolution_trace")
    host = ground.timeline.host
    waits = launch_queue.waits(ground)
    launches = ground.is_call("launch")
    long = np.flatnonzero(launches & (host.end_ns - host.start_ns > 50_000))

    assert np.isin(long, waits).mean() > 0.99
    source, call = launch_queue.find_rows(ground)
    assert 2_000 < np.median(host.end_ns[call] - ground.spans.end_ns[source]) < 10_000
