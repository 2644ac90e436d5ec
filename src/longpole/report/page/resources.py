"""The part of the page on what the work asked of the devices: three indicators, and the resource-time matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.report.page.markup import Figure, section, share, table, text, time
from longpole.report.resource_words import at_least, covered_words

if TYPE_CHECKING:
    from longpole.records.resources import Cell, Contention, Indicator, MatrixRow, Resources
    from longpole.report.document import Report

RESOURCES: Final = Figure(
    "resources",
    "What the work asks of the device",
    "Demands come from recorded shapes. A share is the part of a row's own time that a column needs for it at its peak:"
    " near 100 % it is the bound, and above it the demand or the peak cannot be right. Indicators are the same for"
    " all work of a stage. Where less than half of the compute time is covered, no class is named.",
    "docs/reference/resources.md",
)
_ROWS_MAX: Final = 20
_PAIRS_MAX: Final = 8


def render_resources(report: Report) -> str:
    """Return the indicators and the matrix; empty where the record has no device to ask."""
    found = report.resources
    if isinstance(found, Unknown):
        return section(RESOURCES, f"<p class=unknown>Not known: {text(found.unknown)}</p>")
    name = text(found.device_name or "device")
    covered = f"{name}: FLOPs or bytes are known of {covered_words(found)}."
    return section(
        RESOURCES, f"<p>{covered}</p>", _indicators(found), _matrix(found), _uncounted(found), _contention(found)
    )


def _indicators(found: Resources) -> str:
    rows = [
        [
            text(one.stage),
            share(one.busy_share),
            _indicator(one.compute),
            _indicator(one.memory),
            _indicator(one.link),
            share(one.covered_share),
            _named(one.bound_class),
        ]
        for one in found.indicators
    ]
    if not rows:
        return ""
    head = ["stage", "device busy", "compute", "memory", "link", "covered", "bound by"]
    return f"<h3>Three indicators</h3>{table(head, rows, shape='wide')}"


def _indicator(one: Indicator) -> str:
    """Return a share of the peak in theory, and of what was measured to be achievable."""
    if one.achievable_share is UNSET:
        return share(one.share)
    return f"{share(one.share)} <span class=faint>({share(one.achievable_share)} of achievable)</span>"


def _matrix(found: Resources) -> str:
    columns = [one.name for one in found.columns if not one.empty_because]
    rows = [_row(one, columns) for one in found.rows[:_ROWS_MAX]]
    if not rows:
        return ""
    left = len(found.rows) - _ROWS_MAX
    more = f"<p class=note>{left} shorter rows are in --json and --csv.</p>" if left > 0 else ""
    head = ["operator", "of compute", *(name.replace("_", "-") for name in columns), "bound by", "then by"]
    return f"<h3>Resource–time matrix</h3>{table(head, rows, shape='wide')}{more}"


def _row(one: MatrixRow, columns: list[str]) -> list[str]:
    kind = " ".join(part for part in (one.family, one.stage, one.dtype) if part)
    bound = f"<b>{_named(one.bound_by)}</b>" if isinstance(one.bound_by, str) else _named(one.bound_by)
    return [
        f"{text(one.name, 60)}<br><span class=faint>{text(kind)} · {one.calls:,} calls · {time(one.device_ns)}</span>",
        share(one.time_share),
        *(_cell(one.cells.get(name)) for name in columns),
        bound,
        text(one.next_bound) if isinstance(one.next_bound, str) else "–",
    ]


def _named(value: object) -> str:
    """Return what a column or class is called, or that none is known."""
    return text(value) if isinstance(value, str) else share(value)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    if isinstance(cell.demand, Unknown):
        return share(cell.demand)
    return f"{at_least(cell)}{share(cell.share)}" if cell.share is not UNSET else "·"


def _uncounted(found: Resources) -> str:
    rows = [
        [text(one.name, 60), text(one.why), time(one.device_ns), share(one.time_share)]
        for one in found.uncounted[:_ROWS_MAX]
    ]
    if not rows:
        return ""
    listed = table(["kernel or operator", "why", "time", "of compute"], rows, numbers_from=2)
    return f"<details><summary>What is missing from it, and why</summary>{listed}</details>"


def _contention(found: Resources) -> str:
    rows = [_pair(one) for one in found.contention[:_PAIRS_MAX]]
    if not rows:
        return ""
    head = ["ran at once", "for", "fight over", "need together", "slowed by"]
    return f"<h3>Work that ran at once</h3>{table(head, rows)}"


def _pair(one: Contention) -> list[str]:
    slowed = [
        f"{text(name, 30)} {slow:.2f}×"
        for name, slow in ((one.first, one.first_slowdown), (one.second, one.second_slowdown))
        if isinstance(slow, float)
    ]
    return [
        f"{text(one.first, 40)} and {text(one.second, 40)}",
        time(one.together_ns),
        share(one.column) if isinstance(one.column, Unknown) else text(one.column),
        share(one.demand_share) if isinstance(one.demand_share, float) else "–",
        ", ".join(slowed) or "not seen here",
    ]
