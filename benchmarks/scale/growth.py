"""Measure how time and memory grow with ranks and with device spans, and draw it.

    python -m benchmarks.scale.growth ranks     # 8, 64, 256, 1,024 ranks × 20 steps × 500 collectives, ten minutes
    python -m benchmarks.scale.growth spans     # 15,000 to 250,000 device spans on one rank
    python -m benchmarks.scale.growth draw      # benchmarks/scale/ranks.svg and spans.svg

Every point is a process of its own. Figures are kept in `benchmarks/scale/measured.json`, with the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCALE = Path(__file__).resolve().parent
ROOT = SCALE.parents[1]
MEASURED = SCALE / "measured.json"
RANKS = (8, 64, 256, 1024)
SPANS = (15_000, 60_000, 250_000)


def measure(what: str) -> None:
    """Run one process per point, and keep what they print."""
    rows = []
    points = RANKS if what == "ranks" else SPANS
    for point in points:
        options = ["--ranks", str(point)] if what == "ranks" else ["--device-spans", str(point), "--ranks", "1"]
        load = round(os.getloadavg()[0], 1)
        command = [sys.executable, "-m", f"benchmarks.scale.{what}", *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        rows.append({"load_before": load, **json.loads(done.stdout)})
        print(done.stdout, end="", flush=True)
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    MEASURED.write_text(json.dumps(known | {what: rows}, indent=1) + "\n")


def draw() -> None:
    """Draw what was measured."""
    from benchmarks.scale.picture import Line, picture

    known = json.loads(MEASURED.read_text())
    rows = known["ranks"]
    x = [row["ranks"] for row in rows]
    lines = [
        Line("merge and finish, s", x, [row["of_s"] + row["merge_s"] + row["finish_s"] for row in rows]),
        Line("peak memory, GB", x, [row["peak_mb"] / 1000 for row in rows]),
    ]
    title = f"Ranks merged and replayed, {rows[0]['instances_per_rank']:,} collectives each"
    (SCALE / "ranks.svg").write_text(picture(title, "ranks", lines))
    rows = known["spans"]
    x = [row["device_spans"] for row in rows]
    lines = [
        Line("build of the graph, s", x, [_seconds(row, "build_s", "lay_ground_s") for row in rows]),
        Line("replay and path, s", x, [_seconds(row, "replay_and_path_s") for row in rows]),
        Line("a what-if on the full graph, s", x, [_seconds(row, "what_if_s") for row in rows]),
        Line("contraction, s", x, [_seconds(row, "contract_s") for row in rows]),
        Line("the sweep, s", x, [_seconds(row, "sweep_s") for row in rows]),
    ]
    (SCALE / "spans.svg").write_text(picture("The graph of one rank", "device spans", lines))


def _seconds(row: dict[str, Any], *parts: str) -> float:
    return float(sum(row["seconds"][part] for part in parts))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ranks", "spans", "draw"))
    given = parser.parse_args()
    if given.what == "draw":
        draw()
    else:
        measure(given.what)


if __name__ == "__main__":
    main()
