"""Print how far the times of collectives are off measured ones, source by source.

    python -m benchmarks.collectives.accuracy

The measured points are in `tests/oracles`: 1,428 of single nodes, 110 between nodes, 18 of very large messages.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.costs.cluster import Cluster, Group, Level, cluster_of
from longpole.costs.collective_time import CollectiveCosts, RecordedFit, bus_factor
from longpole.hardware.devices import find_device
from longpole.hardware.nccl_fits import all_fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ORACLES: Final = Path(__file__).resolve().parents[2] / "tests" / "oracles"
SYSTEMS: Final = {
    "a100_sxm": "A100-SXM4-80GB",
    "h100_sxm": "H100-SXM5-80GB",
    "h200_sxm": "H200-SXM-141GB",
    "b200_sxm": "B200-SXM-180GB",
    "gb200": "GB200-per-GPU",
    "l40s": "L40S",
}
_NVLINK: Final = tuple(SYSTEMS)[:5]
_LARGE_BYTES: Final = 16 << 20


def main() -> int:
    """Print the tables."""
    print("| within a node | points | median | P95 | signed median |\n| --- | ---: | ---: | ---: | ---: |")
    for name, errors in _within_a_node():
        _tell(name, errors)
    print("\n| between nodes | points | median | P95 | signed median |\n| --- | ---: | ---: | ---: | ---: |")
    for name, errors in _between_nodes():
        _tell(name, errors)
    print("\n| 4 to 16 GiB | devices | collective | measured GB/s | predicted | error |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for line in _very_large():
        print(line)
    return 0


def _within_a_node() -> Iterator[tuple[str, list[float]]]:
    rows = _rows("nccl_measured_single_node")
    shipped = {system: CollectiveCosts(cluster_of(find_device(name))) for system, name in SYSTEMS.items()}
    yield "shipped fits, all", _errors(rows, shipped)
    for system in SYSTEMS:
        yield f"shipped fits, {system}", _errors([row for row in rows if row["system"] == system], shipped)
    for left_out, kept in ((4, (2, 8)), (8, (2, 4))):
        costs = {system: _from_fits(system, kept) for system in _NVLINK if system != "gb200"}
        name = f"{left_out} devices, from fits of {kept[0]} and {kept[1]}"
        yield name, _errors([row for row in rows if int(row["gpus"]) == left_out], costs)
    modelled = {system: CollectiveCosts(_other_link(system, system)) for system in _NVLINK}
    priced = [row for row in rows if row["collective"] != "alltoall"]
    for name, systems in (("A100 and H100", _NVLINK[:2]), ("H200, B200 and GB200", _NVLINK[2:])):
        yield f"NCCL's model, {name}", _errors([row for row in priced if row["system"] in systems], modelled)
    lines = {system: CollectiveCosts(_other_link(system, "MI300X")) for system in _NVLINK}
    yield "line rates over NVLink", _errors(rows, lines)


def _between_nodes() -> Iterator[tuple[str, list[float]]]:
    rows = _rows("nccl_measured_multi_node")
    by_run: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_run.setdefault(f"{row['system']}, {row['collective']}, {row['devices']} devices", []).append(row)
    nvidia = [row for row in rows if find_device(row["device"]).vendor == "NVIDIA"]
    yield "NCCL's model, from 16 MiB on", _across([row for row in nvidia if _is_large(row)])
    yield "NCCL's model, below 16 MiB", _across([row for row in nvidia if not _is_large(row)])
    for name, own in by_run.items():
        yield f"{name}, from 16 MiB on", _across([row for row in own if _is_large(row)])


def _very_large() -> Iterator[str]:
    for row in _rows("busbw_nvlink_measured"):
        devices, size, kind = int(row["gpus"]), int(row["payload_gib"]) << 30, row["collective"]
        seconds = CollectiveCosts(cluster_of(find_device(row["gpu"]))).seconds(kind, devices, size)
        predicted = size / seconds * bus_factor(kind, devices) / 1e9
        measured = float(row["busbw_gbps"])
        name = f"{row['gpu']} {row['algo']}".strip()
        error = predicted / measured - 1
        yield f"| {name} | {devices} | {kind} | {measured:.0f} | {predicted:.0f} | {error:+.0%} |"


def _from_fits(system: str, kept: Sequence[int]) -> CollectiveCosts:
    fits = [
        RecordedFit(kind=kind, ranks=ranks, nodes=1, fit=fit, says=system)
        for (of, kind, ranks), fit in all_fits().items()
        if of == system and ranks in kept
    ]
    return CollectiveCosts(Cluster(find_device("MI300X"), (Level("link", 16, 1e9),)), fits)


def _other_link(system: str, device: str) -> Cluster:
    """Return a node for which there is no shipped fit: its link is a byte faster, or its device another one."""
    rate = find_device(SYSTEMS[system]).scaleup_bytes_per_s or 0.0
    return Cluster(find_device(SYSTEMS.get(device, device)), (Level("NVLink", 8, rate + 1.0),))


def _errors(rows: Sequence[dict[str, str]], costs: dict[str, CollectiveCosts]) -> list[float]:
    found = []
    for row in rows:
        own = costs.get(row["system"])
        if own is not None:
            kind = "all_to_all" if row["collective"] == "alltoall" else row["collective"]
            seconds = own.seconds_in(kind, Group(int(row["gpus"])), float(row["bytes"]))
            found.append(seconds * 1e6 / float(row["latency_us"]) - 1)
    return found


def _across(rows: Sequence[dict[str, str]]) -> list[float]:
    found = []
    for row in rows:
        costs = CollectiveCosts(cluster_of(find_device(row["device"]), float(row["network_gb_per_s"]) * 1e9))
        group = Group(int(row["devices"]), (int(row["per_node"]),))
        seconds = costs.seconds_in(row["collective"], group, float(row["bytes"]))
        found.append(seconds * 1e6 / float(row["latency_us"]) - 1)
    return found


def _is_large(row: dict[str, str]) -> bool:
    return int(row["bytes"]) >= _LARGE_BYTES


def _rows(name: str) -> list[dict[str, str]]:
    lines = (ORACLES / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _tell(name: str, errors: Sequence[float]) -> None:
    sizes = sorted(abs(error) for error in errors)
    worst = f"{sizes[-(-95 * len(sizes) // 100) - 1]:.0%}" if len(sizes) >= 20 else "–"
    print(f"| {name} | {len(sizes):,} | {median(sizes):.1%} | {worst} | {median(errors):+.0%} |")


if __name__ == "__main__":
    sys.exit(main())
