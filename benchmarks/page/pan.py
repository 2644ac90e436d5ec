"""Print when a page of many spans is first painted, and how long frames take while it is panned, in Chromium.

    python -m benchmarks.page.pan [--spans 200000] [--frames 120]

The page is that of examples/ddp-gloo-4ranks with a timeline of made-up spans: 16 ranks, three lanes each, all spans
with a call stack and most with a share of a peak. A frame is from one animation frame to the next while the view moves
by a fiftieth of what it shows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np

from longpole.digest.rank_drawing import IDLE, STREAM, THREAD, Lane, Spans
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report
from longpole.report.drawing import Drawing, DrawnLane, DrawnUnit
from longpole.report.page.page import render_page
from tests.browser.chromium import launch

RANKS = 16
STACKS = 2_000
KINDS = (THREAD, STREAM, IDLE)
_PAN = """async (frames) => {
  const canvas = document.getElementById("timeline"), { state, view } = canvas.longpole;
  view(0, canvas.longpole.unit().length_ns / 3);
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < frames; i++) {
    const by = (state.to - state.from) / 50;
    view(state.from + by, state.to + by);
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last); last = now;
  }
  return times;
}"""


def made_drawing(count: int) -> Drawing:
    """Return a drawing of about so many spans, all of one unit of 100 ms."""
    rng = np.random.default_rng(1)
    lanes = [DrawnLane(rank, Lane(kind, f"{kind} 7", "cuda:0", "")) for rank in range(RANKS) for kind in KINDS]
    each = count // len(lanes)
    parts = []
    for lane in range(len(lanes)):
        edges = np.sort(rng.choice(100_000_000, 2 * each, replace=False)).astype(np.int64)
        parts.append(
            Spans(
                lane=np.full(each, lane, np.int32),
                depth=np.zeros(each, np.int8),
                start_ns=edges[0::2],
                end_ns=edges[1::2],
                object=rng.integers(0, 7, each).astype(np.int8),
                name=rng.integers(0, 400, each).astype(np.int32),
                count=np.ones(each, np.int32),
                size_bytes=np.full(each, -1, np.int64),
                share=np.where(rng.random(each) < 0.1, np.nan, rng.random(each)).astype(np.float32),
                use=rng.integers(0, 400, each).astype(np.int32),
                stack=rng.integers(0, STACKS, each).astype(np.int32),
            )
        )
    unit = DrawnUnit("step 1", 0, 100_000_000, Spans.joined(parts), [])
    names = [f"ampere_bf16_s16816gemm_{n}" for n in range(400)]
    return Drawing(lanes, names, [unit], {}, [], rng.integers(0, 400, (STACKS, 6)).astype(np.int32))


def main() -> None:
    """Make the page, open it, pan, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--frames", type=int, default=120)
    given = parser.parse_args()
    example = Path(__file__).resolve().parents[2] / "examples" / "ddp-gloo-4ranks"
    data = render_page(build_report([str(example)], ReportOptions()), made_drawing(given.spans))
    with tempfile.TemporaryDirectory() as folder, launch() as browser:
        path = Path(folder) / "page.html"
        path.write_bytes(data)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.as_uri())
        page.wait_for_function("document.getElementById('timeline').dataset.drawn > 0")
        paint_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        ready_ms = page.evaluate("performance.now()")
        times = sorted(page.evaluate(_PAN, given.frames))
    p95 = times[-(-95 * len(times) // 100) - 1]
    print(f"{given.spans:,} spans, {len(data) / 1e6:.1f} MB ({len(data) / given.spans:.0f} bytes a span)")
    print(f"first contentful paint {paint_ms:.0f} ms, timeline drawn within {ready_ms:.0f} ms")
    print(
        f"frames while panning: median {statistics.median(times):.1f} ms, P95 {p95:.1f} ms, largest {times[-1]:.1f} ms"
    )


if __name__ == "__main__":
    main()
