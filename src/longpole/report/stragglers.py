"""Which ranks others waited for, and why they were late: more work, slower work, the host, input, or a pause.

A late rank is compared, in the units in which it was the last, with the median of the other ranks: what took longer
there is why it was late. That is the unit as a whole, not the stretch since the synchronisation before; within a unit
the parts that a rank makes up for again cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.records.collectives import StragglerEntry
from longpole.stats import median_ns
from longpole.timeline.intervals import union_by_group
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.digest.members import Members
    from longpole.digest.rank_digest import RankDigest, UnitDigest
    from longpole.settings import Settings

_OBJECTS: Final = ("input", "artifact", "state", "output", "unknown")
_HOST: Final = ("host.gc", "host.alloc", "host.compile", "host.sync", "host.dispatch", "host.python")
_TO_DEVICE: Final = ("launch_call", "launch_latency", "kernel_gap")
_EXPLAINS_MIN: Final = 0.25  # of the lateness: what explains less of it is no reason, whatever compute hides
_SHOWN_MIN: Final = 0.05  # parts below this share of the largest are no evidence
_REASON_WORDS: Final = {
    "input": "its input takes {} longer than the others'",
    "output": "it spends {} more than the others on saving, logging or writing",
    "artifact": "it spends {} more than the others on loading weights or programs",
    "state": "it spends {} more than the others on moving state",
    "pause": "it pauses for {} more than the others, and nothing recorded says why",
}


def straggler_entries(members: Members, digests: Sequence[RankDigest], settings: Settings) -> list[StragglerEntry]:
    """Return the ranks that kept others waiting, the one that costs most first."""
    found = _late_ranks(members, settings, _mean_wall_ns(digests, members.units))
    if not found:
        return []
    units = _units_by_name(digests)
    on_cpu = {digest.rank: digest.rows[0].device == "cpu" for digest in digests}
    entries = [_entry(replace(late, on_cpu=on_cpu[late.rank]), digests, units, settings) for late in found]
    return sorted(entries, key=lambda entry: (-entry.caused_ns_per_unit, entry.rank))


@dataclass(frozen=True, slots=True)
class _Late:
    """A late rank: what it caused per unit and in all, in which units it was the worst, and how late."""

    rank: int
    caused_ns: int
    share: float
    units: list[str]
    late_ns: int
    noun_count: int
    on_cpu: bool = False


def _mean_wall_ns(digests: Sequence[RankDigest], names: list[str]) -> int:
    walls = [u.ledger.wall_ns for digest in digests for u in digest.rows[0].units if u.name in names]
    return sum(walls) // len(walls) if walls else 0


def _late_ranks(members: Members, settings: Settings, wall_ns: int) -> list[_Late]:
    split, rank_of = members.across.split, members.across.matched.rank[members.place]
    culprit = split.culprit[members.operation]
    skew_ns = np.where(culprit >= 0, np.maximum(split.skew_ns[members.place], 0), 0)
    start_ns = split.start_ns[members.place]
    n_units = len(members.units)
    recorded = max(len(np.unique(members.unit)), 1)
    all_ns = _longest_waits(members.unit, rank_of, start_ns, skew_ns, n_units)
    total_ns = int(skew_ns.sum())
    late = []
    for rank in np.unique(culprit[culprit >= 0]).tolist():
        mine = culprit == rank
        own_ns = _longest_waits(members.unit[mine], rank_of[mine], start_ns[mine], skew_ns[mine], n_units)
        caused_ns = int(own_ns.sum()) // recorded
        if caused_ns < settings.waiting_min_share * wall_ns or caused_ns == 0:
            continue
        units = np.flatnonzero((2 * own_ns > all_ns) & (own_ns > 0)).tolist()
        if units:
            names = [members.units[unit] for unit in units]
            share = int(skew_ns[mine].sum()) / total_ns if total_ns else 0.0
            late.append(_Late(rank, caused_ns, share, names, median_ns(own_ns[units].tolist()), recorded))
    return late


def _longest_waits(
    unit: NDArray[np.int64],
    rank: NDArray[np.int32],
    start_ns: NDArray[np.int64],
    skew_ns: NDArray[np.int64],
    n_units: int,
) -> NDArray[np.int64]:
    """Return, for each unit, how long the rank that waits longest waits, operations at once counted once: `[U]`."""
    longest = np.zeros(n_units, np.int64)
    if len(unit) == 0:
        return longest
    width = int(rank.max()) + 1
    group = (unit * width + rank).astype(np.int32)
    order = np.lexsort((start_ns, group))
    groups, low_ns, high_ns = union_by_group(group[order], start_ns[order], (start_ns + skew_ns)[order])
    total = np.zeros(n_units * width, np.int64)
    np.add.at(total, groups, high_ns - low_ns)
    return np.asarray(total.reshape(n_units, width).max(axis=1))


def _units_by_name(digests: Sequence[RankDigest]) -> dict[int, dict[str, UnitDigest]]:
    return {digest.rank: {unit.name: unit for unit in digest.rows[0].units} for digest in digests}


def _entry(
    late: _Late,
    digests: Sequence[RankDigest],
    units: dict[int, dict[str, UnitDigest]],
    settings: Settings,
) -> StragglerEntry:
    others = [digest.rank for digest in digests if digest.rank != late.rank]
    beyond = _beyond(late, units, others)
    evidence = _evidence(beyond)
    reason, words = _reason(late, beyond, units, others, settings)
    kind = units[late.rank][late.units[0]].kind if late.units[0] in units[late.rank] else "unit"
    noun = {"trace": "record"}.get(kind, kind)
    often = f" in {len(late.units)} of {late.noun_count} {noun}s" if len(late.units) < late.noun_count else ""
    says = f"rank {late.rank} keeps others waiting {format_ns(late.late_ns)} per {noun}{often}: {words}"
    return StragglerEntry(late.rank, reason, late.caused_ns, late.units, late.share, late.late_ns, evidence, says)


def _parts(unit: UnitDigest) -> dict[str, int]:
    """Return what a unit's time was spent on; in collectives a rank waits, so they are never the reason."""
    ledger = unit.ledger
    parts = {"compute": ledger.device.compute_ns, "collective": ledger.objects["collective"].exposed_ns}
    parts.update({name: ledger.objects[name].exposed_ns for name in _OBJECTS})
    parts.update({name: ledger.idle_ns[name] for name in (*_HOST, *_TO_DEVICE)})
    return parts


def _beyond(late: _Late, units: dict[int, dict[str, UnitDigest]], others: list[int]) -> dict[str, int]:
    """Return how much more of each part the late rank spent than the others' median, mean over its units, in ns."""
    total: dict[str, int] = {}
    n = 0
    for name in late.units:
        own = units[late.rank].get(name)
        rest = [_parts(units[rank][name]) for rank in others if name in units[rank]]
        if own is None or not rest:
            continue
        n += 1
        for part, own_ns in _parts(own).items():
            total[part] = total.get(part, 0) + own_ns - median_ns([parts[part] for parts in rest])
    return {part: value // max(n, 1) for part, value in total.items()}


def _evidence(beyond: dict[str, int]) -> dict[str, int]:
    own = {part: value for part, value in beyond.items() if part != "collective"}
    largest = max(own.values(), default=0)
    kept = {part: value for part, value in own.items() if value > 0 and value >= _SHOWN_MIN * largest}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def _reason(
    late: _Late,
    beyond: dict[str, int],
    units: dict[int, dict[str, UnitDigest]],
    others: list[int],
    settings: Settings,
) -> tuple[str, str]:
    """Return why a rank was late, by what took it longer than the others, and that in words."""
    host_ns = sum(beyond.get(name, 0) for name in (*_HOST, *_TO_DEVICE))
    sums = {"compute": beyond.get("compute", 0), "host": host_ns}
    sums.update({name: beyond.get(name, 0) for name in _OBJECTS})
    largest = max(sums, key=lambda name: sums[name])
    excess_ns = sums[largest]
    if excess_ns <= 0:
        return "unknown", "nothing that it did takes longer than on the others; the record does not say why it is late"
    # What the others waited while they computed is no part of what the rank did longer.
    to_explain_ns = min(late.late_ns, max(-beyond.get("collective", 0), 0) or late.late_ns)
    if 2 * excess_ns < to_explain_ns or excess_ns < _EXPLAINS_MIN * late.late_ns:
        return "unknown", f"all that takes it longer than the others explains only {format_ns(excess_ns)} of that"
    if largest == "compute":
        return _compute_reason(late, units, others, excess_ns, settings)
    if largest == "host":
        part = max((*_HOST, *_TO_DEVICE), key=lambda name: beyond.get(name, 0))
        idle = "its main thread runs no operator" if late.on_cpu else "its device has nothing to do"
        return "host", f"{idle} for {format_ns(excess_ns)} more{_HOST_WORDS[part]}"
    name = "pause" if largest == "unknown" else largest
    return name, _REASON_WORDS[name].format(format_ns(excess_ns))


_HOST_WORDS: Final = {
    "host.gc": ", mostly while garbage is collected",
    "host.alloc": ", mostly while memory is allocated or freed",
    "host.compile": ", mostly while something is compiled, captured or searched",
    "host.sync": ", mostly after the host waited for it",
    "host.dispatch": ", mostly in operators before their launches",
    "host.python": ", mostly Python between operators",
    "launch_call": ", mostly in the calls that launch work",
    "launch_latency": ", mostly from launches to their starts",
    "kernel_gap": ", mostly between kernels",
}


def _compute_reason(
    late: _Late, units: dict[int, dict[str, UnitDigest]], others: list[int], excess_ns: int, settings: Settings
) -> tuple[str, str]:
    """Tell more work from slower work by numbers that a slow device does not change."""
    least = 1 + settings.more_work_min_share
    longer = f"its compute takes {format_ns(excess_ns)} longer"
    kernels, elements = _ratio(late, units, others, "kernels"), _ratio(late, units, others, "elements")
    if elements is not None and elements >= least:
        return "more_work", f"{longer}, and its inputs are {elements:.2f} times as large: more work"
    if kernels is not None and kernels >= least:
        return "more_work", f"{longer}, in {kernels:.2f} times as many kernels: more work"
    if elements is None:
        return "unknown", f"{longer} in as many kernels; shapes are not recorded, so more work or slower work"
    if kernels is None:
        return "unknown", longer
    compute = _ratio(late, units, others, "compute_ns") or 1.0
    return "slower_work", f"{longer} for as many kernels of the same shapes ({compute:.2f} times): a slower device"


def _ratio(late: _Late, units: dict[int, dict[str, UnitDigest]], others: list[int], what: str) -> float | None:
    """Return a figure of the late rank over the others' median, median over its units; None where not recorded."""
    ratios = []
    for name in late.units:
        own = units[late.rank].get(name)
        rest = [_figure(units[rank][name], what) for rank in others if name in units[rank]]
        if own is None or not rest or median_ns(rest) <= 0 or _figure(own, what) < 0:
            continue
        ratios.append(_figure(own, what) / median_ns(rest))
    return sorted(ratios)[len(ratios) // 2] if ratios else None


def _figure(unit: UnitDigest, what: str) -> int:
    return unit.ledger.device.compute_ns if what == "compute_ns" else int(getattr(unit, what))
