"""Measure the example traces without Longpole: what a reader should find in them, from the standard library alone.

    python examples/check.py

Prints, for each rank, the mean step, the time in the data loader, the time in which an all-reduce ran on any thread and
the part of it in which the main thread ran no operator. These are the figures of the READMEs beside the traces.
"""

from __future__ import annotations

import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent
Span = tuple[int, int]


def to_ns(microseconds: Decimal | int) -> int:
    """Turn a time of the trace, in decimal microseconds, into whole nanoseconds."""
    return int(Decimal(microseconds) * 1000)


def union(spans: list[Span]) -> list[Span]:
    """Merge spans that touch or overlap.

    Args:
        spans: half-open, ns, in any order.

    Returns:
        Disjoint spans, ascending.
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length_ns(spans: list[Span]) -> int:
    """Add up the lengths of disjoint spans."""
    return sum(end - start for start, end in spans)


def clip(spans: list[Span], window: Span) -> list[Span]:
    """Keep what lies in a window."""
    inside = ((max(start, window[0]), min(end, window[1])) for start, end in spans)
    return [(start, end) for start, end in inside if start < end]


def read_events(path: Path) -> list[dict[str, Any]]:
    """Read the complete events of a trace, with exact decimal times."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file, parse_float=Decimal)
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def spans_of(events: list[dict[str, Any]]) -> list[Span]:
    """Give the spans of some events."""
    return [(to_ns(event["ts"]), to_ns(event["ts"]) + to_ns(event["dur"])) for event in events]


def measure(path: Path) -> dict[str, int]:
    """Measure one rank.

    Args:
        path: its trace.

    Returns:
        The number of steps, and sums over the time from the first step's start to the last one's end: `window_ns`,
        `loader_ns` (union of the loader's spans on the main thread), `operator_ns` (union of the operators on the main
        thread), `all_reduce_ns` (union over threads) and `all_reduce_alone_ns` (of it, where the main thread ran no
        operator and the loader was not at work).
    """
    events = read_events(path)
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    main = steps[0]["tid"]
    step_spans = spans_of(steps)
    window = (min(start for start, _ in step_spans), max(end for _, end in step_spans))

    def chosen(named: str, category: str, *, on_main: bool) -> list[Span]:
        found = [
            event
            for event in events
            if event.get("cat") == category
            and event["name"].startswith(named)
            and not event["name"].startswith("c10d::")
            and (event["tid"] == main or not on_main)
        ]
        return union(clip(spans_of(found), window))

    loader = chosen("enumerate(DataLoader)", "user_annotation", on_main=True)
    operators = chosen("", "cpu_op", on_main=True)
    collective = chosen("gloo:", "user_annotation", on_main=False)
    busy = union(loader + operators)
    return {
        "steps": len(steps),
        "window_ns": window[1] - window[0],
        "loader_ns": length_ns(loader),
        "operator_ns": length_ns(operators),
        "all_reduce_ns": length_ns(collective),
        "all_reduce_alone_ns": length_ns(union(busy + collective)) - length_ns(busy),
    }


COLUMNS = {
    "step": "window_ns",
    "loader": "loader_ns",
    "operators": "operator_ns",
    "all-reduce": "all_reduce_ns",
    "alone": "all_reduce_alone_ns",
}


def main() -> int:
    """Print one line a trace, in milliseconds per step."""
    sys.stdout.write(f"{'ms per step':40}{'steps':>7}{''.join(f'{title:>12}' for title in COLUMNS)}{'share':>9}\n")
    for path in sorted(EXAMPLES.glob("*/*.pt.trace.json.gz")):
        found = measure(path)
        per_step = "".join(f"{found[key] / found['steps'] / 1e6:12.1f}" for key in COLUMNS.values())
        share = found["loader_ns"] / found["window_ns"]
        sys.stdout.write(
            f"{path.parent.name}/{path.name:{39 - len(path.parent.name)}}{found['steps']:7}{per_step}{share:9.1%}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
