"""The tables of docs/concepts/how-good-are-predictions.md."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.predictions.scoring import (
    GOAL_PERIOD,
    GOAL_SAVING,
    GOAL_WORTHWHILE,
    Outcome,
    Summary,
    summarize,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.predictions.manifest import Manifest

NS_PER_MS = 1e6
MINUS = "−"


def render_tables(outcomes: Sequence[Outcome], manifest: Manifest, *, rules: str) -> str:
    """Render everything that is written into the page.

    Args:
        outcomes: one for each pair and recording before the change, at least one.
        manifest: of the recordings.
        rules: says whether the package's rules are those of before the recording.

    Returns:
        Markdown without blank lines around it.
    """
    first = first_of_each(outcomes)
    parts = [
        describe(first, outcomes, manifest, rules),
        "### In short",
        render_summary(first, outcomes),
        "### By change",
        render_changes(outcomes),
        "### Every pair",
        'Times in milliseconds; the recording before is the first one. "Spread" is how far the recordings after the '
        "change lie apart.",
        render_pairs(first),
    ]
    unanswered = [one for one in outcomes if one.answer.why_not]
    if unanswered:
        parts += ["### Without a prediction", render_unanswered(unanswered)]
    return "\n\n".join(parts)


def first_of_each(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return of every pair the outcome of the earliest round: fixed beforehand, so nobody picks."""
    found: dict[str, Outcome] = {}
    for one in outcomes:
        if one.pair not in found or one.round < found[one.pair].round:
            found[one.pair] = one
    return list(found.values())


def _times(counts: Sequence[int]) -> str:
    """Write how often, as one number where it is one."""
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def describe(first: Sequence[Outcome], outcomes: Sequence[Outcome], manifest: Manifest, rules: str) -> str:
    """Say in a paragraph what the tables rest on."""
    n_changes = len({one.change for one in first})
    targets = [len(one.targets_ns) for one in first]
    disturbed = sum(one.disturbed for one in manifest.recorded)
    spreads = sorted(one.target_spread for one in first)
    machine, versions = manifest.machine, manifest.versions
    return (
        f"{len(first)} pairs over {n_changes} changes, {len(outcomes)} predictions from as many recordings; every"
        f" target was recorded {_times(targets)} times. Recorded on {manifest.started[:10]}:"
        f" {machine['cores']} cores ({machine['processor']}), {machine['system']}, PyTorch {versions['torch']}, Python"
        f" {versions['python']}. The recordings of one target lie {percent(spreads[len(spreads) // 2])} apart in the"
        f" median, {percent(spreads[-1])} at most; {disturbed} of {len(manifest.recorded)} recordings were disturbed by"
        f" other programs. {rules}"
    )


def render_summary(first: Sequence[Outcome], outcomes: Sequence[Outcome]) -> str:
    """Render the goals beside what was reached, and the no-change predictor."""
    pairs, every = summarize(first), summarize(outcomes)
    if pairs is None or every is None:
        return "No prediction was made."
    rows = [
        ("predictions / asked for", "", f"{pairs.answered} / {pairs.asked}", f"{every.answered} / {every.asked}"),
        *(
            (name, goal, percent(getattr(pairs, field)), percent(getattr(every, field)))
            for name, goal, field in _SUMMARY_ROWS
        ),
        *(
            (f"*no change*: {name}", goal, percent(getattr(pairs, field)), percent(getattr(every, field)))
            for name, goal, field in _NO_CHANGE_ROWS
        ),
    ]
    header = ("what", "goal", f"first recording of each of {pairs.asked} pairs", f"all {every.asked} recordings")
    verdict = "loses" if is_beaten(pairs) else "**wins**"
    return (
        table(header, rows, right_from=1)
        + f"\n\nShares are of the predictions made. The predictor that foretells no change {verdict}."
    )


_SUMMARY_ROWS = (
    ("period within 15 %", f"{GOAL_PERIOD:.0%}", "period_within"),
    ("saving within 20 %", f"{GOAL_SAVING:.0%}", "saving_within"),
    ("saving within 20 %, or period in the printed interval", f"{GOAL_SAVING:.0%}", "saving_or_interval"),
    ("sign right", "100%", "sign_right"),
    ("error of the period, median", "", "error_median"),
    ("error of the period, P90", "", "error_p90"),
    ("error of the period, largest", "", "error_max"),
    ("bias: signed error of the period, median", "", "bias"),
    ("predicted too fast", "", "optimistic"),
    ("signed error of the saving, median", "", "saving_error_median"),
    ("saves at least 20 %", f"{GOAL_WORTHWHILE:.0%}", "worthwhile"),
)
_NO_CHANGE_ROWS = (
    ("period within 15 %", "", "no_change_within"),
    ("error of the period, median", "", "no_change_median"),
    ("error of the period, P90", "", "no_change_p90"),
)


def is_beaten(summary: Summary) -> bool:
    """Say whether the predictions beat the predictor that foretells no change, in the median and at P90."""
    return summary.error_median < summary.no_change_median and summary.error_p90 < summary.no_change_p90


def render_changes(outcomes: Sequence[Outcome]) -> str:
    """Render one row a change, over all its sizes and recordings."""
    rows = []
    for change, group in groupby(outcomes, key=lambda one: one.change):
        members = list(group)
        summary = summarize(members)
        if summary is None:
            rows.append((f"`{change}`", f"`{members[0].kind}`", f"0 / {len(members)}", *["–"] * 5))
            continue
        rows.append(
            (
                f"`{change}`",
                f"`{members[0].kind}`",
                f"{summary.answered} / {summary.asked}",
                percent(summary.bias),
                percent(summary.error_max),
                percent(summary.saving_error_median),
                percent(summary.saving_within),
                percent(summary.sign_right),
            )
        )
    header = (
        "change",
        "kind of what-if",
        "predicted",
        "period: median error",
        "largest",
        "saving: median error",
        "within 20 %",
        "sign right",
    )
    return table(header, rows, right_from=2)


def render_pairs(first: Sequence[Outcome]) -> str:
    """Render one row a pair."""
    rows = []
    for one in first:
        answer = one.answer
        rows.append(
            (
                f"`{one.pair}`",
                milliseconds(one.before_ns),
                milliseconds(one.target_ns),
                percent(one.target_spread),
                milliseconds(answer.predicted_ns),
                percent(one.period_error),
                milliseconds(one.saving_ns),
                milliseconds(answer.saving_ns),
                percent(one.saving_error),
                percent(answer.replay_error),
            )
        )
    header = (
        "pair",
        "before",
        "after",
        "spread",
        "predicted",
        "error",
        "saved",
        "predicted",
        "error",
        "replay error",
    )
    return table(header, rows, right_from=1)


def render_unanswered(unanswered: Sequence[Outcome]) -> str:
    """List the recordings from which nothing was predicted, with the reasons."""
    return table(
        ("pair", "recording", "why"),
        [(f"`{one.pair}`", str(one.round), one.answer.why_not.replace("|", "\\|")) for one in unanswered],
        right_from=9,
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right_from: int) -> str:
    """Render a Markdown table.

    Args:
        header: of the columns.
        rows: of cells.
        right_from: columns from here on are aligned to the right.

    Returns:
        Markdown.
    """
    marks = ["---:" if place >= right_from else "---" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, marks, *rows))


def percent(share: float | None) -> str:
    """Write a share with its sign where it is negative; a dash where there is none.

    Examples:
        >>> percent(-0.0734), percent(0.9), percent(None)
        ('−7.3 %', '90.0 %', '–')
    """
    if share is None or math.isnan(share):
        return "–"
    return f"{share * 100:.1f} %".replace("-", MINUS)


def milliseconds(duration_ns: int | None) -> str:
    """Write a time in milliseconds; a dash where there is none."""
    return "–" if duration_ns is None else f"{duration_ns / NS_PER_MS:.1f}".replace("-", MINUS)
