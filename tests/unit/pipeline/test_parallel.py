"""Reading in several processes gives what reading in one gives."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report

if TYPE_CHECKING:
    from pathlib import Path


def _events(rank: int, n_steps: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for step in range(n_steps):
        at = 1_000_000.0 * step
        host = {"ph": "X", "pid": 1, "tid": 1}
        events.append(host | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 900_000.5})
        for k in range(40):
            call = at + 20_000 * k + rank
            link = {"correlation": step * 40 + k + 1}
            events.append(
                host | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": call, "dur": 4.25, "args": link}
            )
            where = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "args": link | {"device": rank, "stream": 7}}
            events.append(where | {"name": f"gemm_{k % 3}", "ts": call + 7.125, "dur": 10_000.0 + rank})
    return events


def _write(folder: Path, n_ranks: int, n_steps: int) -> None:
    for rank in range(n_ranks):
        document = {
            "distributedInfo": {"rank": rank, "world_size": n_ranks},
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "traceEvents": _events(rank, n_steps),
            "traceName": "made by a test",
        }
        with gzip.open(folder / f"rank{rank}.json.gz", "wt") as file:
            json.dump(document, file, indent=1)


def _settings(folder: Path) -> Path:
    path = folder / "settings.toml"
    path.write_text("[settings]\nparallel_min_bytes = 1\n")
    return path


@pytest.mark.parametrize("n_ranks", [1, 3])
def test_several_processes_change_nothing(tmp_path: Path, n_ranks: int) -> None:
    """One file is read by chunks in other processes, several files one a process; the report is the same."""
    traces = tmp_path / "traces"
    traces.mkdir()
    _write(traces, n_ranks, n_steps=5)
    here = ReportOptions(use_cache=False, processes=1, settings=_settings(tmp_path))
    there = ReportOptions(use_cache=False, processes=2, settings=_settings(tmp_path))

    alone, shared = build_report([str(traces)], here), build_report([str(traces)], there)

    assert msgspec.json.encode(alone) == msgspec.json.encode(shared)
    assert [entry.rank for entry in alone.ranks] == list(range(n_ranks))


def test_chunks_of_one_file_join_to_the_whole(tmp_path: Path) -> None:
    """A file of many stretches counts every event once, with its number in the file."""
    events = _events(0, n_steps=60)
    path = tmp_path / "rank0.json"
    filler = "x" * 2_000
    for event in events:
        event.setdefault("args", {})["note"] = filler
    path.write_text(json.dumps({"traceEvents": events}, indent=1))
    options = ReportOptions(use_cache=False, processes=2, settings=_settings(tmp_path))

    report = build_report([str(path)], options)

    assert path.stat().st_size > 9_000_000
    assert report.run.sources[0].events == len(events)
    assert report.unit.count == 60
    assert report.ranks[0].device_span.busy_ns == 60 * 40 * 10_000_000
    last = report.ranks[0].top.kernels[-1].where
    assert events[last.event or 0]["name"] == report.ranks[0].top.kernels[-1].name
