"""The ledger as bars: of the run and of each row, mean of its steady units, and unit by unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.document import Headline
from longpole.report.page.charts import Bar, legend, stacked_bars
from longpole.report.page.markup import Figure, section, share, table, text, time
from longpole.units import format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.records.ledger import Ledger
    from longpole.report.document import RankEntry, Report, UnitEntry

_RANKS_MAX: Final = 64  # bars of ranks; beyond, those that differ most from the middle
_ROWS_MAX: Final = 40

LEDGER: Final = Figure(
    "ledger",
    "Where a unit goes",
    "Every nanosecond of a unit is charged to exactly one object, so exposed times add up to the unit's wall time."
    " Hidden time ran under something else and cost nothing; it is drawn thin.",
    "docs/concepts/ledger.md",
)
BY_UNIT: Final = Figure(
    "units",
    "Unit by unit",
    "The same for each unit of one rank: the rank that the long pole is on, else the first.",
    "docs/concepts/ledger.md",
)


def render_ledger(report: Report) -> str:
    """Return a bar for the run and for each rank, mean of its steady units."""
    ranks = _chosen(report)
    bars = [_bar_of_run(report.ledger)] if len(report.ranks) > 1 else []
    bars += [_bar_of_row(entry) for entry in ranks]
    bars = [bar for bar in bars if bar.parts]
    if not bars:
        return ""
    left = ""
    if len(ranks) < len(report.ranks):
        left = f"<p class=note>{len(ranks)} of {len(report.ranks)} ranks, those that differ most.</p>"
    names = [name for name in OBJECTS if any(name in bar.parts or name in bar.hidden for bar in bars)]
    chart = stacked_bars(bars, "Ledger: mean of a unit, by rank and object")
    return section(LEDGER, legend(names), chart, left, _sums(report))


def _sums(report: Report) -> str:
    ledger = report.ledger
    rows = [
        [
            text(name),
            time(one.exposed_ns),
            share(one.exposed_ns / ledger.wall_ns if ledger.wall_ns else None),
            time(getattr(one, "hidden_ns", None)),
        ]
        for name, one in ledger.objects.items()
        if one.exposed_ns or isinstance(getattr(one, "hidden_ns", None), int)
    ]
    rows.append(["<b>sum</b>", f"<b>{time(ledger.wall_ns)}</b>", "", ""])
    whole = table(["object", "exposed", "share", "hidden"], rows, shape="narrow")
    return f"<details><summary>As a table: mean of a steady unit</summary>{whole}</details>"


def _chosen(report: Report) -> list[RankEntry]:
    if len(report.ranks) <= _RANKS_MAX:
        return list(report.ranks)
    middle = sorted(_busy_share(entry) for entry in report.ranks)[len(report.ranks) // 2]
    apart = sorted(report.ranks, key=lambda entry: -abs(_busy_share(entry) - middle))[:_RANKS_MAX]
    return sorted(apart, key=lambda entry: (entry.rank, entry.device))


def _busy_share(entry: RankEntry) -> float:
    time_ns = entry.ledger.objects.get("compute")
    return time_ns.exposed_ns / entry.ledger.wall_ns if time_ns is not None and entry.ledger.wall_ns else 0.0


def _bar_of_run(ledger: Ledger) -> Bar:
    exposed = {name: float(one.exposed_ns) for name, one in ledger.objects.items()}
    return _bar("all, mean", exposed, {name: getattr(one, "hidden_ns", None) for name, one in ledger.objects.items()})


def _bar_of_row(entry: RankEntry) -> Bar:
    """Return a row's bar: what its steady units were charged, in the mean.

    What was hidden is known of all its units together, so it is left out where a mean does not count all of them.
    """
    counted = mean_units(entry)
    n = max(len(counted), 1)
    exposed = {name: sum(unit.exposed_ns.get(name, 0) for unit in counted) / n for name in entry.ledger.objects}
    hidden: dict[str, object] = {}
    if len(counted) == len(real_units(entry)):
        under = {name: getattr(one, "hidden_ns", None) for name, one in entry.ledger.objects.items()}
        hidden = {name: ns / n for name, ns in under.items() if isinstance(ns, int)}
    return _bar(label_of(entry), exposed, hidden)


def _bar(label: str, exposed: Mapping[str, float], hidden: Mapping[str, object]) -> Bar:
    whole = sum(exposed.values()) or 1
    parts = {
        name: (ns, f"{label}: {name} exposed {format_ns(round(ns))}, {100 * ns / whole:.1f} %")
        for name, ns in exposed.items()
        if ns > 0
    }
    under = {
        name: (float(ns), f"{label}: {name} hidden {format_ns(round(ns))}")
        for name, ns in hidden.items()
        if isinstance(ns, int | float) and ns > 0
    }
    return Bar(label, parts, under)


def real_units(entry: RankEntry) -> list[UnitEntry]:
    """Return the units of a row, without what lies before the first and after the last."""
    return [unit for unit in entry.units if unit.kind not in ("head", "tail")]


def mean_units(entry: RankEntry) -> list[UnitEntry]:
    """Return the units that means count: the steady ones, all where none is."""
    return [unit for unit in real_units(entry) if unit.steady] or real_units(entry)


def label_of(entry: RankEntry) -> str:
    """Return what a row is called."""
    return f"rank {entry.rank}" + (f" {entry.device}" if entry.device else "")


def row_of_pole(report: Report) -> RankEntry | None:
    """Return the row of the rank that the long pole is on, else the first one; None where there is none."""
    rank = report.headline.rank if isinstance(report.headline, Headline) else None
    return next((one for one in report.ranks if rank is None or one.rank == rank), None)


def render_units(report: Report) -> str:
    """Return a bar for each unit of the rank that matters most."""
    entry = row_of_pole(report)
    if entry is None:
        return ""
    units = real_units(entry)[:_ROWS_MAX]
    if len(units) < 2:
        return ""
    bars = [
        Bar(
            unit.name + ("" if unit.steady else " *"),
            {n: (t, f"{unit.name}: {n} exposed {format_ns(t)}") for n, t in unit.exposed_ns.items() if t > 0},
            {},
        )
        for unit in units
    ]
    note = "<p class=note>* not steady: no mean counts it.</p>" if any(not unit.steady for unit in units) else ""
    return section(BY_UNIT, f"<p>{text(label_of(entry))}</p>", stacked_bars(bars, "Ledger unit by unit"), note)
