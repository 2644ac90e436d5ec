"""The parts of the page below the picture: why nothing ran, the longest gaps with stacks, and what ran longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.page.ledger import label_of, mean_units, row_of_pole
from longpole.report.page.markup import Figure, section, share, table, text, time, without_place
from longpole.units import format_bytes

if TYPE_CHECKING:
    from longpole.records.tables import GapRow, KernelRow
    from longpole.report.document import RankEntry, Report

IDLE: Final = Figure(
    "idle",
    "Why nothing ran",
    "Every instant in which a device ran nothing has one reason: what the launching thread did up to the launch, and"
    " what lay between launch and start after it. A wait is charged to what is waited for. The longest gaps are those"
    " of the rank that the long pole is on, else of the first.",
    "docs/concepts/idle-reasons.md",
)
WORK: Final = Figure(
    "work",
    "What ran longest",
    "Device spans by name over the units of one rank: the union of their times, so that spans that overlap count once.",
    "docs/concepts/ledger.md",
)
_GAPS_MAX: Final = 8
_KERNELS_MAX: Final = 12
_FRAMES_MAX: Final = 14


def render_idle(report: Report) -> str:
    """Return the reasons of idle time, and the longest gaps of the row that matters most."""
    whole = sum(report.ledger.idle_ns.values())
    if not whole:
        return ""
    wall_ns = report.ledger.wall_ns
    ordered = sorted(report.ledger.idle_ns.items(), key=lambda item: -item[1])
    rows = [
        [f"<code>{text(name)}</code>", time(ns), share(ns / wall_ns if wall_ns else None)] for name, ns in ordered if ns
    ]
    reasons = table(["reason", "mean of a unit", "share"], rows, shape="narrow")
    entry = row_of_pole(report)
    return section(IDLE, reasons, _gaps(entry) if entry is not None else "")


def _gaps(entry: RankEntry) -> str:
    rows = [
        [
            _opened(one),
            f"<code>{text(one.reason)}</code>",
            time(one.dur_ns),
            text(one.unit, 40),
            text(one.closed_by, 60),
        ]
        for one in entry.top.gaps[:_GAPS_MAX]
    ]
    if not rows:
        return ""
    listed = table(["charged with it", "reason", "long", "unit", "ended by"], rows)
    return f"<h3>Longest gaps of {text(label_of(entry))}</h3>{listed}"


def _opened(one: GapRow) -> str:
    """Return what a gap is charged to, with what was open there, the outermost first, behind a fold."""
    frames = one.stack if len(one.stack) <= _FRAMES_MAX else ["…", *one.stack[-_FRAMES_MAX:]]
    if len(frames) < 2:
        return text(one.name, 120)
    lines = "<br>".join(text(without_place(frame), 160) for frame in frames)
    return f"<details><summary>{text(one.name, 120)}</summary><p class=note>{lines}</p></details>"


def render_work(report: Report) -> str:
    """Return the kernels with most time, the stages of a unit, and the most memory that was held."""
    entry = row_of_pole(report)
    if entry is None:
        return ""
    kernels = [_kernel(one) for one in entry.top.kernels[:_KERNELS_MAX]]
    stages = _stages(entry)
    parts = [
        table(["device span", "count", "mean", "together", "of busy time"], kernels) if kernels else "",
        "<h3>Stages of a unit</h3>" + table(["stage", "mean of a unit", "device busy"], stages, shape="narrow")
        if len(stages) > 1
        else "",
        _memory(report),
    ]
    if not any(parts):
        return ""
    return section(WORK, *parts, open_text=f"<p>{text(label_of(entry))}</p>")


def _stages(entry: RankEntry) -> list[list[str]]:
    """Return what each stage took of a steady unit, in the mean."""
    units = mean_units(entry)
    rows = []
    for name in dict.fromkeys(name for unit in units for name in unit.stages):
        found = [unit.stages[name] for unit in units if name in unit.stages]
        wall_ns = sum(one.wall_ns for one in found)
        if wall_ns:
            busy = share(sum(one.busy_ns for one in found) / wall_ns)
            rows.append([text(name), time(wall_ns // len(units)), busy])
    return rows


def _kernel(one: KernelRow) -> list[str]:
    name = f"{text(one.name, 110)}<br><span class=faint>{text(one.object)}</span>"
    return [name, f"{one.count:,}", time(one.mean_ns), time(one.union_ns), share(one.share)]


def _memory(report: Report) -> str:
    found = report.memory
    if isinstance(found, Unknown):
        return ""
    of = f" of {format_bytes(found.capacity_bytes)}" if isinstance(found.capacity_bytes, int) else ""
    part = f" ({share(found.peak_share)})" if isinstance(found.peak_share, float) else ""
    held = f"{format_bytes(found.peak_allocated_bytes)}{of}{part}"
    return f"<h3>Memory</h3><p>At its peak {text(found.memory)} of rank {found.rank} held {held}.</p>"
