"""RANKS: one line a row, those that wait most first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.figures import percent
from longpole.report.text.layout import bar, pad
from longpole.report.text.words import row_name, unit_noun
from longpole.report.worst import by_largest_wait, largest_wait, steady_units
from longpole.stats import median_ns

if TYPE_CHECKING:
    from longpole.report.document import RankEntry, Report
    from longpole.report.text.figures import Scale
    from longpole.report.text.layout import Style

_SHOWN: Final = 8
_NAME, _BUSY, _OBJECT, _FIGURE, _BAR = 18, 8, 12, 10, 14


def render_ranks(report: Report, scale: Scale, style: Style) -> list[str]:
    """Show the rows with the largest waits; nothing where there is only one row."""
    if len(report.ranks) <= 1:
        return []
    order = by_largest_wait(report.ranks)
    noun = unit_noun(report.unit.kind)
    lines = [style.title("RANKS", f"{scale.unit} in the mean {noun}, the largest wait first")]
    lines.append(f"  {'':{_NAME}}{'busy':>{_BUSY}}  {'largest wait':{_OBJECT + _FIGURE}}{'period':>{_FIGURE}}")
    shown = order if len(order) <= _SHOWN + 1 else order[:_SHOWN]
    longest_ns = max(largest_wait(report.ranks[order[0]])[1], 1)
    lines += [_row(report, place, longest_ns, scale, style) for place in shown]
    rest = order[len(shown) :]
    if rest:
        name, wait_ns = largest_wait(report.ranks[rest[0]])
        lines.append(f"  and {len(rest)} more; none waits longer than {scale.write(wait_ns)} for {escape(name)}")
    return lines


def _row(report: Report, place: int, longest_ns: int, scale: Scale, style: Style) -> str:
    row = report.ranks[place]
    name, wait_ns = largest_wait(row)
    busy = percent(row.ledger.device.busy_ns, row.ledger.wall_ns)
    period_ns = _median_period(row)
    period = scale.write(period_ns) if period_ns is not None else "?"
    left = f"  {pad(row_name(row, report.ranks), _NAME)}{busy:>{_BUSY}}  {pad(escape(name), _OBJECT)}"
    left += f"{scale.write(wait_ns):>{_FIGURE}}{period:>{_FIGURE}}"
    return f"{left}  {style.bar(bar(wait_ns / longest_ns, _BAR))}".rstrip()


def _median_period(row: RankEntry) -> int | None:
    periods = [unit.period_ns for unit in steady_units(row) if isinstance(unit.period_ns, int)]
    return median_ns(periods) if periods else None
