"""What operators ask of the device, in a few lines: the indicators by stage, the longest operators, what fights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.resource_words import BOUND_SHOWN_MIN
from longpole.report.text.layout import columns_of, pad, shorten, wrap
from longpole.units import format_ns

if TYPE_CHECKING:
    from longpole.records.resources import Contention, Indicator, MatrixRow, Resources, StageIndicators
    from longpole.report.document import Report
    from longpole.report.text.layout import Style

_ROWS_SHOWN: Final = 5
_STAGES_SHOWN: Final = 4
_PAIRS_SHOWN: Final = 2
_STAGE_MIN: Final = 0.05  # of the unit: a shorter stage is in the JSON
_SLOWER_MIN: Final = 1.1  # less is within the scatter of the spans that are compared
_NEXT_MIN: Final = 0.05  # a column that is hardly asked bounds nothing next
_LABEL_MAX: Final = 28
_DASH: Final = "–"
_COLUMN_WORDS: Final = {
    "tensor": "tensor",
    "vector": "vector",
    "hbm": "memory",
    "scale_up": "the link",
    "scale_out": "the network",
    "pcie": "PCIe",
    "host": "issuing it",
}


def render_resources(report: Report, style: Style) -> list[str]:
    """Write the section; nothing where the record has no shapes, which NOT KNOWN says."""
    found = report.resources
    if isinstance(found, Unknown):
        return []
    name = found.device if isinstance(found.device, str) else found.device_name or "device not named"
    covered = f"FLOPs or bytes known of {found.covered_share:.0%} of {format_ns(found.compute_ns)} compute time"
    lines = [style.title("RESOURCES", f"{escape(name)} · {covered}")]
    if isinstance(found.device, Unknown):
        says = f"{escape(found.device.unknown)}; demands are in --json and --csv"
        lines += wrap(says, style.width, first="  ", rest="  ")
    else:
        lines += _indicators(found, style)
        lines += _operators(found, style)
    for pair in [pair for pair in found.contention if _slower(pair)][:_PAIRS_SHOWN]:
        lines += wrap(_fight(pair), style.width, first="  ", rest="    ")
    if found.at_least_share >= BOUND_SHOWN_MIN:
        lines.append(style.faint(f"  of {found.at_least_share:.0%} only a lower bound of the bytes is known"))
    lines += _uncounted(found, style)
    return lines


def _indicators(found: Resources, style: Style) -> list[str]:
    whole = found.indicators[0]
    others = [one for one in found.indicators[1:] if one.wall_ns >= _STAGE_MIN * whole.wall_ns][:_STAGES_SHOWN]
    head = f"  {'':<10}{'device busy':>12}{'compute':>10}{'memory':>10}{'link':>10}   bound by"
    return [style.faint(shorten(head, style.width)), *(_indicator_line(one, style) for one in (whole, *others))]


def _indicator_line(one: StageIndicators, style: Style) -> str:
    name = "unit" if one.stage == "all" else one.stage
    cells = "".join(f"{_percent(indicator):>10}" for indicator in (one.compute, one.memory, one.link))
    bound = one.bound_class if isinstance(one.bound_class, str) else "not known"
    return shorten(f"  {name:<10}{one.busy_share:>12.0%}{cells}   {bound}", style.width)


def _percent(indicator: Indicator) -> str:
    """Return an indicator against the best peak there is; against a measured one it is marked."""
    if not isinstance(indicator.achievable_share, UnsetType):
        return f"{indicator.achievable_share:.0%}{'*' if indicator.achievable_share else ' '}"
    return f"{_DASH} " if isinstance(indicator.share, Unknown) else f"{indicator.share:.0%} "


def _operators(found: Resources, style: Style) -> list[str]:
    """Return the longest operators; their shares are against the peak in theory."""
    rows = [row for row in found.rows if row.kind == "operator"][:_ROWS_SHOWN]
    indicators = [one for stage in found.indicators for one in (stage.compute, stage.link)]
    marked = any(not isinstance(one.achievable_share, UnsetType) and one.achievable_share for one in indicators)
    lines = [style.faint("  * against the best that was measured on such a part")] if marked else []
    width = min(max((columns_of(_label(row)) for row in rows), default=0), _LABEL_MAX)
    room = style.width - width - 10
    return lines + [
        f"  {row.time_share:>4.0%}  {pad(_label(row), width)}  {shorten(_bound(row, room), room)}" for row in rows
    ]


def _label(row: MatrixRow) -> str:
    return escape(f"{row.name} {row.dtype}".strip())


def _bound(row: MatrixRow, width: int) -> str:
    if isinstance(row.bound_by, Unknown):
        return wrap(_in_short(row.bound_by), width, max_lines=1)[0]
    if isinstance(row.bound_by, UnsetType):
        return _DASH
    cell = row.cells[row.bound_by]
    if row.bound_by == "host":
        return f"issuing takes {cell.share:.1f} × its run time"
    words = f"{_COLUMN_WORDS[row.bound_by]} {cell.share:.0%} of peak"
    after = UNSET if isinstance(row.next_bound, UnsetType) else row.cells[row.next_bound].share
    if isinstance(row.next_bound, UnsetType) or isinstance(after, UnsetType) or after < _NEXT_MIN:
        return words
    return shorten(f"{words}, then {_COLUMN_WORDS[row.next_bound]} {after:.0%}", width)


def _in_short(why: Unknown) -> str:
    """Return the first half of a reason: what follows a colon explains it."""
    return f"not known: {why.unknown.split(':', maxsplit=1)[0].split(',', maxsplit=1)[0]}"


def _slower(pair: Contention) -> bool:
    both = (pair.first_slowdown, pair.second_slowdown)
    return any(not isinstance(one, UnsetType) and one >= _SLOWER_MIN for one in both)


def _fight(pair: Contention) -> str:
    sides = ((pair.first, pair.second, pair.first_slowdown), (pair.second, pair.first, pair.second_slowdown))
    told = [
        f"{escape(mine)} takes {slower:.1f} times as long beside {escape(other)}"
        for mine, other, slower in sides
        if not isinstance(slower, UnsetType) and slower >= _SLOWER_MIN
    ]
    both = f"; both ask for {_COLUMN_WORDS[pair.column]}" if isinstance(pair.column, str) else ""
    return f"{' and '.join(told)} ({format_ns(pair.together_ns)} at once{both})"


def _uncounted(found: Resources, style: Style) -> list[str]:
    left = 1 - found.covered_share
    if not found.uncounted or left < 0.01:
        return []
    by_why: dict[str, float] = {}
    for one in found.uncounted:
        by_why[one.why] = by_why.get(one.why, 0.0) + one.time_share
    most = sorted(by_why.items(), key=lambda item: -item[1])[:2]
    told = [f"{share:.0%} {why}" for why, share in most if share >= 0.01]
    return [style.faint(line) for line in wrap(f"not counted: {'; '.join(told)}", style.width, first="  ", rest="    ")]
