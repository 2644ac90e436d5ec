"""The part of a plan's page that puts it beside a real run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, wrap
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.report.plan import Plan
    from longpole.report.plan_asked import PlanBeside, PlanBesideCollective

_NAME: Final = 22
_FIGURE: Final = 11
_DASH: Final = "–"


def render_against(plan: Plan, style: Style) -> list[str]:
    """Write the plan beside a run; nothing where that was not asked for."""
    against = plan.against
    if against is None:
        return []
    lines = [style.title("BESIDE THE RUN", f"{', '.join(map(escape, against.paths))}")]
    lines += wrap(escape(against.says), style.width, first="  ", rest="    ", max_lines=4)
    lines.append(_row("exposed", ("planned", "measured", "difference")))
    for row in against.objects:
        lines += _object_lines(row, style)
    planned = sum(row.planned_ns for row in against.objects if isinstance(row.planned_ns, int))
    difference = against.measured_unit_ns - planned
    figures = (format_ns(planned), format_ns(against.measured_unit_ns), _signed(difference))
    lines.append(_row("step", figures))
    if against.collectives:
        lines.append(_row("collectives of a step", ("planned", "measured", "")))
        lines += [line for row in against.collectives for line in _collective_lines(row)]
    if isinstance(against.peak_bytes, int) and plan.memory is not None:
        lines.append(_row("peak memory", (format_bytes(plan.memory.peak_bytes), format_bytes(against.peak_bytes), "")))
    for note in against.notes:
        lines += wrap(escape(note), style.width, first="  ", rest="    ", max_lines=4)
    return lines


def _object_lines(row: PlanBeside, style: Style) -> list[str]:
    planned = _DASH if isinstance(row.planned_ns, Unknown) else format_ns(row.planned_ns)
    difference = _DASH if isinstance(row.difference_ns, Unknown) else _signed(row.difference_ns)
    lines = [_row(row.object, (planned, format_ns(row.measured_ns), difference))]
    if row.says:
        lines += [style.faint(line) for line in wrap(row.says, style.width, first="      ", rest="      ", max_lines=3)]
    return lines


def _collective_lines(row: PlanBesideCollective) -> list[str]:
    planned = [_count(row.planned_count), _bytes(row.planned_bytes), _ns(row.planned_ns)]
    measured = [_count(row.measured_count), _bytes(row.measured_bytes), _ns(row.measured_ns)]
    name = escape(row.kind.replace("_", "-"))
    rows = zip(("operations", "bytes", "time"), planned, measured, strict=True)
    return [_row(f"{name}: {what}", (plan, run, "")) for what, plan, run in rows]


def _count(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else f"{value:,.0f}"


def _bytes(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else format_bytes(value)


def _ns(value: int | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else format_ns(value)


def _signed(dur_ns: int) -> str:
    return f"{'+' if dur_ns >= 0 else '−'}{format_ns(abs(dur_ns))}"


def _row(name: str, figures: tuple[str, ...]) -> str:
    return f"  {pad(name, _NAME)}{''.join(f'{figure:>{_FIGURE}}' for figure in figures)}".rstrip()
