"""Whether several runs are one job in several sizes, and what else tells them apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from longpole.report.scaling import Difference
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.document import Report
    from longpole.settings import Settings

_VERSIONS: Final = (
    ("torch_version", "PyTorch"),
    ("cuda_runtime_version", "CUDA"),
    ("hip_runtime_version", "HIP"),
    ("nccl_version", "NCCL"),
)
_NAMED: Final = 3
_NAME_CHARS: Final = 48
_NUMBERS: Final = re.compile(r"\d+")


def find_differences(runs: Sequence[tuple[str, Report]], settings: Settings) -> list[Difference]:
    """Return what tells runs apart beside their number of ranks.

    Args:
        runs: (label, report), the smallest run first; the others are compared with it.
        settings: `scaling_same_job_min_share` and `scaling_same_work_min_share`.
    """
    found: list[Difference] = []
    base_label, base = runs[0]
    for label, report in runs[1:]:
        pair = [base_label, label]
        found += _units(pair, base, report)
        found += _work(pair, base, report, settings)
        found += _devices(pair, base, report)
        found += _versions(pair, base, report)
    for label, report in runs:
        found += _record(label, report)
    found += _sizes(runs)
    return found


def world_of(report: Report) -> int:
    """Return how many ranks a run has: what its files say, else how many of them there are."""
    world, present = report.run.world_size, len(report.run.ranks_present)
    return max(world, present) if isinstance(world, int) else present


def _units(pair: list[str], base: Report, report: Report) -> list[Difference]:
    if base.unit.kind == report.unit.kind:
        return []
    says = f"other units of work: {pair[0]} counts by {base.unit.kind}, {pair[1]} by {report.unit.kind}"
    return [Difference("units", "void", pair, says)]


def _work(pair: list[str], base: Report, report: Report, settings: Settings) -> list[Difference]:
    """Compare what runs: kernels where devices were recorded, else operators.

    Another size picks other kernels for the same operator, so few common kernels make two jobs only where operators
    differ too.
    """
    operators = _operators(base), _operators(report)
    kernels = _kernels(base), _kernels(report)
    what, times = ("kernels", kernels) if all(kernels) else ("operators", operators)
    if not all(times):
        return []
    share = _common_share(*times)
    if share >= settings.scaling_same_work_min_share:
        return []
    same_operators = what == "kernels" and all(operators)
    same_operators = same_operators and _common_share(*operators) >= settings.scaling_same_work_min_share
    is_void = share < settings.scaling_same_job_min_share and not same_operators
    begin = "these are not one job" if is_void else "the runs do not do quite the same work"
    full_names = {_kernel_stem(row.name): row.name for r in (base, report) for e in r.ranks for row in e.top.kernels}
    only = [
        f"only {label} has {names}"
        for label, of, but in zip(pair, times, reversed(times), strict=True)
        if (names := _longest(of, but, full_names))
    ]
    says = f"{begin}: {share:.0%} of it is in {what} of common names; {'; '.join(only)}"
    return [Difference("kernels", "void" if is_void else "warn", pair, says)]


def _kernels(report: Report) -> dict[str, int]:
    """Return compute time by kernel; collectives change with the number of ranks, and tile sizes with the batch."""
    return _summed(
        (_kernel_stem(row.name), row.sum_ns)
        for entry in report.ranks
        for row in entry.top.kernels
        if row.object == "compute"
    )


def _kernel_stem(name: str) -> str:
    """Return a kernel's name without its arguments and numbers: `ampere_sgemm_128x64_nn` is `ampere_sgemm_#x#_nn`."""
    return _NUMBERS.sub("#", name.replace("(anonymous namespace)::", "").removeprefix("void ").partition("(")[0])


def _operators(report: Report) -> dict[str, int]:
    rows = [row for entry in report.ranks for row in entry.top.operators]
    on_device = _summed((row.name, row.device_ns) for row in rows)
    return on_device or _summed((row.name, row.sum_ns) for row in rows)


def _summed(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    times: dict[str, int] = {}
    for name, time_ns in rows:
        if time_ns > 0:
            times[name] = times.get(name, 0) + time_ns
    return times


def _common_share(one: dict[str, int], other: dict[str, int]) -> float:
    """Return which share of its time each run spends under names of both; the smaller of the two."""
    common = set(one) & set(other)
    return min(sum(times[name] for name in common) / sum(times.values()) for times in (one, other))


def _longest(of: dict[str, int], but: dict[str, int], full_names: dict[str, str]) -> str:
    own = [full_names.get(name, name) for name in sorted(of, key=lambda name: -of[name]) if name not in but]
    shown = dict.fromkeys(name if len(name) <= _NAME_CHARS else f"{name[:_NAME_CHARS]}…" for name in own)
    return ", ".join(list(shown)[:_NAMED])


def _devices(pair: list[str], base: Report, report: Report) -> list[Difference]:
    one, other = _models(base), _models(report)
    if one == other:
        return []
    says = f"other devices: {pair[0]} ran on {', '.join(sorted(one))}, {pair[1]} on {', '.join(sorted(other))}"
    return [Difference("devices", "warn", pair, says)]


def _models(report: Report) -> set[str]:
    """Return the models; a device without a name counts by its kind (`cuda`, `cpu`)."""
    return {row.device_name or row.device.partition(":")[0] for row in report.ranks}


def _versions(pair: list[str], base: Report, report: Report) -> list[Difference]:
    told: list[str] = []
    for key, name in _VERSIONS:
        one: Any = base.run.environment.get(key)
        other: Any = report.run.environment.get(key)
        if one is not None and other is not None and one != other:
            told.append(f"{name} {one} and {other}")
    return [Difference("versions", "note", pair, f"other versions: {'; '.join(told)}")] if told else []


def _record(label: str, report: Report) -> list[Difference]:
    """Say what limits a run's own figures."""
    found = []
    if report.unit.kind == "trace":
        says = (
            f"{label}: no steps are marked, so the whole record is one unit, however much it holds;"
            " name the marker with --step"
        )
        found.append(Difference("units", "void", [label], says))
    missing = world_of(report) - len(report.run.ranks_present)
    if missing > 0:
        says = f"{label}: {format_count(missing, 'rank')} of {world_of(report)} not recorded; means are over the others"
        found.append(Difference("ranks", "warn", [label], says))
    if not isinstance(report.run.world_size, int) and report.run.ranks_assumed and len(report.run.ranks_present) > 1:
        says = f"{label}: no file says its rank; its {len(report.run.ranks_present)} files are taken for as many ranks"
        found.append(Difference("ranks", "warn", [label], says))
    voids = [finding for finding in report.integrity if finding.severity == "void"]
    found += [Difference("record", "warn", [label], f"{label}: {finding.message}") for finding in voids[:_NAMED]]
    return found


def _sizes(runs: Sequence[tuple[str, Report]]) -> list[Difference]:
    by_size: dict[int, list[str]] = {}
    for label, report in runs:
        by_size.setdefault(world_of(report), []).append(label)
    return [
        Difference("ranks", "note", labels, f"{', '.join(labels)} have the same number of ranks, {size}")
        for size, labels in by_size.items()
        if len(labels) > 1
    ]
