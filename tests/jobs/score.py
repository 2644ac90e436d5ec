"""Judges a report against what is true of the job: cause, rank, and cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.draw import Job

TOLERANCE = 0.05
TOLERANCE_NS = 50_000
NOT_A_WAIT = "gpu_work"
NO_FIGURE = ("profiler_start_skew", "fragmentation", "leak")
"""Causes that cost nothing which a period would show: they are to be found, not to be the long pole."""
NO_VERDICT = "unknown_incomplete_trace"
"""The report has to say so, and either makes it the long pole or names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a report did on one job.

    Attributes:
        true, found: The job's cause, and that of the report's long pole (or `none`).
        other_findings: Causes of all findings but `gpu_work`.
        cause_right, rank_right, cost_right: As far as each is to be judged; else true.
        error: Found cost over the nearest right one, less one; None where not judged.
    """

    seed: int
    kind: str
    true: str
    also: str
    found: str
    other_findings: tuple[str, ...]
    cause_right: bool
    rank_right: bool
    cost_right: bool
    error: float | None

    @property
    def right(self) -> bool:
        return self.cause_right and self.rank_right and self.cost_right


def judge(job: Job, document: dict[str, Any]) -> Verdict:
    """Compare a report document (REPORT-JSON) with what is true of its job."""
    truth = job.truth
    findings = document["findings"]
    long_pole = next((one for one in findings if one["id"] == document["long_pole"]), None)
    found = long_pole["cause"] if long_pole is not None else "none"
    others = tuple(one["cause"] for one in findings if one["cause"] != NOT_A_WAIT)
    named = long_pole
    if truth.cause == NOT_A_WAIT:
        cause_right = not others
    elif truth.cause in NO_FIGURE:
        named = next((one for one in findings if one["cause"] == truth.cause), None)
        cause_right = named is not None and found in (truth.cause, NOT_A_WAIT)
        found = truth.cause if cause_right else found
    elif truth.cause == NO_VERDICT:
        cause_right = NO_VERDICT in others and found in (NO_VERDICT, "none")
        found = truth.cause if cause_right else found
    else:
        cause_right = found == truth.cause
    rank_right = truth.culprits is None or (named is not None and set(named["ranks"]) == truth.culprits)
    cost_right, error = True, None
    if truth.graded:
        cost_right, error = _judge_cost(job, named if cause_right else None)
    return Verdict(
        seed=job.seed,
        kind=job.kind,
        true=truth.cause,
        also=truth.also,
        found=found,
        other_findings=others,
        cause_right=cause_right,
        rank_right=rank_right,
        cost_right=cost_right,
        error=error,
    )


def _judge_cost(job: Job, finding: dict[str, Any] | None) -> tuple[bool, float | None]:
    truth = job.truth
    if finding is None:
        return False, None
    cost = finding["cost_once_ns" if truth.statistic == "one_off" else "cost_ns_per_unit"]
    if not isinstance(cost, int | float):
        return False, None
    nearest = min(max(float(cost), truth.low_ns), truth.high_ns)
    off = abs(cost - nearest)
    return off <= max(TOLERANCE * nearest, TOLERANCE_NS), cost / nearest - 1.0 if nearest else None


def summary(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return shares: right among the jobs with a cause, findings among those without, and per kind of job."""
    wrong = [one for one in verdicts if one.true != NOT_A_WAIT]
    silent = [one for one in verdicts if one.true == NOT_A_WAIT]
    shares = {
        "right": _share([one.right for one in wrong]),
        "cause": _share([one.cause_right for one in wrong]),
        "false alarms": _share([bool(one.other_findings) for one in silent]),
    }
    for kind in ("single", "pair", "half", "healthy"):
        shares[kind] = _share([one.right for one in verdicts if one.kind == kind])
    return shares


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def by_cause(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table: how often cause, rank and cost were right, by true cause."""
    lines = ["| true cause | jobs | cause | rank | cost | all right |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for cause in sorted({one.true for one in verdicts}):
        mine = [one for one in verdicts if one.true == cause]
        counts = [
            sum(flags)
            for flags in zip(*[(v.cause_right, v.rank_right, v.cost_right, v.right) for v in mine], strict=True)
        ]
        lines.append(f"| `{cause}` | {len(mine)} | " + " | ".join(str(count) for count in counts) + " |")
    return "\n".join(lines)


def confusion(verdicts: Sequence[Verdict]) -> str:
    """Return the confusion matrix as a Markdown table: true causes down, found ones across; the diagonal in bold.

    A job without a cause counts as found right only where the report has no finding at all; else the column is that
    of its first finding.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for one in verdicts:
        silent = one.true == NOT_A_WAIT
        found = one.other_findings[0] if silent and one.other_findings else NOT_A_WAIT if silent else one.found
        counts[one.true, found] += 1
    truths = sorted({true for true, _ in counts})
    columns = truths + sorted({found for _, found in counts} - set(truths))
    numbers = {cause: place + 1 for place, cause in enumerate(columns)}
    lines = ["| true \\ found | " + " | ".join(str(numbers[column]) for column in columns) + " |"]
    lines.append("| --- |" + " ---: |" * len(columns))
    for true in truths:
        cells = []
        for column in columns:
            count = counts[true, column]
            cells.append("" if not count else f"**{count}**" if column == true else str(count))
        lines.append(f"| {numbers[true]} `{true}` | " + " | ".join(cells) + " |")
    rest = [f"{numbers[column]} `{column}`" for column in columns if column not in truths]
    if rest:
        lines += ["", "Found but never true: " + ", ".join(rest) + "."]
    return "\n".join(lines)
