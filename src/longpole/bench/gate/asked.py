"""What a gate is asked: which figures, from which change on, and what counts as a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

TAIL_MIN_THRESHOLD: Final = 0.10
TAIL_MIN_UNITS: Final = 200
"""bench-io A10: a 95th percentile of fewer units, or gated more closely, flags what did not change."""

MIN_PAIRS: Final = 5
"""Fewer pairs have no interval worth the name (bench-io A7)."""

STAGE_PART: Final = 0.2
"""Of the probability of a false alarm, what stages may spend where one can fail the gate (docs/decisions/0028)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that can be gated.

    Attributes:
        name: As it is asked for.
        unit: `ns`, `per_s` or `bytes`.
        statistic: What is taken of each process.
        words: What sentences call it.
        higher_is_better: Its direction.
    """

    name: str
    unit: str
    statistic: str
    words: str
    higher_is_better: bool = False


METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("time", "ns", "median period of its units", "time"),
        Metric("throughput", "per_s", "items of all units over their time", "throughput", higher_is_better=True),
        Metric("latency", "ns", "median length of its units", "latency"),
        Metric("latency_p95", "ns", "95th percentile (nearest rank) of the length of its units", "P95 latency"),
        Metric("peak_memory", "bytes", "peak memory of the process", "peak memory"),
        Metric("collective", "ns", "mean exposed communication of its units", "exposed communication"),
    )
}
_METRIC: Final = re.compile(r"([a-z_0-9]+)(?:=(\d{1,3}(?:\.\d{1,6})?)\s*(%?))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked.

    Attributes:
        metrics: Name -> its own threshold as a share, None for the common one; at least one.
        threshold: The common threshold, as a share.
        threshold_given: Whether the user named it.
        proven: Whether the whole interval must lie beyond the threshold.
        allow: Differences that are wanted.
        critical: Stages whose regression always fails.
        min_contribution: Another stage's regression fails from this share of the period on.
        floors: Metric -> the smallest change that the noise of this machine lets be seen.
        run_spread: How much one run differs from the next where that cannot be seen, as a share.
    """

    metrics: Mapping[str, float | None] = field(default_factory=lambda: {"time": None})
    threshold: float = 0.03
    threshold_given: bool = False
    proven: bool = False
    allow: frozenset[str] = frozenset()
    critical: frozenset[str] = frozenset()
    min_contribution: float = 0.01
    floors: Mapping[str, float] = field(default_factory=dict)
    run_spread: float = 0.03

    def threshold_of(self, metric: str) -> tuple[float, str]:
        """Return the threshold of a figure and where it comes from: a noise floor raises it, nothing lowers it."""
        own = self.metrics[metric]
        asked = self.threshold if own is None else own
        if own is None and metric == "latency_p95":
            asked = max(asked, TAIL_MIN_THRESHOLD)
        floor = self.floors.get(metric, 0.0)
        if floor > asked:
            return floor, "calibration"
        return asked, "given" if own is not None or self.threshold_given else "default"


def parse_metrics(texts: list[str]) -> dict[str, float | None]:
    """Read which figures are gated, each with its own threshold where one is given.

    >>> parse_metrics(["time", "peak_memory=5%"])
    {'time': None, 'peak_memory': 0.05}

    Raises:
        UsageError: One is not known or given twice, a threshold is none, or a tail is gated too closely.
    """
    found: dict[str, float | None] = {}
    for text in texts or ["time"]:
        match = _METRIC.fullmatch(text.strip())
        if match is None or match[1] not in METRICS:
            msg = f"--metric {text}: expected one of {', '.join(METRICS)}, with a threshold such as time=5% if you like"
            raise UsageError(msg)
        name = match[1]
        share = float(match[2]) / (100 if match[3] else 1) if match[2] else None
        if share is not None and not 0 < share < 1:
            msg = f"--metric {text}: expected a percentage such as 5%, or a share such as 0.05; found {match[2]}"
            raise UsageError(msg)
        if name in found:
            msg = f"--metric {text}: {name} is given twice"
            raise UsageError(msg)
        if name == "latency_p95" and share is not None and share < TAIL_MIN_THRESHOLD:
            msg = (
                f"--metric {text}: a 95th percentile can be gated from {100 * TAIL_MIN_THRESHOLD:g} % on;"
                " more closely it flags what did not change"
            )
            raise UsageError(msg)
        found[name] = share
    return found
