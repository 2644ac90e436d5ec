"""Records in the Bencher Metric Format: benchmark -> measure -> value, with the ends of its interval.

`latency` is nanoseconds and `throughput` operations a second, as the built-in measures of that name are; `peak-memory`
is bytes, and every stage has a measure of its own, in nanoseconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.records.strict_json import encodable
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.bench.summary import Summary
    from longpole.stats.middle import Middle

_NAME_MAX: Final = 1024
_SLUG_MAX: Final = 64
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")


def render_bencher(summaries: Iterable[tuple[str, Summary]]) -> bytes:
    """Return the document as JSON with a line end.

    Args:
        summaries: (name of the benchmark, what it measured), names unlike one another.
    """
    document = {name[:_NAME_MAX]: _measures(summary) for name, summary in summaries}
    return msgspec.json.format(msgspec.json.encode(encodable(document)), indent=1) + b"\n"


def _measures(summary: Summary) -> dict[str, Any]:
    found: dict[str, Any] = {"latency": _metric(summary.time_ns)}
    if summary.items_per_s is not None:
        rate: dict[str, float] = {"value": summary.items_per_s}
        if summary.time_ns.low is not None and summary.time_ns.high is not None and summary.time_ns.low > 0:
            rate |= {"lower_value": NS_PER_S / summary.time_ns.high, "upper_value": NS_PER_S / summary.time_ns.low}
        found["throughput"] = rate
    if summary.peak_bytes is not None:
        found["peak-memory"] = {"value": float(summary.peak_bytes)}
    found |= {_slug(f"stage {name}"): _metric(middle) for name, middle in summary.stages.items()}
    return found


def _metric(middle: Middle) -> dict[str, float]:
    found = {"value": middle.value}
    if middle.low is not None and middle.high is not None:
        found |= {"lower_value": middle.low, "upper_value": middle.high}
    return found


def _slug(text: str) -> str:
    return _NOT_SLUG.sub("-", text.lower()).strip("-")[:_SLUG_MAX]
