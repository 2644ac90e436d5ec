"""Which rows of a report wait most: the order of the terminal's table, and what a shortened JSON document keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.stats import mean_ns

if TYPE_CHECKING:
    from longpole.report.document import RankEntry, UnitEntry

OUTSIDE_UNITS = ("head", "tail")


def whole_units(row: RankEntry) -> list[UnitEntry]:
    """Return the units of a row, without what was recorded before the first and after the last one."""
    return [unit for unit in row.units if unit.kind not in OUTSIDE_UNITS]


def steady_units(row: RankEntry) -> list[UnitEntry]:
    """Return the steady units of a row; all its units where none is steady."""
    units = whole_units(row)
    return [unit for unit in units if unit.steady] or units


def largest_wait(row: RankEntry) -> tuple[str, int]:
    """Return the object other than compute with the most exposed time in a row's steady units, and its mean there.

    Ties go to the object that comes first in the ledger. Without any unit, it is that of the whole row.

    Returns:
        The object's name, and ns per unit.
    """
    units = steady_units(row)
    names = [name for name in row.ledger.objects if name != "compute"]
    if units:
        exposed = {name: mean_ns([unit.exposed_ns.get(name, 0) for unit in units]) for name in names}
    else:
        exposed = {name: row.ledger.objects[name].exposed_ns for name in names}
    worst = max(exposed, key=lambda name: exposed[name])
    return worst, exposed[worst]


def by_largest_wait(rows: list[RankEntry]) -> list[int]:
    """Return the places of rows, those with the largest wait first; equal ones by place."""
    waits_ns = [largest_wait(row)[1] for row in rows]
    return sorted(range(len(rows)), key=lambda place: (-waits_ns[place], place))
