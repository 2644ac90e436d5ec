"""Show what was measured: the ratios and their targets first, then what they are made of."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.harness.process import Measured
    from benchmarks.harness.trial import Target, Trial

DIGITS = {"x": 2, "s": 2, "MB": 0}


def render_targets(targets: Iterable[Target]) -> str:
    """Render every figure beside its target; ratios come first.

    Args:
        targets: in any order.

    Returns:
        Lines.
    """
    lines = [f"{'':32}{'median':>10}  {'range':>17}{'n':>4}{'at most':>11}"]
    for target in sorted(targets, key=lambda target: target.unit != "x"):
        digits = DIGITS[target.unit]
        spread = "" if target.spread is None else f"{target.spread[0]:.{digits}f} to {target.spread[1]:.{digits}f}"
        verdict = "met" if target.met else "MISSED"
        lines.append(
            f"{target.says:32}{target.value:>10.{digits}f}  {spread:>17}{target.n:>4}"
            f"{target.limit:>8.{digits}f} {target.unit:2}  {verdict}"
        )
    return "\n".join(lines)


def render_runs(trials: Iterable[Trial]) -> str:
    """Render the medians of all runs.

    Args:
        trials: one a workload.

    Returns:
        Lines.
    """
    lines = [f"{'':32}{'wall s':>10}{'CPU s':>8}{'tree MB':>10}{'process MB':>12}{'MB/s':>8}{'s/M events':>12}"]
    for trial in trials:
        workload = trial.workload
        size = f"{workload.size_bytes / 1e6:.0f} MB, {trial.n_events / 1e6:.2f} M events"
        lines.append(f"{workload.name}: {workload.says}; {size}; device times {trial.figures}")
        hta = [trial.hta] if trial.hta is not None else []
        rows = {"longpole report": trial.ours, "json.load": trial.plain, "from the cache": trial.cached, "HTA": hta}
        lines += [_run_line(title, runs, trial) for title, runs in rows.items() if runs]
        lines += [f"  left out: {why}" for why in trial.skipped]
    return "\n".join(lines)


def _run_line(title: str, runs: list[Measured], trial: Trial) -> str:
    def median(of: Callable[[Measured], float]) -> float:
        return statistics.median(of(run) for run in runs)

    wall_s = median(lambda run: run.wall_s)
    per_million = f"{wall_s / trial.n_events * 1e6:12.2f}" if trial.n_events else f"{'':12}"
    return (
        f"  {title:30}{wall_s:10.2f}{median(lambda run: run.cpu_s):8.2f}"
        f"{median(lambda run: run.peak_tree_bytes) / 1e6:10.0f}{median(lambda run: run.peak_process_bytes) / 1e6:12.0f}"
        f"{trial.workload.size_bytes / 1e6 / wall_s:8.0f}{per_million}"
    )
