"""Print how far the laws of records of `longpole bench io` are off where a whole power of ten was held out.

    longpole bench io --sizes 4KiB..256MiBx2 --repeats 15 --warmup 3 --label a --out records \
        --paths 'raw.read.warm,torch.load.warm,torch.mmap.warm,safetensors.load.warm,memory.copy'
    python -m benchmarks.io.held_out records/*/*.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longpole.pipeline.bench_io import read_bench_io
from longpole.units import format_ns, write_binary_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.bench_io import IoModel

_HEAD = """| path | record | model | latency | GB/s | break | worst error, fitted | held out: median | P95 | worst, at |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def main(files: Sequence[str]) -> int:
    """Print a row a path and record, and the errors of each path over all records.

    Returns:
        0 where the warm load and the memory copy are fitted in every record and their 95th percentile is at most 40 %.
    """
    held: dict[str, list[float]] = {}
    refused: list[str] = []
    print(_HEAD)
    for file in files:
        for path in read_bench_io(file).paths:
            model = path.model
            errors = [abs(error) for error in model.decades_out_errors.values()]
            held.setdefault(path.name, []).extend(errors)
            if model.status != "fitted":
                refused.append(path.name)
            print(_row(path.name, Path(file).stem, model))
    print("\n| path | sizes held out | P95 of the error |\n| --- | ---: | ---: |")
    for name, errors in held.items():
        print(f"| {name} | {len(errors)} | {_p95(errors):.0%} |" if errors else f"| {name} | 0 | – |")
    asked = ("raw.read.warm", "memory.copy")
    good = all(name not in refused and held.get(name) and _p95(held[name]) <= 0.4 for name in asked)
    return 0 if good else 1


def _row(name: str, record: str, model: IoModel) -> str:
    latency = ", ".join(format_ns(piece.latency_ns) for piece in model.pieces)
    rate = ", ".join(f"{piece.gb_per_s:.2f}" if isinstance(piece.gb_per_s, float) else "–" for piece in model.pieces)
    at = write_binary_bytes(model.break_bytes) if model.break_bytes else "–"
    worst = f"{model.worst_error:.0%}" if isinstance(model.worst_error, float) else "–"
    errors = {int(size): abs(error) for size, error in model.decades_out_errors.items()}
    if not errors:
        return f"| {name} | {record} | {model.status} | {latency} | {rate} | {at} | {worst} | – | – | – |"
    most = max(errors, key=errors.__getitem__)
    held = f"{np.median(list(errors.values())):.0%} | {_p95(list(errors.values())):.0%}"
    where = f"{errors[most]:.0%}, {write_binary_bytes(most)}"
    return f"| {name} | {record} | {model.status} | {latency} | {rate} | {at} | {worst} | {held} | {where} |"


def _p95(errors: Sequence[float]) -> float:
    """Return the nearest rank: the smallest error that at least 95 % of all do not exceed."""
    ordered = sorted(errors)
    return ordered[-(-95 * len(ordered) // 100) - 1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
