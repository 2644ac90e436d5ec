"""WORST GAPS: the longest stretches in which nothing ran, with what the program did meanwhile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.layout import columns_of, shorten
from longpole.report.text.words import idle_words, row_name
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.records.tables import GapRow
    from longpole.report.document import RankEntry, Report
    from longpole.report.text.layout import Style

_SHOWN: Final = 3
_FRAMES: Final = 3
_LEAST_SHARE: Final = 0.001  # of the mean unit; a shorter gap is shown only where it is the longest
_FIGURE: Final = 11
_ARROW: Final = " > "
_MORE: Final = "… > "
_PYTHON_FRAME: Final = re.compile(r"(?:.*/)?([^/]+\.py\(\d+\): .*)")


@dataclass(slots=True)
class _Group:
    """The longest of some gaps with the same operation and reason, and how many there are."""

    gap: GapRow
    row: RankEntry
    n: int = 1


def render_gaps(report: Report, style: Style) -> list[str]:
    """Show the longest gaps over all ranks; gaps under the same operation are shown once."""
    groups = _grouped(report)
    if not groups:
        return []
    lines = [style.title("WORST GAPS", "each with the end of the call stack under it")]
    least_ns = _LEAST_SHARE * report.ledger.wall_ns
    for group in [group for group in groups[:_SHOWN] if group is groups[0] or group.gap.dur_ns >= least_ns]:
        gap = group.gap
        alike = f" · {group.n - 1} more like it" if group.n > 1 else ""
        names = [escape(gap.reason), *([row_name(group.row, report.ranks)] if len(report.ranks) > 1 else [])]
        left = f"{format_ns(gap.dur_ns):>{_FIGURE}}  {' · '.join(names)}"
        unit = f" · {escape(gap.unit)}" if report.unit.kind != "trace" else ""
        lines.append(left + shorten(unit, style.width - columns_of(left) - columns_of(alike)) + alike)
        lines.append(f"{'':{_FIGURE}}  {_stack(gap, report, style.width - _FIGURE - 2)}")
    return lines


def _grouped(report: Report) -> list[_Group]:
    found = [(gap, row) for row in report.ranks for gap in row.top.gaps]
    found.sort(key=lambda item: -item[0].dur_ns)
    groups: dict[tuple[str, str], _Group] = {}
    for gap, row in found:
        key = (gap.name.split("#", 1)[0], gap.reason)
        if key in groups:
            groups[key].n += 1
        else:
            groups[key] = _Group(gap, row)
    return list(groups.values())


def _stack(gap: GapRow, report: Report, room: int) -> str:
    """Return the end of a gap's call stack, the innermost frame last; without a stack, what was going on in words."""
    frames = [_compact(escape(frame)) for frame in gap.stack if frame and frame != gap.unit]
    if not frames:
        words = idle_words(gap.reason, report) or gap.reason if gap.name in (gap.reason, gap.unit) else gap.name
        closed_by = f", until {gap.closed_by}" if gap.closed_by else ""
        return shorten(escape(words + closed_by), room)
    text = shorten(frames[-1], room - len(_MORE))
    n_shown = 1
    for frame in frames[-2 : -_FRAMES - 1 : -1]:
        longer = f"{frame}{_ARROW}{text}"
        if columns_of(longer) > room - len(_MORE):
            break
        text, n_shown = longer, n_shown + 1
    return text if n_shown == len(frames) else _MORE + text


def _compact(frame: str) -> str:
    """Leave the folders out of a Python frame: `a/b/loader.py(7): fetch` is `loader.py(7): fetch`."""
    match = _PYTHON_FRAME.fullmatch(frame)
    return match[1] if match else frame
