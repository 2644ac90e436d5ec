"""Which units of a run are steady, when each was complete on all ranks, and what its period was (DESIGN 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from longpole.analyses.one_offs import COMPILATION
from longpole.timeline.integrity import Example, Finding
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from longpole.digest.rank_digest import RankDigest, UnitDigest
    from longpole.ranks.clocks import Clock
    from longpole.settings import Settings


@dataclass(slots=True)
class Steady:
    """What is known of a run's units.

    Attributes:
        offset_ns: Rank -> what to add to the rank's own times to get times since the run's base.
        aligned: The ranks' clocks have a common base.
        clocks: Rank -> its clock, empty where nothing but base times was asked for.
        moved: Names of leading units that belong to the head on all ranks.
        left_out: (unit, why, rank) of units that no mean counts; rank None for all ranks.
        periods: Name -> period of the run's unit, only of units that have one.
        completion: Name -> when the unit was complete on all ranks, in order.
        findings: About the ranks' units together.
    """

    offset_ns: dict[int, int]
    aligned: bool
    moved: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str, int | None]] = field(default_factory=list)
    periods: dict[str, int] = field(default_factory=dict)
    completion: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    clocks: dict[int, Clock] = field(default_factory=dict)

    def at(self, rank: int, time_ns: int) -> int:
        """Return the time since the run's base of a rank's own time, its clock's drift included."""
        return self.clocks[rank].at(time_ns) if rank in self.clocks else time_ns + self.offset_ns[rank]


def find_steady(digests: list[RankDigest], settings: Settings, clocks: dict[int, Clock] | None = None) -> Steady:
    """Bring the ranks' units together.

    Args:
        digests: The ranks, each once.
        settings: Thresholds.
        clocks: Rank -> its clock, as far as collectives tell; None to go by base times alone.
    """
    steady = _aligned(digests) if clocks is None or len(digests) == 1 else _by_clocks(digests, clocks)
    if len(digests) > 1 and steady.aligned:
        _move_leading(digests, steady, settings)
    _mark(digests, steady)
    _compare_units(digests, steady)
    _measure_periods(digests, steady)
    return steady


def real_units(units: list[UnitDigest]) -> list[UnitDigest]:
    """Return the units of a row without head and tail."""
    return [unit for unit in units if unit.kind not in ("head", "tail")]


def _aligned(digests: list[RankDigest]) -> Steady:
    """Find the run's base: the earliest recorded time on clocks that have an epoch, else each rank's own start."""
    aligned = all(digest.base_ns is not None for digest in digests)
    if aligned:
        base_ns = min((digest.base_ns or 0) + digest.start_ns for digest in digests)
        return Steady({digest.rank: (digest.base_ns or 0) - base_ns for digest in digests}, aligned=True)
    steady = Steady({digest.rank: -digest.start_ns for digest in digests}, aligned=len(digests) == 1)
    if len(digests) > 1:
        _complain(steady, [digest for digest in digests if digest.base_ns is None])
    return steady


def _by_clocks(digests: list[RankDigest], clocks: dict[int, Clock]) -> Steady:
    """Take the clocks that matched collectives gave, or confirmed."""
    lost = [digest for digest in digests if clocks[digest.rank].method == "none"]
    offsets = {rank: clock.offset_ns for rank, clock in clocks.items()}
    steady = Steady(offsets, aligned=not lost, clocks=clocks)
    if lost:
        _complain(steady, [digest for digest in lost if digest.base_ns is None] or lost)
    return steady


def _complain(steady: Steady, lacking: list[RankDigest]) -> None:
    """Say which ranks' clocks cannot be aligned."""
    ranks = ", ".join(str(digest.rank) for digest in lacking[:8])
    message = (
        f"rank {ranks} does not say what its times count from, and no matched collectives tell; no figure compares"
        " times across ranks"
    )
    steady.findings.append(
        Finding("clock.not_aligned", "warn", None, len(lacking), Example(lacking[0].path), message, ["/clock"])
    )


def _move_leading(digests: list[RankDigest], steady: Steady, settings: Settings) -> None:
    """Move leading units that overlap the spread of the ranks' recording starts into the head.

    rank 0  ├───── recorded: unit 4 ─────┼──── unit 5 ────┤
    rank 1               ├── unit 4 ─────┼──── unit 5 ────┤
    spread  ├────────────┤                 unit 4 is moved on both
    """
    starts = {digest.rank: digest.start_ns + steady.offset_ns[digest.rank] for digest in digests}
    last_ns, first_ns = max(starts.values()), min(starts.values())
    walls = sorted(unit.ledger.wall_ns for digest in digests for unit in real_units(digest.rows[0].units))
    if not walls or last_ns == first_ns:
        return
    limit_ns = settings.start_spread_max_share * walls[(len(walls) - 1) // 2]
    touched: set[str] = set()
    names: set[str] = set()
    for digest in digests:
        offset_ns = steady.offset_ns[digest.rank]
        for unit in real_units(digest.rows[0].units):
            names.add(unit.name)
            start_ns = unit.start_ns + offset_ns
            overlap_ns = min(start_ns + unit.ledger.wall_ns, last_ns) - max(start_ns, first_ns)
            if overlap_ns > limit_ns:
                touched.add(unit.name)
    if not touched:
        return
    touched |= {name for digest in digests for name in _before_last(digest, touched)}
    spread = format_ns(last_ns - first_ns)
    late = max(starts, key=lambda rank: starts[rank])
    example = Example(next(digest.path for digest in digests if digest.rank == late))
    if touched >= names:
        message = (
            f"the ranks began to record {spread} apart (rank {late} last) and no unit lies behind that; all are kept"
        )
        voids = ["/collectives", "/unit/period_ns"]
        steady.findings.append(Finding("rank.start_spread", "void", None, len(touched), example, message, voids))
        return
    steady.moved = [unit.name for unit in real_units(digests[0].rows[0].units) if unit.name in touched]
    steady.moved += sorted(touched - set(steady.moved))
    message = (
        f"the ranks began to record {spread} apart (rank {late} last); the head takes in"
        f" {format_count(len(touched), 'leading unit')}, which tables of names and gaps still cover"
    )
    steady.findings.append(Finding("rank.start_spread", "note", None, len(touched), example, message, []))


def _before_last(digest: RankDigest, touched: set[str]) -> list[str]:
    """Return the units up to the last touched one: what precedes a unit of the head is head."""
    names = [unit.name for unit in real_units(digest.rows[0].units)]
    places = [place for place, name in enumerate(names) if name in touched]
    return names[: places[-1]] if places else []


def _mark(digests: list[RankDigest], steady: Steady) -> None:
    """List the units that no mean counts, once for all ranks where the reason is the same on all."""
    reasons: dict[tuple[str, str], list[int]] = {}
    for digest in digests:
        recurring = _recurring(digest)
        for unit in real_units(digest.rows[0].units):
            once = "" if unit.one_off in recurring else unit.one_off
            why = "profiler_start_skew" if unit.name in steady.moved else once or _incomplete(unit)
            if why:
                reasons.setdefault((unit.name, why), []).append(digest.rank)
    for (name, why), ranks in reasons.items():
        everywhere = len(ranks) == len(digests)
        steady.left_out += [(name, why, None)] if everywhere else [(name, why, rank) for rank in ranks]


def _recurring(digest: RankDigest) -> set[str]:
    """Return what most units of a rank pay for: that is no one-off, and units without it would be the odd ones.

    A search in most units is still measured by the units whose shapes were known already.
    """
    units = real_units(digest.rows[0].units)
    n = sum(unit.one_off == COMPILATION for unit in units)
    return {COMPILATION} if 2 * n > len(units) > _TOO_FEW else set()


_TOO_FEW: Final = 2


def _incomplete(unit: UnitDigest) -> str:
    return "device_spans_missing" if unit.incomplete else ""


def _compare_units(digests: list[RankDigest], steady: Steady) -> None:
    """Complain where ranks recorded other units than the first one did."""
    first = {unit.name for unit in real_units(digests[0].rows[0].units)}
    others = [d for d in digests if {unit.name for unit in real_units(d.rows[0].units)} != first]
    if others:
        message = (
            f"{len(others)} ranks recorded other units of work than rank {digests[0].rank},"
            f" the first one rank {others[0].rank}"
        )
        steady.findings.append(
            Finding(
                "rank.units_differ", "warn", None, len(others), Example(others[0].path), message, ["/unit/period_ns"]
            )
        )


def _measure_periods(digests: list[RankDigest], steady: Steady) -> None:
    """Measure the run's periods: from one unit's completion on all ranks to the next one's.

    A run of a single unit takes from its start to its completion. Without aligned clocks there is no common
    completion, and the first rank's own stands in.
    """
    seen = digests if steady.aligned else digests[:1]
    common = set.intersection(*({unit.name for unit in real_units(d.rows[0].units)} for d in seen))
    order = [unit.name for unit in real_units(seen[0].rows[0].units) if unit.name in common]
    skip = {name for name, _, _ in steady.left_out}
    starts: dict[str, int] = {}
    for digest in seen:
        for row in digest.rows:
            for unit in real_units(row.units):
                done_ns = steady.at(digest.rank, unit.completion_ns)
                steady.completion[unit.name] = max(steady.completion.get(unit.name, done_ns), done_ns)
                start_ns = steady.at(digest.rank, unit.start_ns)
                starts[unit.name] = min(starts.get(unit.name, start_ns), start_ns)
    if len(order) == 1 and order[0] not in skip:
        steady.periods[order[0]] = steady.completion[order[0]] - starts[order[0]]
    for before, name in pairwise(order):
        period_ns = steady.completion[name] - steady.completion[before]
        if name in skip:
            continue
        if period_ns > 0:
            steady.periods[name] = period_ns
        else:
            steady.left_out.append((name, "not_separable", None))
