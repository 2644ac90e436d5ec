"""The mean unit of a run, cut into the parts that a comparison of runs needs: integers that add up to its period.

period  = Σ exposed time by object (mean over rows and steady units)  +  lag
exposed communication = transfer + skew + bubble + what could not be split
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.analyses.sums import round_shares
from longpole.records.ledger import Unknown
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.records.collectives import CollectiveEntry
    from longpole.report.document import RankEntry, Report, UnitEntry
    from longpole.settings import Settings

OBJECT_OF: Final = {"transfer": "collective", "skew": "collective", "bubble": "collective", "lag": ""} | {
    name: name for name in OBJECTS
}
"""Part -> the object of the ledger that it belongs to."""

_NOT_LISTED: Final = Unknown(
    "the report does not list the collectives, so that moving and waiting cannot be told apart",
    ["collectives of all ranks"],
)
_HIDDEN: Final = Unknown(
    "collectives ran partly under compute; the record does not say whether their moving or their waiting did"
)
_NOT_SPLIT: Final = Unknown(
    "most of the exposed communication is of operations that the report does not list",
    ["collectives of all ranks"],
)


@dataclass(frozen=True, slots=True)
class UnitParts:
    """The mean unit of a run.

    Attributes:
        period_ns: Mean period of the steady units.
        parts: Part -> ns, all but `transfer`, `skew` and `bubble` always there; they add up to the period.
        unsplit: Why exposed communication is not split, None where it is.
        range_ns: How far `skew` (and `transfer`, the other way) may be off.
    """

    period_ns: int
    parts: dict[str, int]
    unsplit: Unknown | None
    range_ns: int

    def by_object(self) -> dict[str, int]:
        """Return the time by object of the ledger, and `lag`."""
        total = dict.fromkeys((*OBJECTS, "lag"), 0)
        for part, time_ns in self.parts.items():
            total[OBJECT_OF[part] or part] += time_ns
        return total


def measure_unit_parts(report: Report, settings: Settings) -> UnitParts | Unknown:
    """Cut the mean steady unit of a run into parts.

    The ledger tiles the host's units, a period ends when devices are done; over units that have a period both cover
    the same time but for the devices' growing lag behind the host, which is a part of its own.

    Args:
        report: The report of the run, with all its ranks and units.
        settings: `scaling_range_max_share`.

    Returns:
        The parts, or why the run has no period.
    """
    period_ns = report.unit.period_ns.mean
    if isinstance(period_ns, Unknown):
        return period_ns
    if period_ns <= 0:
        return Unknown("no time passes in a unit")
    names = names_with_period(report)
    units = [unit for row in report.ranks for unit in row.units if unit.name in names and unit.steady]
    if not units:
        return Unknown("no steady unit has a period on any rank", ["more steps"])
    sums = [sum(unit.exposed_ns.get(name, 0) for unit in units) for name in OBJECTS]
    exposed = dict(zip(OBJECTS, round_shares(sums, len(units)), strict=True))
    parts = dict(exposed)
    parts["lag"] = period_ns - sum(exposed.values())
    # The collectives are listed over all steady units, the first one included, which has no period.
    n_listed = sum(unit.steady for row in report.ranks for unit in _real(row))
    split = _split(report, exposed["collective"], n_listed, settings.scaling_range_max_share * period_ns)
    return UnitParts(period_ns, parts | split.parts, split.unsplit, split.range_ns)


def names_with_period(report: Report) -> set[str]:
    """Return the names of the units that the run's periods are of.

    They are common to all rows, have a predecessor, and are left out on no rank (DESIGN 3.2).
    """
    # The first unit that has no period is often one that was moved into the head.
    moved = {entry.unit for entry in report.unit.left_out if entry.why == "profiler_start_skew"}
    rows = [[u.name for u in row.units if u.kind not in ("head", "tail") or u.name in moved] for row in report.ranks]
    if not rows:
        return set()
    common = set.intersection(*map(set, rows))
    order = [name for name in rows[0] if name in common]
    out = {entry.unit for entry in report.unit.left_out}
    return {name for name in (order[1:] if len(order) > 1 else order) if name not in out}


def _real(row: RankEntry) -> Iterable[UnitEntry]:
    return (unit for unit in row.units if unit.kind not in ("head", "tail"))


@dataclass(frozen=True, slots=True)
class _Split:
    parts: dict[str, int]
    unsplit: Unknown | None
    range_ns: int


def _split(report: Report, exposed_ns: int, n_units: int, range_max_ns: float) -> _Split:
    """Split the mean exposed communication of a unit.

    How much of a collective's *exposed* time is waiting is known exactly only where none of it is hidden: of a
    duration D with S waiting and X exposed, between max(0, S - (D - X)) and min(S, X). The same share as of the whole
    duration is taken, X · S / D, and the range is kept; a range above `range_max_ns` is no split.
    """
    if exposed_ns == 0:
        return _Split({"transfer": 0, "skew": 0, "bubble": 0}, None, 0)
    if report.run.world_size == 1:
        # A job of one rank has nobody to wait for.
        return _Split({"transfer": exposed_ns, "skew": 0, "bubble": 0, "collective": 0}, None, 0)
    if not report.collectives:
        return _Split({}, _NOT_LISTED, 0)
    shares = dict.fromkeys(("transfer", "skew", "bubble", "collective"), 0)
    range_ns = 0
    why = _NOT_SPLIT
    for entry in report.collectives:
        for group in _groups(entry):
            if isinstance(group.skew_ns, Unknown):
                why = group.skew_ns if why is _NOT_SPLIT else why
                shares["collective"] += group.exposed_ns
                continue
            low_ns, likely_ns, high_ns = _exposed_waiting(group.duration_ns, group.skew_ns, group.exposed_ns)
            shares["bubble" if entry.kind == "send_recv" else "skew"] += likely_ns
            shares["transfer"] += group.exposed_ns - likely_ns
            range_ns += high_ns - low_ns
    # What the ledger charges beyond the listed operations (creating communicators, a group that was not recorded).
    shares["collective"] += max(exposed_ns * n_units - sum(shares.values()), 0)
    parts = _apportion(exposed_ns, shares)
    range_ns = -(-range_ns // n_units)
    if parts["collective"] > range_max_ns or parts["collective"] == exposed_ns:
        return _Split({}, why, 0)
    if range_ns > range_max_ns:
        return _Split({}, _HIDDEN, 0)
    return _Split(parts, None, range_ns)


@dataclass(frozen=True, slots=True)
class _Group:
    """Operations of one entry: of one size, or all that are left."""

    duration_ns: int
    skew_ns: int | Unknown
    exposed_ns: int


def _groups(entry: CollectiveEntry) -> list[_Group]:
    """Take an entry apart by size: the range of a split is the narrower, the more alike the operations are."""
    rows = [_Group(row.duration_ns, row.skew_ns, row.exposed_ns) for row in entry.by_size]
    skews = [row.skew_ns for row in rows if isinstance(row.skew_ns, int)]
    if isinstance(entry.skew_ns, int) and len(skews) < len(rows):
        # All but a negligible part could be split; the sizes that could not are in the entry's sums.
        return [_Group(entry.duration_ns, entry.skew_ns, entry.exposed_ns)]
    rest = _Group(
        entry.duration_ns - sum(row.duration_ns for row in rows),
        entry.skew_ns - sum(skews) if isinstance(entry.skew_ns, int) else entry.skew_ns,
        entry.exposed_ns - sum(row.exposed_ns for row in rows),
    )
    return [group for group in (*rows, rest) if group.exposed_ns > 0 and group.duration_ns > 0]


def _exposed_waiting(duration_ns: int, skew_ns: int, exposed_ns: int) -> tuple[int, int, int]:
    """Return the least, the likely and the most waiting within exposed time."""
    hidden_ns = max(duration_ns - exposed_ns, 0)
    low_ns, high_ns = max(skew_ns - hidden_ns, 0), min(skew_ns, exposed_ns)
    return low_ns, min(max(exposed_ns * skew_ns // duration_ns, low_ns), high_ns), high_ns


def _apportion(whole: int, shares: dict[str, int]) -> dict[str, int]:
    """Divide a whole in proportion to shares, in integers that add up to it.

    >>> _apportion(10, {"a": 1, "b": 2})
    {'a': 3, 'b': 7}
    """
    total = sum(shares.values())
    return dict(zip(shares, round_shares([whole * share for share in shares.values()], total), strict=True))
