"""Logs of nccl-tests written as its own code lays them out, from the values that must be read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest

DEVICE = "NVIDIA H100 80GB HBM3"


def render_text(test: LoggedTest, *, old: bool = False, prefix: str = "", per_iteration: bool = False) -> str:
    """Lay a test out as a table: of version 2.17 on, or (`old`) of those that name no program and give errors."""
    head = [] if old else ["# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=" + (test.version or "22807")]
    head += [] if old or not test.program else [f"# Collective test starting: {test.program}"]
    head.append(
        f"# nThread 1 nGpus {test.ranks or 1} minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters:"
        f" {test.warmup} iters: {test.repeats}" + (" validation: 1" if old else " agg iters: 1 validation: 1 graph: 0")
    )
    head += ["#", "# Using devices"]
    for rank in range(test.ranks or 0):
        group = "" if old else " Group  0"
        bus = "0x00" if old else f"0000:{rank:02x}:00"
        host = f"node{rank * (test.nodes or 1) // (test.ranks or 1)}"
        head.append(f"#  Rank {rank:2d}{group} Pid {4100 + rank:6d} on {host:>10} device {rank:2d} [{bus}] {DEVICE}")
    last = "error" if old else "#wrong"
    extra = "    i_min    i_max    i_p99    i_cv%" if per_iteration else ""
    side = f"     time   algbw   busbw  {last}{extra}"
    root = "" if old else "    root"
    head += ["#", f"#{'':52}out-of-place                       in-place"]
    head.append(f"#       size         count    type   redop{root}{side}{side}")
    lines = [*head, *(_row(row, old=old, per_iteration=per_iteration) for row in test.rows)]
    if test.out_of_bounds is not None:
        lines.append(f"# Out of bounds values : {test.out_of_bounds} {'FAILED' if test.out_of_bounds else 'OK'}")
    if test.busbw is not None:
        lines.append(f"# Avg bus bandwidth    : {test.busbw:g} ")
    return "".join(f"{prefix}{line}\n" for line in [*lines, "#"])


def _row(row: LoggedRow, *, old: bool, per_iteration: bool) -> str:
    root = "" if old else f"  {row.root if row.root is not None else -1:6d}"
    head = f"{row.size_bytes:12d}  {row.count:12d}  {row.dtype:>8}  {row.redop:>6}{root}"
    return (
        head + _side(row.out_of_place, per_iteration=per_iteration) + _side(row.in_place, per_iteration=per_iteration)
    )


def _side(side: LoggedSide | None, *, per_iteration: bool) -> str:
    if side is None:
        return " " * 32
    wrong = "   N/A" if side.wrong is None else f"{side.wrong:6d}"
    text = f"  {side.time_us:7g}  {side.algbw:6.2f}  {side.busbw:6.2f}  {wrong}"
    return text + ("    10.00    12.00    11.90     3.00" if per_iteration else "")


def render_json(test: LoggedTest, env: tuple[str, ...] = (), processes: int = 1) -> str:
    """Lay a test out as nccl-tests writes it with -J; `devices` has one entry a process."""
    ranks = test.ranks or processes
    devices = [
        {
            "rank": place * (ranks // processes),
            "group": 0,
            "pid": 41,
            "hostname": f"node{place * (test.nodes or 1) // processes}",
            "device": 0,
            "device_hex": "0000:07:00",
            "device_info": DEVICE,
        }
        for place in range(processes)
    ]
    document: dict[str, Any] = {
        "version": 1,
        "start_time": "2026-01-01 00:00:00",
        "args": [f"./build/{test.program}", "-g", str(ranks // processes)],
        "env": list(env),
        "nccl_version": int(test.version or 22807),
        "config": {
            "nthreads": 1,
            "ngpus": ranks // processes,
            "minimum_bytes": 8,
            "maximum_bytes": 134217728,
            "step_factor": 2,
            "warmup_iters": test.warmup,
            "iterations": test.repeats,
            "devices": devices,
        },
        "results": [_json_row(row) for row in test.rows],
    }
    if test.out_of_bounds is not None:
        document["out_of_bounds"] = {"count": test.out_of_bounds, "okay": "true"}
    if test.busbw is not None:
        document["average_bus_bandwidth"] = {"bandwidth": test.busbw, "okay": "unchecked"}
    return json.dumps(document)


def _json_row(row: LoggedRow) -> dict[str, Any]:
    return {
        "size": row.size_bytes,
        "count": row.count,
        "type": row.dtype,
        "redop": row.redop,
        "root": f"{row.root if row.root is not None else -1:6d}",
        "out_of_place": _json_side(row.out_of_place),
        "in_place": _json_side(row.in_place),
        "actual_iterations": 20,
        "experiment_name": "",
    }


def _json_side(side: LoggedSide | None) -> dict[str, Any] | None:
    if side is None:
        return None
    wrong = None if side.wrong is None else float(side.wrong)
    return {"time": side.time_us, "alg_bw": side.algbw, "bus_bw": side.busbw, "nwrong": wrong}
