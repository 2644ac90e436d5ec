"""Writes what happened on the machine as PyTorch's profiler would have: one Kineto trace a rank."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.jobs.truth import step_bounds, step_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.machine import HostRow, Item, Recording
    from tests.jobs.plan import Plan

BASE_NS = 1_718_000_000_000_000_000
EPOCH_NS = 1_468_837_000_000_000
THREADS = {"main": 0, "autograd": 71}


def render(recording: Recording, plan: Plan, folder: Path) -> None:
    """Write one file a rank into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(plan.ranks):
        document = _document(recording, plan, rank)
        text = json.dumps(document, separators=(",", ":"))
        (folder / f"rank{rank}.{41000 + rank}.pt.trace.json").write_text(text, encoding="utf-8")


def _document(recording: Recording, plan: Plan, rank: int) -> dict[str, Any]:
    pid = 41000 + rank
    groups = plan.knob("groups") or {"0": tuple(range(plan.ranks))}
    events = _metadata(pid, rank)
    rows = [row for row in recording.host if row.rank == rank]
    cut = plan.knob("recorded_from", {}).get(rank)
    bounds = step_bounds(recording)[rank]
    first = bounds[0][0] if cut is None else bounds[cut][0] - 1
    linked = set()
    for row in sorted(rows, key=lambda one: (one.start, -one.end)):
        if row.start >= first:
            events += _host_event(row, pid)
            linked.add(row.correlation)
    for item in sorted((item for item in recording.device if item.rank == rank), key=lambda one: one.start):
        assert item.task is not None
        if item.correlation in linked and item.task.recorded and not _lost(item, bounds, plan.knob("lost")):
            events += _device_events(item, rank)
    world = plan.knob("world_size", plan.ranks)
    document = {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": device, "name": plan.dialect.device_name, "totalGlobalMem": 85_899_345_920, "numSms": 132}
            for device in range(min(8, plan.ranks))
        ],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank,
            "world_size": world,
            "pg_count": len(groups),
            "pg_config": [
                {
                    "pg_name": name,
                    "pg_desc": "default_pg" if name == "0" else f"mesh_{name}",
                    "backend_config": "cuda:nccl",
                    "pg_size": len(ranks),
                    "ranks": list(ranks),
                }
                for name, ranks in groups.items()
                if rank in ranks
            ],
            "nccl_version": {"rccl": "2.22.3", "rccl-old": "2.18.3"}.get(plan.dialect.nccl, f"{plan.dialect.nccl}.3"),
        },
        "record_shapes": 1,
        "with_stack": int(plan.dialect.stacks),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": events,
        "traceName": f"rank{rank}.json",
    }
    if plan.ranks == 1:
        del document["distributedInfo"]
    return document


def _lost(item: Item, bounds: list[tuple[int, int]], lost: tuple[float, float] | None) -> bool:
    """Tell whether a span began in the part of its step that the profiler lost."""
    step = step_of(bounds, item.start)
    if lost is None or step < 0:
        return False
    start, end = bounds[step]
    return lost[0] <= (item.start - start) / (end - start) <= lost[1]


def _metadata(pid: int, rank: int) -> list[dict[str, Any]]:
    time = _us(0)
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": time, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": time, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_name", "pid": rank % 8, "tid": 0, "ts": time, "args": {"name": "python"}},
        {
            "ph": "M",
            "name": "process_labels",
            "pid": rank % 8,
            "tid": 0,
            "ts": time,
            "args": {"labels": f"GPU {rank % 8}"},
        },
    ]


def _us(ns: int) -> float:
    return (EPOCH_NS + ns) / 1000


def _tid(pid: int, thread: str) -> int:
    return pid + THREADS.get(thread, 100 + sum(thread.encode()) % 800)


def _host_event(row: HostRow, pid: int) -> list[dict[str, Any]]:
    tid = _tid(pid, row.thread)
    where = {"cat": row.cat, "name": row.name, "pid": pid, "tid": tid, "ts": _us(row.start)}
    if row.end < 0:
        return [{"ph": "i", "s": "t", **where, "args": row.args}]
    event: dict[str, Any] = {"ph": "X", **where}
    event["dur"] = (row.end - row.start) / 1000
    if row.cat == "cuda_runtime":
        event["args"] = row.args | {"cbid": 211, "correlation": row.correlation}
        start = {
            "ph": "s",
            "id": row.correlation,
            "pid": pid,
            "tid": tid,
            "ts": event["ts"],
            "cat": "ac2g",
            "name": "ac2g",
        }
        return [event, start] if row.launches else [event]
    args = {key: value for key, value in row.args.items() if key != "step"}
    if row.cat == "python_function":
        event["args"] = {"Python id": row.correlation, "Python thread": 0}
    else:
        event["args"] = {"External id": row.correlation, "Ev Idx": row.correlation} | args
    if row.cat in ("cpu_op", "user_annotation"):
        event["args"]["Record function id"] = 0
    return [event]


def _device_events(item: Item, rank: int) -> list[dict[str, Any]]:
    task = item.task
    assert task is not None
    device = rank % 8
    where = {"pid": device, "tid": item.stream, "ts": _us(item.start)}
    args = {"External id": item.external, "device": device, "context": 1, "stream": item.stream}
    args["correlation"] = item.correlation
    row = {"ph": "X", "cat": task.cat, "name": task.name, **where, "dur": (item.end - item.start) / 1000}
    row["args"] = task.args | args
    events = [row, {"ph": "f", "id": item.correlation, **where, "cat": "ac2g", "name": "ac2g", "bp": "e"}]
    if task.annotation:
        note = {"ph": "X", "cat": "gpu_user_annotation", "name": task.annotation, **where, "dur": row["dur"]}
        events.append(note | {"args": {"External id": item.external}})
    return events
