"""The ledger as stacked bars: where a unit goes on each rank, or in each unit of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.report.document import Headline
from longpole.report.figures.sheet import (
    SMALL,
    Drawn,
    add_legend,
    color_of,
    label_room,
    new_figure,
    own_look,
    shown,
    text_color_on,
    time_scale,
    write_notes,
)
from longpole.report.text.ledger_table import basis_of
from longpole.report.worst import by_largest_wait, steady_units, whole_units
from longpole.units import format_count, format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from longpole.report.document import RankEntry, Report, UnitEntry

BARS_MAX: Final = 48
"""More cannot be read on a page; those with the largest waits are kept."""
_PART_NAMED: Final = 0.055  # of the longest bar, from which on a part has room for its share
_BAR_IN: Final = 0.19


@dataclass(frozen=True, slots=True)
class _Bar:
    """One bar: object -> mean in ns; what is hidden lies thin below."""

    label: str
    exposed_ns: Mapping[str, float]
    hidden_ns: Mapping[str, float]

    @property
    def length_ns(self) -> float:
        return max(sum(self.exposed_ns.values()), sum(self.hidden_ns.values()))


def draw_ledger(report: Report, *, by: str, unit: str | None, width_in: float) -> Drawn:
    """Draw the ledger.

    Args:
        report: The report.
        by: `rank` for a bar for each rank and device, `unit` for one for each unit of the rank that the verdict names.
        unit: This unit alone instead of the mean of the steady ones, by rank.
        width_in: Width in inches.
    """
    if by == "unit":
        bars, says, notes = _by_unit(report)
    else:
        bars, says, notes = _by_rank(report, unit)
    with own_look():
        figure = new_figure(width_in, 1.1 + _BAR_IN * max(len(bars), 1))
        axes = figure.add_subplot()
        _draw_bars(axes, bars, label_room(width_in))
        named = [name for name in OBJECTS if any(name in bar.exposed_ns or name in bar.hidden_ns for bar in bars)]
        add_legend(figure, says, [(name, name) for name in named])
        write_notes(figure, notes)
    return Drawn(figure, says, notes)


def _by_rank(report: Report, unit: str | None) -> tuple[list[_Bar], str, list[str]]:
    rows = [row for row in report.ranks if unit is None or any(one.name == unit for one in row.units)]
    kept = sorted(by_largest_wait(rows)[:BARS_MAX])
    bars = [_rank_bar(rows[place], unit) for place in kept]
    notes = []
    if len(kept) < len(rows):
        notes.append(f"{len(kept)} of {len(rows)} ranks, those with the largest waits")
    if unit is not None:
        return bars, f"Where {unit} goes", notes
    if len(report.ranks) > 1:
        mean = {name: float(time.exposed_ns) for name, time in report.ledger.objects.items() if time.exposed_ns > 0}
        bars.insert(0, _Bar("mean", mean, _known_hidden(report.ledger.objects, 1)))
    if any(bar.hidden_ns for bar in bars):
        notes.append("thin: what was hidden under something else")
    return bars, f"Where a unit goes: {basis_of(report)}", notes


def _rank_bar(row: RankEntry, unit: str | None) -> _Bar:
    chosen = [one for one in row.units if one.name == unit] if unit is not None else steady_units(row)
    if not chosen:
        exposed = {name: float(time.exposed_ns) for name, time in row.ledger.objects.items() if time.exposed_ns > 0}
        return _Bar(_label(row), exposed, _known_hidden(row.ledger.objects, 1))
    # What is hidden is known as a sum over all units only: where some are not steady it has no mean of the steady ones.
    is_all = unit is None and len(chosen) == len(whole_units(row))
    hidden = _known_hidden(row.ledger.objects, len(chosen)) if is_all else {}
    return _Bar(_label(row), _mean_exposed(chosen), hidden)


def _mean_exposed(units: Sequence[UnitEntry]) -> dict[str, float]:
    sums = {name: sum(one.exposed_ns.get(name, 0) for one in units) for name in OBJECTS}
    return {name: total / len(units) for name, total in sums.items() if total > 0}


def _known_hidden(objects: Mapping[str, object], count: int) -> dict[str, float]:
    found = {name: getattr(time, "hidden_ns", None) for name, time in objects.items()}
    return {name: time_ns / count for name, time_ns in found.items() if isinstance(time_ns, int) and time_ns > 0}


def _by_unit(report: Report) -> tuple[list[_Bar], str, list[str]]:
    named = report.headline.rank if isinstance(report.headline, Headline) else None
    row = next((one for one in report.ranks if one.rank == named), report.ranks[0] if report.ranks else None)
    units = whole_units(row) if row is not None else []
    bars = [_Bar(one.name + ("" if one.steady else " *"), _mean_exposed([one]), {}) for one in units[:BARS_MAX]]
    notes = ["* not steady: no mean counts it"] if any(not one.steady for one in units[:BARS_MAX]) else []
    if len(units) > BARS_MAX:
        notes.append(f"the first {BARS_MAX} of {format_count(len(units), 'unit')}; --units A..B chooses others")
    where = f" on {_label(row)}" if row is not None else ""
    return bars, f"Where each unit goes{where}", notes


def _label(row: RankEntry) -> str:
    return f"rank {row.rank}" + (f" {row.device}" if row.device not in ("", "cpu") else "")


def _draw_bars(axes: Axes, bars: Sequence[_Bar], room: int) -> None:
    longest_ns = max((bar.length_ns for bar in bars), default=0.0) or 1.0
    step_ns, unit = time_scale(longest_ns)
    for place, bar in enumerate(bars):
        total_ns = sum(bar.exposed_ns.values())
        at_ns = 0.0
        for name, time_ns in bar.exposed_ns.items():
            axes.barh(place, time_ns / step_ns, 0.62, at_ns / step_ns, color=color_of(name))
            if time_ns >= _PART_NAMED * longest_ns:
                says, middle_ns = f"{100 * time_ns / total_ns:.0f} %", at_ns + time_ns / 2
                look: dict[str, Any] = {"color": text_color_on(color_of(name)), "fontsize": SMALL, "ha": "center"}
                axes.text(middle_ns / step_ns, place, says, va="center_baseline", **look)
            at_ns += time_ns
        axes.text(at_ns / step_ns, place, f" {format_ns(round(total_ns))}", fontsize=SMALL, va="center_baseline")
        at_ns = 0.0
        for name, time_ns in bar.hidden_ns.items():
            axes.barh(place + 0.39, time_ns / step_ns, 0.13, at_ns / step_ns, color=color_of(name), alpha=0.55)
            at_ns += time_ns
    axes.set_yticks(range(len(bars)), [shown(bar.label, room) for bar in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, longest_ns / step_ns * 1.09)
    axes.set_xlabel(unit)
    if not bars:
        axes.text(0.5, 0.5, "no unit was recorded", transform=axes.transAxes, ha="center")
