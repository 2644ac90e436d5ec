"""RANKS: which rows wait most, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.figures import percent
from longpole.report.text.layout import bar, columns_of, pad
from longpole.report.text.words import ranks_as_text, row_name
from longpole.report.worst import by_largest_wait, largest_wait, steady_units
from longpole.stats import mean_ns, median_ns

if TYPE_CHECKING:
    from longpole.report.document import RankEntry, Report
    from longpole.report.text.figures import Scale
    from longpole.report.text.layout import Style

_SHOWN: Final = 8
_ALIKE: Final = 0.95
_WORTH_JOINING: Final = 3
_NAME, _BUSY, _OBJECT, _FIGURE, _BAR = 16, 8, 12, 10, 16


def render_ranks(report: Report, scale: Scale, style: Style) -> list[str]:
    """Show the rows with the largest waits; nothing where there is only one row.

    Three rows or more that wait for the same object about as long share a line, with their means.
    """
    if len(report.ranks) <= 1:
        return []
    title = "RANKS"
    columns = f"{'':{2 + _NAME - len(title)}}{'busy':>{_BUSY}}  {f'largest wait, {scale.unit}':{_OBJECT + _FIGURE}}"
    lines = [f"{style.title(title)}{columns}{'period':>{_FIGURE}}"]
    groups = _grouped(report.ranks)
    shown = groups if len(groups) <= _SHOWN + 1 else groups[:_SHOWN]
    longest_ns = max(largest_wait(groups[0][0])[1], 1)
    lines += [_line(report, group, longest_ns, scale, style) for group in shown]
    rest = [row for group in groups[len(shown) :] for row in group]
    if rest:
        name, wait_ns = largest_wait(rest[0])
        lines.append(f"  and {len(rest)} more; none waits longer than {scale.write(wait_ns)} for {escape(name)}")
    return lines


def _grouped(rows: list[RankEntry]) -> list[list[RankEntry]]:
    """Return the rows, the largest wait first, those that hardly differ together."""
    groups: list[list[RankEntry]] = []
    for place in by_largest_wait(rows):
        name, wait_ns = largest_wait(rows[place])
        first = largest_wait(groups[-1][0]) if groups else ("", 0)
        if groups and name == first[0] and wait_ns >= _ALIKE * first[1]:
            groups[-1].append(rows[place])
        else:
            groups.append([rows[place]])
    return [
        part for group in groups for part in ([group] if len(group) >= _WORTH_JOINING else [[row] for row in group])
    ]


def _line(report: Report, group: list[RankEntry], longest_ns: int, scale: Scale, style: Style) -> str:
    object_name = largest_wait(group[0])[0]
    wait_ns = mean_ns([largest_wait(row)[1] for row in group])
    busy_ns = sum(row.ledger.device.busy_ns for row in group)
    busy = percent(busy_ns, sum(row.ledger.wall_ns for row in group))
    periods = [unit.period_ns for row in group for unit in steady_units(row) if isinstance(unit.period_ns, int)]
    period = scale.write(median_ns(periods)) if periods else "?"
    left = f"  {pad(_name(report, group), _NAME)}{busy:>{_BUSY}}  {pad(escape(object_name), _OBJECT)}"
    left += f"{scale.write(wait_ns):>{_FIGURE}}{period:>{_FIGURE}}"
    room = min(_BAR, style.width - columns_of(left) - 2)
    return f"{left}  {style.bar(bar(wait_ns / longest_ns, room))}".rstrip()


def _name(report: Report, group: list[RankEntry]) -> str:
    if len(group) == 1:
        return row_name(group[0], report.ranks)
    name = ranks_as_text(row.rank for row in group)
    return name if columns_of(name) <= _NAME else f"{len(group)} ranks"
