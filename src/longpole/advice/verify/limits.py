"""Limits on the after side: reading them, the figures that they limit, and whether they hold."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.errors import UsageError
from longpole.records.ledger import Unknown
from longpole.records.verdict import Limit, RunSpread, SideFigure
from longpole.stats import median_ns, percentile_ns
from longpole.units import NS_PER_MS, NS_PER_S, format_bytes, parse_bytes, parse_ns, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.advice.verify.differences import Comparison
    from longpole.advice.verify.sides import Side
    from longpole.settings import Settings

RELATIONS: Final = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
_LIMIT: Final = re.compile(r"\s*([A-Za-z][\w.:-]{0,63})\s*(<=|>=|<|>|==|=|≤|≥)\s*([^\s<>=≤≥].*?)\s*", re.DOTALL)
_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d)?)_ms")
_EXAMPLES: Final = "'p99_ms<=200', 'peak_bytes<=80e9', 'peak_bytes<=80GB', 'gpu_s_per_item<=0.02'"
FIGURES: Final = (
    "median_ms",
    "mean_ms",
    "p95_ms",
    "p95_over_median",
    "cv",
    "items_per_s",
    "gpu_s_per_item",
    "peak_bytes",
)
"""What is known of every record that has units; any percentile is written like `p99_ms`."""


@dataclass(frozen=True, slots=True)
class LimitGiven:
    """A limit as it was read.

    Attributes:
        text: As it was given.
        figure: What is limited.
        relation: One of `RELATIONS`.
        value: The limit, in the figure's own unit.
    """

    text: str
    figure: str
    relation: str
    value: float


def parse_limit(text: str) -> LimitGiven:
    """Read a limit.

    >>> parse_limit("peak_bytes <= 80GB").value
    80000000000.0

    Raises:
        UsageError: The figure, the relation or the number is wrong; the message says which.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        what = (
            "no relation (<=, <, >=, >)" if not re.search(r"[<>=≤≥]", text) else "no figure before, or number behind it"
        )
        msg = f"--limit {text!r}: expected FIGURE, a relation and a number, such as {_EXAMPLES}; found {what}"
        raise UsageError(msg)
    figure, relation, number = match.groups()
    relation = {"≤": "<=", "≥": ">="}.get(relation, relation)
    if relation not in RELATIONS:
        msg = f"--limit {text!r}: expected <=, <, >= or >; found {relation!r}"
        raise UsageError(msg)
    value = _number(figure, number)
    if value is None:
        msg = f"--limit {text!r}: expected a number behind {relation}, such as in {_EXAMPLES}; found {number!r}"
        raise UsageError(msg)
    return LimitGiven(text.strip(), figure, relation, value)


def _number(figure: str, text: str) -> float | None:
    """Read a number; of bytes and times also one with its unit."""
    try:
        value = float(text)
    except ValueError:
        size = parse_bytes(text) if figure.endswith("bytes") else None
        time_ns = parse_ns(text) if figure.endswith("_ms") else None
        if size is not None:
            return float(size)
        return to_ms(time_ns) if time_ns is not None else None
    return value if np.isfinite(value) else None


def judge_limits(comparison: Comparison, limits: Sequence[LimitGiven], settings: Settings) -> list[Limit]:
    """Say which limits the after side keeps, and whether it came closer to them or further away.

    Args:
        comparison: The sides.
        limits: What was asked for.
        settings: `run_spread_share`, within which a figure stays the same.
    """
    return [_judge(comparison, limit, settings) for limit in limits]


def _judge(comparison: Comparison, given: LimitGiven, settings: Settings) -> Limit:
    before, after = (figure_of(side, given.figure, settings) for side in (comparison.before, comparison.after))
    lower_is_better = given.relation.startswith("<")
    trend = _trend(before, after, settings.run_spread_share, lower_is_better=lower_is_better)
    if isinstance(after, Unknown):
        status, says = "unknown", f"{given.figure} is not known after: {after.unknown}"
    else:
        holds = RELATIONS[given.relation](after, given.value)
        status = "met" if holds else "broken"
        was = "" if isinstance(before, Unknown) else f", before {show(given.figure, before)}"
        says = f"{given.text}: {'holds' if holds else 'is broken'} with {show(given.figure, after)}{was}"
    return Limit(given.text, given.figure, given.relation, given.value, before, after, status, trend, says)


def _trend(before: float | Unknown, after: float | Unknown, spread: float, *, lower_is_better: bool) -> str:
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return "unknown"
    if abs(after - before) <= spread * abs(before):
        return "same"
    return "better" if (after < before) == lower_is_better else "worse"


def figure_of(side: Side, figure: str, settings: Settings) -> float | Unknown:
    """Return a figure of a side: worked out from its units where it can be, else what the records hold.

    Percentiles are over the units of all runs; of what records hold, the largest over the runs counts.
    """
    recorded = [run.limits.get(figure) for run in side.runs]
    if all(isinstance(value, int | float) for value in recorded):
        return float(max(value for value in recorded if isinstance(value, int | float)))
    unknown = next((value for value in recorded if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    worked_out = _worked_out(side, figure, settings)
    if worked_out is not None:
        return worked_out
    known = ", ".join(FIGURES)
    return Unknown(f"the records hold no figure {figure!r} (known without it: {known}, p99_ms and the like)", [figure])


def _worked_out(side: Side, figure: str, settings: Settings) -> float | Unknown | None:
    periods = side.pooled_ns()
    if not periods:
        return Unknown("no unit has a period", ["units with a period"])
    percentile = _PERCENTILE.fullmatch(figure)
    if percentile is not None:
        return _percentile_ms(periods, float(percentile[1]) / 100, settings)
    of_units: dict[str, Callable[[], float | Unknown]] = {
        "median_ms": lambda: to_ms(median_ns(periods)),
        "mean_ms": lambda: float(np.mean(periods)) / NS_PER_MS,
        "cv": lambda: spread_of(side, settings).cv,
        "p95_over_median": lambda: spread_of(side, settings).p95_over_median,
        "items_per_s": lambda: _per_item(side, figure),
        "gpu_s_per_item": lambda: _per_item(side, figure),
        "peak_bytes": lambda: Unknown("peak memory was not recorded", ["peak_bytes"]),
    }
    return of_units[figure]() if figure in of_units else None


def _percentile_ms(periods: Sequence[int], share: float, settings: Settings) -> float | Unknown:
    """Return a percentile, from as many samples on as leave one beyond it; for the 95th the setting says how many."""
    if not 0 < share < 1:
        return Unknown(f"there is no percentile {100 * share:g}", [])
    least = max(round(1 / (1 - share)), settings.p95_min_count if share >= 0.95 else 1)
    if len(periods) < least:
        return Unknown(f"a percentile {100 * share:g} needs {least} units, there are {len(periods)}", ["more units"])
    return to_ms(percentile_ns(periods, share))


def _per_item(side: Side, figure: str) -> float | Unknown:
    if isinstance(side.items, Unknown):
        return Unknown(f"items are not known: {side.items.unknown}", ["items per unit"])
    seconds = float(np.median([_run_s_per_item(side, place) for place in range(len(side.runs))]))
    if figure == "items_per_s":
        return 1 / seconds
    devices = side.runs[0].devices()
    return devices if isinstance(devices, Unknown) else seconds * devices


def _run_s_per_item(side: Side, place: int) -> float:
    run = side.runs[place]
    periods, items = 0, 0.0
    assert isinstance(side.items, float)
    for unit in run.counted():
        own = run.items_of(unit)
        items += own if isinstance(own, int) else side.items
        periods += unit.period_ns if isinstance(unit.period_ns, int) else 0
    return periods / items / NS_PER_S


def spread_of(side: Side, settings: Settings) -> RunSpread:
    """Say how much the units of a side differ.

    Args:
        side: The runs.
        settings: `p95_min_count`.
    """
    periods = side.pooled_ns()
    n = len(periods)
    if n == 0:
        none = Unknown("no unit has a period", [])
        return RunSpread(none, none, none, none, 0)
    median = median_ns(periods)
    few = Unknown(f"n < {settings.p95_min_count}", [])
    p95: int | Unknown = percentile_ns(periods, 0.95) if n >= settings.p95_min_count else few
    cv: float | Unknown = Unknown("one unit", [])
    if n > 1:
        cv = float(np.std(periods, ddof=1) / np.mean(periods))
    return RunSpread(median, p95, p95 / median if isinstance(p95, int) and median else few, cv, n)


def side_figures(comparison: Comparison, settings: Settings) -> list[SideFigure]:
    """Return what a change may cost beside time, whether or not it is limited."""
    found = []
    for figure in ("p95_over_median", "cv", "peak_bytes", "gpu_s_per_item"):
        before, after = (figure_of(side, figure, settings) for side in (comparison.before, comparison.after))
        says = ""
        worse = not isinstance(before, Unknown) and not isinstance(after, Unknown)
        if worse and _grew(figure, float(before), float(after), settings):  # type: ignore[arg-type]  # numbers, see above
            says = f"{WORDS[figure]} rose from {show(figure, before)} to {show(figure, after)}"  # type: ignore[arg-type]
        found.append(SideFigure(figure, before, after, says))
    return found


def _grew(figure: str, before: float, after: float, settings: Settings) -> bool:
    if figure == "cv":  # of few units it is hardly known: a doubling above the spread between runs is worth a line
        return after > 2 * before and after - before > settings.run_spread_share
    return after > before * (1 + settings.run_spread_share)


WORDS: Final = {
    "p95_over_median": "the 95th percentile over the median",
    "cv": "the spread of the units (standard deviation over mean)",
    "peak_bytes": "peak memory",
    "gpu_s_per_item": "device time per item",
}


def show(figure: str, value: float) -> str:
    """Write a figure with its unit."""
    if figure.endswith("bytes"):
        return format_bytes(value)
    if figure.endswith("_ms"):
        return f"{value:.4g} ms"
    if figure == "cv":
        return f"{100 * value:.2g} %"
    return f"{value:.4g} s" if figure == "gpu_s_per_item" else f"{value:.4g}"
