"""Whether the change left results, quality and batch as they must be (DESIGN 3.11: `contract`)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from longpole.errors import UsageError
from longpole.records.run_record import Better, RecordMetric
from longpole.records.verdict import ContractItem
from longpole.stats.intervals import unpaired_interval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.advice.verify.differences import Comparison
    from longpole.records.run_record import RunRecord

_BATCH: Final = ("dtype", "sampler", "length_distribution")
_FORM: Final = '[{"name": "loss", "before": 2.31, "after": [2.30, 2.32], "better": "lower", "tolerance": 0.02}]'
Status = Literal["held", "broken", "unsettled", "unknown"]


class Metric(msgspec.Struct, forbid_unknown_fields=True):
    """A measure of quality on both sides, as a user's file has it.

    Attributes:
        name: What is measured.
        before: One value, or several repetitions.
        after: The same.
        better: `higher`, `lower`, or `equal` where it must stay what it is.
        tolerance: By how much it may become worse.
        relative: The tolerance is a share of the value before.
    """

    name: str
    before: float | list[float]
    after: float | list[float]
    better: Better = "lower"
    tolerance: float = 0.0
    relative: bool = False


def read_metrics(path: Path) -> list[Metric]:
    """Read measures of quality from a JSON file: a list, or an object with the key `metrics`.

    Raises:
        UsageError: It cannot be read, is no JSON, or a field is wrong: file and field are named.
    """
    try:
        data = path.read_bytes()
        document = json.loads(data)
        inner = document.get("metrics") if isinstance(document, dict) else document
        metrics = msgspec.convert(inner, list[Metric])
    except OSError as error:
        msg = f"--metric {path}: cannot be read: {error.strerror}; expected a JSON file such as {_FORM}"
        raise UsageError(msg) from None
    except (ValueError, RecursionError) as error:
        msg = f"--metric {path}: expected JSON such as {_FORM}; found: {error}"
        raise UsageError(msg) from None
    for place, metric in enumerate(metrics):
        values = [*_values(metric.before), *_values(metric.after)]
        empty = not _values(metric.before) or not _values(metric.after)
        if empty or not all(map(math.isfinite, values)) or not 0 <= metric.tolerance < math.inf:
            msg = (
                f"--metric {path}: $[{place}] ({metric.name}): expected at least one finite number before and after,"
                " and a tolerance of at least 0"
            )
            raise UsageError(msg)
    return metrics


def check_contract(comparison: Comparison, metrics: Sequence[Metric]) -> list[ContractItem]:
    """Check what must hold on the after side.

    Args:
        comparison: The sides.
        metrics: Quality, beside what the records hold.
    """
    found = [_judge_metric(metric) for metric in (*metrics, *_recorded_metrics(comparison))]
    found += _metrics_missing(comparison)
    found += _checks(comparison)
    found += _outputs(comparison)
    found += _batch(comparison)
    return found


def _values(value: float | list[float]) -> list[float]:
    return value if isinstance(value, list) else [value]


def _recorded_metrics(comparison: Comparison) -> list[Metric]:
    """Return the metrics that records of both sides hold, their runs' values joined."""
    sides = [_joined(side.runs) for side in (comparison.before, comparison.after)]
    found = []
    for name in sides[0].keys() & sides[1].keys():
        one, other = sides[0][name], sides[1][name]
        tolerance = max(metric.tolerance for metric in one)
        first = one[0]
        found.append(
            Metric(
                name,
                [value for metric in one for value in metric.values],
                [value for metric in other for value in metric.values],
                first.better,
                tolerance,
                first.relative,
            )
        )
    return sorted(found, key=lambda metric: metric.name)


def _metrics_missing(comparison: Comparison) -> list[ContractItem]:
    """Say which measures of quality the after side lacks."""
    before, after = (_joined(side.runs) for side in (comparison.before, comparison.after))
    return [
        ContractItem("metric", name, "unknown", "", "", f"{name} was not measured after the change")
        for name in before
        if name not in after
    ]


def _joined(runs: Sequence[RunRecord]) -> dict[str, list[RecordMetric]]:
    joined: dict[str, list[RecordMetric]] = {}
    for run in runs:
        for metric in run.correctness.metrics:
            joined.setdefault(metric.name, []).append(metric)
    return joined


def _judge_metric(metric: Metric) -> ContractItem:
    before, after = _values(metric.before), _values(metric.after)
    means = sum(before) / len(before), sum(after) / len(after)
    allowed = metric.tolerance * abs(means[0]) if metric.relative else metric.tolerance
    change = means[1] - means[0]
    worst = _worsening(metric, before, after, change)
    status = _status(worst, allowed)
    # Written as decimals, 0.1 + 0.2 exceeds 0.3; a tolerance is not meant that closely.
    texts = f"{means[0]:.6g}", f"{means[1]:.6g}"
    words = {
        "held": f"{metric.name} held: {texts[0]} before, {texts[1]} after",
        "broken": f"{metric.name} is worse by {worst[1]:.4g} (allowed: {allowed:.4g}): {texts[0]} → {texts[1]}",
        "unsettled": f"{metric.name} may be worse by more than {allowed:.4g}: {texts[0]} → {texts[1]}",
    }
    return ContractItem("metric", metric.name, status, *texts, words[status])


def _worsening(
    metric: Metric, before: Sequence[float], after: Sequence[float], change: float
) -> tuple[float, float, float]:
    """Return by how much a metric is worse: the least, the estimate, the most."""
    low = high = change
    if min(len(before), len(after)) > 1:
        found = unpaired_interval(before, after)
        low, high = found.low, found.high
    if metric.better == "lower":
        return low, change, high
    if metric.better == "higher":
        return -high, -change, -low
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return least, abs(change), max(abs(low), abs(high))


def _status(worst: tuple[float, float, float], allowed: float) -> Status:
    least, estimate, most = worst
    slack = allowed + 1e-9 * max(abs(allowed), abs(estimate))
    if most <= slack:
        return "held"
    return "broken" if least > slack else "unsettled"


def _checks(comparison: Comparison) -> list[ContractItem]:
    """Judge checks: one that fails after is broken, also where it failed before; one not run after is not known."""
    states = [_check_states(side.runs) for side in (comparison.before, comparison.after)]
    found = []
    for name in dict.fromkeys([*states[0], *states[1]]):
        before, after = states[0].get(name, ""), states[1].get(name, "")
        if after == "failed":
            status, says = "broken", f"{name} fails after the change"
            says += ", as it did before" if before == "failed" else ""
        elif after == "passed":
            status, says = "held", f"{name} passes"
        else:
            status, says = "unknown", f"{name} was not run after the change"
            if not before or before == "not_run":
                continue
        found.append(ContractItem("check", name, status, before, after, says))
    return found


def _check_states(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return check -> its status over the runs: failed where one fails."""
    states: dict[str, str] = {}
    rank = {"passed": 0, "not_run": 1, "failed": 2}
    for run in runs:
        for check in run.correctness.checks:
            if check.name not in states or rank[check.status] > rank[states[check.name]]:
                states[check.name] = check.status
    return states


def _outputs(comparison: Comparison) -> list[ContractItem]:
    """Fingerprints of results must be the same on both sides."""
    sides = [_output_sets(side.runs) for side in (comparison.before, comparison.after)]
    found = []
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = sides[0].get(name, set()), sides[1].get(name, set())
        texts = ", ".join(sorted(one)), ", ".join(sorted(other))
        if not other:
            found.append(ContractItem("output", name, "unknown", *texts, f"output {name} was not recorded after"))
        elif len(one) != 1:
            continue  # it differs between runs without any change, so it tells nothing
        elif one == other:
            found.append(ContractItem("output", name, "held", *texts, f"output {name} is the same"))
        else:
            says = f"output {name} differs: {texts[0]} before, {texts[1]} after"
            found.append(ContractItem("output", name, "broken", *texts, says))
    return found


def _output_sets(runs: Sequence[RunRecord]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.correctness.outputs.items():
            found.setdefault(name, set()).add(value)
    return found


def _batch(comparison: Comparison) -> list[ContractItem]:
    """Compare what is processed, and how: it must stay the same where both sides declare it."""
    one, other = comparison.before.runs[0].contract, comparison.after.runs[0].contract
    found = []
    for key in _BATCH:
        before, after = getattr(one, key), getattr(other, key)
        if before is None or after is None or before == after:
            continue
        texts = _short(before), _short(after)
        words = key.replace("_", " ")
        if key in comparison.allowed:
            says = f"{words} is the change: {texts[0]} before, {texts[1]} after"
            found.append(ContractItem("batch", key, "held", *texts, says))
        else:
            says = f"{words} changed: {texts[0]} before, {texts[1]} after; if that is the change, say --allow {key}"
            found.append(ContractItem("batch", key, "broken", *texts, says))
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= 80 else text[:79] + "…"
