"""The page of `longpole bench io --dry-run`: what would be measured, what would not, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.units import format_bytes, format_count, write_binary_bytes

if TYPE_CHECKING:
    from longpole.bench.io.plan import Plan, PlannedCase
    from longpole.bench.io.preflight import Preflight
    from longpole.bench.io.storage import Storage

_NAME = 26


def render_plan(plan: Plan, preflight: Preflight, storage: Storage, *, width: int, color: bool) -> str:
    """Write the plan.

    Args:
        plan: What would be measured.
        preflight: What would not, and what else should be known.
        storage: What the folder lies on.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.
    """
    style = Style(max(width, NARROWEST), color)
    workload = plan.workload
    sizes = ", ".join(write_binary_bytes(size) for size in workload.sizes)
    lines = [style.title("PLAN", "nothing was measured")]
    facts = [
        f"sizes {sizes}",
        f"decisions look at {write_binary_bytes(workload.size_bytes)}: {workload.warmups} warm-ups, "
        f"{workload.repeats} repeats, seed {workload.seed}",
        f"{format_count(len(plan.cases), 'case')}, {format_count(sum(case.samples for case in plan.cases), 'sample')}, "
        f"in {workload.rounds} rounds of random order",
        f"about {_span(plan.estimate_s())}; {format_bytes(plan.disk_bytes())} on the disk at once, "
        f"{format_bytes(plan.written_bytes())} written in all, {format_bytes(plan.memory_bytes())} of memory",
        f"{storage.filesystem or 'unknown file system'} on {storage.device or storage.source or 'no device'}, "
        f"{format_bytes(storage.free_bytes)} free",
        *preflight.notes,
    ]
    for fact in facts:
        lines += wrap(escape(fact), style.width, first="  ", rest="    ")
    lines += ["", style.title("PATHS")]
    rows: dict[str, list[PlannedCase]] = {}
    for case in plan.cases:
        rows.setdefault(case.row.name, []).append(case)
    for name, cases in rows.items():
        samples = sum(case.samples for case in cases)
        text = f"{escape(cases[0].row.says)}; {format_count(len(cases), 'size')}, {format_count(samples, 'sample')}"
        lines += wrap(text, style.width, first=f"  {pad(name, _NAME)}", rest=" " * (_NAME + 4))
    if preflight.skipped:
        lines += ["", style.title("NOT MEASURED")]
        reasons: dict[str, list[str]] = {}
        for name, reason in preflight.skipped:
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            lines += wrap(escape(f"{reason}: {', '.join(names)}"), style.width, first="  ", rest="    ")
    return "\n".join(lines) + "\n"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
