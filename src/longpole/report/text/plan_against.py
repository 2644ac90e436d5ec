"""The part of a plan's page that puts it beside a real run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, columns_of, pad, shorten, wrap
from longpole.units import format_bytes, format_count, format_ns

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
    shown = ", ".join(map(escape, against.paths))
    counted = f"{format_count(against.ranks, 'rank')}, {format_count(against.units, 'step')}"
    lines = [style.title("BESIDE THE RUN", f"{shown} · {counted}")]
    lines += wrap(escape(against.says), style.width, first="  ", rest="    ", max_lines=4)
    for note in against.notes:
        lines += [style.warning(line) for line in wrap(escape(note), style.width, first="  ", rest="    ")]
    lines.append(_row("exposed", ("planned", "measured", "difference")))
    for row in against.objects:
        lines += _object_lines(row, style)
    planned, measured = against.planned_period_ns, against.measured_unit_ns
    lines.append(_row("step", (format_ns(planned), format_ns(measured), _signed(measured - planned))))
    peak = against.measured_peak_bytes
    if isinstance(peak, int):
        figures = (format_bytes(against.planned_peak_bytes), format_bytes(peak), "")
        lines.append(_row("allocated at the peak", figures))
    use = (f"{100 * against.planned_mfu:.1f} %", f"{100 * against.measured_mfu:.1f} %", "")
    lines.append(_row("MFU", use))
    if against.collectives:
        lines += ["", style.title("ITS COLLECTIVES", "of one device in a step: planned | measured, with waiting")]
        heads = ("operations", "bytes", "time")
        lines.append(shorten(_wide_row("", heads, heads), style.width))
        lines += [shorten(_collective_line(row), style.width) for row in against.collectives]
    return lines


def _object_lines(row: PlanBeside, style: Style) -> list[str]:
    figures = (_ns(row.planned_ns), _ns(row.measured_ns), _signed(row.difference_ns))
    line = _row(row.object, figures)
    fits = columns_of(line) + columns_of(row.says) + 2 <= style.width
    return [line + style.faint(f"  {row.says}")] if row.says and fits else [line]


def _collective_line(row: PlanBesideCollective) -> str:
    planned = (f"{row.planned_count:,.0f}", format_bytes(row.planned_bytes), _ns(row.planned_ns))
    measured = (f"{row.measured_count:,.1f}", _bytes(row.measured_bytes), _ns(row.measured_ns))
    nothing = ("0", "", "")
    return _wide_row(
        escape(row.kind.replace("_", "-")),
        planned if row.planned_count else nothing,
        measured if row.measured_count else nothing,
    )


def _wide_row(name: str, planned: tuple[str, ...], measured: tuple[str, ...]) -> str:
    sides = ["".join(f"{figure:>10}" for figure in side) for side in (planned, measured)]
    return f"  {pad(name, 14)}{' |'.join(sides)}".rstrip()


def _bytes(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else format_bytes(value)


def _ns(dur_ns: int) -> str:
    return format_ns(dur_ns) if dur_ns else "0"


def _signed(dur_ns: int) -> str:
    return f"{'+' if dur_ns > 0 else '−'}{format_ns(abs(dur_ns))}" if dur_ns else "0"


def _row(name: str, figures: tuple[str, ...]) -> str:
    return f"  {pad(name, _NAME)}{''.join(f'{figure:>{_FIGURE}}' for figure in figures)}".rstrip()
