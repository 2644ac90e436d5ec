"""Bring the ranks' clocks together: base times, then the ends of matched collectives (DESIGN 3.8).

All members of a collective that waits for all end at nearly the same moment, whenever each of them arrived. So the
distances between their recorded ends are the distances between their clocks, and how much those scatter is how far
they can be trusted.

rank 0   ├─────── waits ───────┼─ moves ─┤
rank 1                 ├ waits ┼─ moves ─┤┤ distance of the ends: clock + a little noise
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from longpole.ranks.matching import Why
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.ranks.matching import Matched
    from longpole.records.instances import Instances
    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]

Method: TypeAlias = Literal["base_time", "matched_ends", "none"]

WAITS_FOR_ALL: Final = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "dispatch",
    "combine",
)
"""Kinds that no member can finish before every member has begun; a broadcast's root, a sender can (DESIGN 3.8)."""

# A member of these is done when its own bytes are there, before or after the others.
_PAIRS: Final = ("send_recv",)
_EXCHANGES: Final = ("all_to_all", "dispatch", "combine", *_PAIRS)

_NORMAL: Final = 1.4826  # median absolute deviation -> standard deviation, of a normal distribution
_MEDIAN: Final = 1.2533  # standard error of a median over that of a mean, of a normal distribution
_ROUNDS: Final = 2  # of estimating against the common ends of all ranks
_PAIRS_MAX: Final = 300  # points of a slope estimate; the pairs are their square
_US: Final = 1000


@dataclass(frozen=True, slots=True)
class Clock:
    """How one rank's times become times of the run.

    Attributes:
        rank: The rank.
        offset_ns: What to add to its file-base times, at `reference_ns`.
        correction_ns: The part of the offset that base times do not explain.
        drift: How much faster the run's clock goes, in ns per ns.
        reference_ns: The rank's own time at which `offset_ns` holds.
        uncertainty_ns: How far off the clock may be within the record, None where nothing measures that.
        method: Where the offset comes from.
    """

    rank: int
    offset_ns: int
    correction_ns: int = 0
    drift: float = 0.0
    reference_ns: int = 0
    uncertainty_ns: int | None = None
    method: Method = "none"

    def at(self, time_ns: int) -> int:
        """Return the time of the run of one time."""
        return time_ns + self.offset_ns + round(self.drift * (time_ns - self.reference_ns))

    def to_run_ns(self, times_ns: Ints) -> Ints:
        """Return times of the run: `[N]` int64 ns."""
        shifted = times_ns + self.offset_ns
        if self.drift == 0.0:
            return shifted
        return shifted + np.rint(self.drift * (times_ns - self.reference_ns)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class RankTimes:
    """What a rank says about its clock.

    Attributes:
        base_ns: Epoch time of its time 0, None where not known.
        start_ns, end_ns: First and last recorded time.
        host: Name of its machine, empty where not known.
    """

    base_ns: int | None
    start_ns: int
    end_ns: int
    host: str = ""


def estimate_clocks(
    matched: Matched, instances: Mapping[int, Instances], times: Mapping[int, RankTimes], settings: Settings
) -> dict[int, Clock]:
    """Estimate every rank's clock against the lowest rank's.

    Base times stand unless matched ends contradict them by more than the ends' own uncertainty, and always between
    ranks of one host, which share a clock.

    Args:
        matched: The operations.
        instances: Rank -> its operations.
        times: Rank -> what it says of its clock.
        settings: Thresholds.

    Returns:
        Rank -> clock. Times of the run count from the earliest recorded time where clocks are known, else each rank's
        own time counts from its start.
    """
    reference = min(times)
    have_bases = all(mine.base_ns is not None for mine in times.values())
    bases = {rank: (mine.base_ns or 0) if have_bases else 0 for rank, mine in times.items()}
    shift = {rank: bases[rank] - bases[reference] for rank in times}
    measured = _measure(matched, instances, shift, reference, settings)
    if have_bases:
        clocks = {rank: _with_base(rank, times, shift, measured.get(rank), reference) for rank in times}
    else:
        clocks = {rank: _without_base(rank, measured.get(rank), reference) for rank in times}
    clocks = {rank: _of_one_host(clock, times, instances, reference) for rank, clock in clocks.items()}
    if not have_bases and all(clock.method == "none" for rank, clock in clocks.items() if rank != reference):
        clocks[reference] = Clock(reference, 0)
    aligned = [rank for rank, clock in clocks.items() if clock.method != "none"]
    first_ns = min((times[rank].start_ns + clocks[rank].offset_ns for rank in aligned), default=0)
    return {
        rank: _moved(clock, -first_ns) if clock.method != "none" else Clock(rank, -times[rank].start_ns)
        for rank, clock in clocks.items()
    }


def _moved(clock: Clock, by_ns: int) -> Clock:
    return replace(clock, offset_ns=clock.offset_ns + by_ns)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A clock by matched ends, in addition to base times; `n` ends measured it, of sends and receives `by_pairs`."""

    correction_ns: int
    drift: float
    reference_ns: int
    uncertainty_ns: int
    n: int
    by_pairs: bool = False


def _without_base(rank: int, measured: _Measured | None, reference: int) -> Clock:
    """Go by matched ends alone; the reference's own clock is the run's."""
    if rank == reference:
        return Clock(rank, 0, uncertainty_ns=0, method="matched_ends")
    if measured is None or measured.n < _ALONE_MIN or measured.by_pairs:
        return Clock(rank, 0)
    return _by_ends(rank, 0, measured)


def _with_base(
    rank: int,
    times: Mapping[int, RankTimes],
    shift: Mapping[int, int],
    measured: _Measured | None,
    reference: int,
) -> Clock:
    """Choose between base times and matched ends."""
    if rank == reference:
        return Clock(rank, 0, uncertainty_ns=0, method="base_time")
    if measured is None:
        return Clock(rank, shift[rank], method="base_time")
    one_host = bool(times[rank].host) and times[rank].host == times[reference].host
    drifted_ns = int(abs(measured.drift) * (times[rank].end_ns - times[rank].start_ns))
    departure_ns = abs(measured.correction_ns) + drifted_ns
    if one_host or measured.by_pairs:
        return Clock(rank, shift[rank], uncertainty_ns=max(departure_ns, measured.uncertainty_ns), method="base_time")
    if departure_ns <= measured.uncertainty_ns or measured.n < _ALONE_MIN:
        uncertainty_ns = max(measured.uncertainty_ns, departure_ns if measured.n < _ALONE_MIN else 0)
        return Clock(rank, shift[rank], uncertainty_ns=uncertainty_ns, method="base_time")
    return _by_ends(rank, shift[rank], measured)


def _of_one_host(
    clock: Clock, times: Mapping[int, RankTimes], instances: Mapping[int, Instances], reference: int
) -> Clock:
    """Trust base times between processes of one host whose records hold no device: their threads read one clock."""
    one_host = bool(times[clock.rank].host) and times[clock.rank].host == times[reference].host
    if clock.method != "base_time" or clock.uncertainty_ns is not None or not one_host:
        return clock
    on_host = all(not mine.on_device.any() for mine in instances.values())
    return replace(clock, uncertainty_ns=_US) if on_host else clock


_ALONE_MIN: Final = 3  # fewer ends agree with any clock


def _by_ends(rank: int, shift_ns: int, measured: _Measured) -> Clock:
    return Clock(
        rank,
        shift_ns + measured.correction_ns,
        measured.correction_ns,
        measured.drift,
        measured.reference_ns,
        measured.uncertainty_ns,
        "matched_ends",
    )


def _measure(
    matched: Matched,
    instances: Mapping[int, Instances],
    shift: Mapping[int, int],
    reference: int,
    settings: Settings,
) -> dict[int, _Measured]:
    """Measure the ranks' clocks by the ends of the collectives that they share, directly or through other ranks.

    Ranks that share none, such as the stages of a bare pipeline, are measured by their sends and receives: how well
    base times explain those is how far they can be trusted, but as a buffered send ends on its own, no clock is set
    by them.
    """
    by_all = _by_members(
        _usable_members(matched, instances, WAITS_FOR_ALL), matched, instances, shift, reference, settings
    )
    both = (*WAITS_FOR_ALL, *_PAIRS)
    by_both = _by_members(_usable_members(matched, instances, both), matched, instances, shift, reference, settings)
    return {**{rank: replace(one, by_pairs=True) for rank, one in by_both.items()}, **by_all}


def _by_members(
    members: NDArray[np.int64],
    matched: Matched,
    instances: Mapping[int, Instances],
    shift: Mapping[int, int],
    reference: int,
    settings: Settings,
) -> dict[int, _Measured]:
    """Measure the ranks' clocks by the ends of some members."""
    if len(members) == 0:
        return {}
    operation = matched.operation_of_member()[members]
    rank = matched.rank[members].astype(np.int64)
    own_end_ns = matched.column(instances, "end_ns")[members]
    end_ns = own_end_ns + np.array([shift[r] for r in rank.tolist()], np.int64)
    # Small numbers from here on, so that floats hold them exactly.
    zero_ns = {int(r): int(end_ns[rank == r].min()) for r in np.unique(rank)}
    if reference not in zero_ns:
        return {}
    relative = end_ns - np.array([zero_ns[r] for r in rank.tolist()], np.int64)
    resolution_ns = _resolution_ns(own_end_ns)
    fits = _spread_from(reference, operation, rank, relative)
    fits = _refine(fits, reference, operation, rank, relative)
    strict = ~np.isin(matched.kind, [COLLECTIVE_KINDS.index(name) for name in _EXCHANGES])
    with_strict = set(rank[strict[operation]].tolist())
    result = {}
    for r, fit in fits.items():
        if r == reference or fit.scale_ns > settings.clock_scatter_max_ns:
            continue
        correction_ns = round(fit.offset_ns) + zero_ns[reference] - zero_ns[r]
        spread_ns = settings.clock_scatter_factor * fit.scale_ns * float(np.sqrt(1 + 2 / fit.n))
        uncertainty_ns = round(spread_ns + _SLOPE_ERRORS * fit.slope_error * fit.half_span_ns) + resolution_ns
        if r not in with_strict:
            uncertainty_ns += settings.clock_exchange_ns
        middle_ns = round(fit.middle_ns) + zero_ns[r] - shift[r]
        result[r] = _Measured(correction_ns, fit.drift, middle_ns, uncertainty_ns, fit.n)
    return result


def _usable_members(matched: Matched, instances: Mapping[int, Instances], kinds: Sequence[str]) -> NDArray[np.int64]:
    """Return the members of operations on devices of some kinds.

    Those that are there end together whether or not all others have a trace, as long as it is certain that they are
    of one group. A host's threads end when the scheduler lets them, so a backend's spans are left out.
    """
    waiting = np.isin(matched.kind, [COLLECTIVE_KINDS.index(name) for name in kinds])
    certain = (matched.why == int(Why.NO_TRACE)) & (matched.group_of >= 0)
    good = waiting & ((matched.why == int(Why.COMPLETE)) | certain) & (np.diff(matched.first) > 1)
    on_device = matched.column(instances, "on_device") > 0
    return np.flatnonzero(good[matched.operation_of_member()] & on_device)


def _resolution_ns(times_ns: Ints) -> int:
    """Return the step in which times were written: a microsecond or a nanosecond."""
    return _US if not (np.diff(times_ns) % _US).any() else 1


@dataclass(frozen=True, slots=True)
class _Fit:
    """A rank's clock against the common ends: what to add at `middle_ns`, and how the ends scatter about it."""

    offset_ns: float
    drift: float
    middle_ns: float
    half_span_ns: float
    scale_ns: float
    slope_error: float
    n: int

    def added(self, time_ns: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.offset_ns + self.drift * (time_ns - self.middle_ns)


def _spread_from(reference: int, operation: Ints, rank: Ints, time_ns: Ints) -> dict[int, _Fit]:
    """Fit ranks in waves: first those that share collectives with the reference, then those that share with them."""
    n_ops = int(operation.max()) + 1
    fits = {reference: _Fit(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)}
    by_rank = {int(r): np.flatnonzero(rank == r) for r in np.unique(rank)}
    total, count = np.zeros(n_ops), np.zeros(n_ops)
    new = [reference]
    while new:
        for r in new:
            mine = by_rank[r]
            time = time_ns[mine].astype(np.float64)
            np.add.at(total, operation[mine], time + fits[r].added(time))
            np.add.at(count, operation[mine], 1)
        new = []
        for r, mine in by_rank.items():
            shared = mine[count[operation[mine]] > 0]
            if r in fits or len(shared) == 0:
                continue
            time = time_ns[shared].astype(np.float64)
            fits[r] = _fit(time, total[operation[shared]] / count[operation[shared]] - time)
            new.append(r)
    return fits


def _refine(fits: dict[int, _Fit], reference: int, operation: Ints, rank: Ints, time_ns: Ints) -> dict[int, _Fit]:
    """Fit every rank again, against the median of all members' ends, which scatters less than one rank's."""
    known = np.isin(rank, list(fits))
    if len(fits) <= 2:
        return fits
    operation, rank = operation[known], rank[known]
    time = time_ns[known].astype(np.float64)
    by_rank = {r: np.flatnonzero(rank == r) for r in fits}
    for _ in range(_ROUNDS):
        aligned = np.empty(len(time))
        for r, mine in by_rank.items():
            aligned[mine] = time[mine] + fits[r].added(time[mine])
        common = _medians(operation, aligned)
        against = {r: _fit(time[mine], common[operation[mine]] - time[mine]) for r, mine in by_rank.items()}
        own = against[reference]
        fits = {
            r: _Fit(
                fit.offset_ns - own.offset_ns - own.drift * (fit.middle_ns + fit.offset_ns - own.middle_ns),
                fit.drift - own.drift,
                fit.middle_ns,
                fit.half_span_ns,
                float(np.hypot(fit.scale_ns, own.scale_ns)) if r != reference else 0.0,
                float(np.hypot(fit.slope_error, own.slope_error)),
                fit.n,
            )
            for r, fit in against.items()
        }
    return fits


def _medians(operation: Ints, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of the values of each operation, by operation number."""
    order = np.lexsort((values, operation))
    ops, first, counts = np.unique(operation[order], return_index=True, return_counts=True)
    ordered = values[order]
    middle = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    out = np.zeros(int(operation.max()) + 1)
    out[ops] = middle
    return out


def _fit(time_ns: NDArray[np.float64], distance_ns: NDArray[np.float64]) -> _Fit:
    """Fit a constant, or a line where its slope stands out of the scatter: medians, so that outliers do not count.

    Source: Theil (1950), Sen (1968) for the slope.
    """
    n = len(time_ns)
    middle = float((time_ns.min() + time_ns.max()) / 2)
    half_span = float(time_ns.max() - time_ns.min()) / 2
    offset = float(np.median(distance_ns))
    scale = _scale(distance_ns - offset)
    flat = _Fit(offset, 0.0, middle, half_span, scale, 0.0, n)
    spread = float(np.std(time_ns))
    if n < _LINE_MIN or spread == 0:
        return flat
    slope = _slope(time_ns, distance_ns)
    level = float(np.median(distance_ns - slope * (time_ns - middle)))
    rest = _scale(distance_ns - level - slope * (time_ns - middle))
    error = _MEDIAN * rest / (spread * float(np.sqrt(n)))
    if not _SLOPE_FACTOR * error < abs(slope) < _DRIFT_MAX or rest > _RESTS_MAX * scale:
        # A drift that the ends do not prove may be there all the same.
        return replace(flat, slope_error=min(abs(slope), _DRIFT_MAX) / _SLOPE_ERRORS)
    return _Fit(level, slope, middle, half_span, rest, error, n)


_LINE_MIN: Final = 20
_SLOPE_FACTOR: Final = 6.0  # a slope within so many of its own standard errors is none: scatter is not independent
_RESTS_MAX: Final = 0.7  # and one that does not lessen the scatter is none either
_SLOPE_ERRORS: Final = 4.0  # how many of a slope's standard errors its ends may be off
_DRIFT_MAX: Final = 300e-6  # crystals of computers differ by less (ITU-T G.812 and data sheets: 100 in a million)


def _scale(rest: NDArray[np.float64]) -> float:
    return _NORMAL * float(np.median(np.abs(rest - np.median(rest))))


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if len(x) > _PAIRS_MAX:
        some = np.linspace(0, len(x) - 1, _PAIRS_MAX).astype(np.intp)
        x, y = x[some], y[some]
    i, j = np.triu_indices(len(x), 1)
    apart = x[j] != x[i]
    if not apart.any():
        return 0.0
    return float(np.median((y[j] - y[i])[apart] / (x[j] - x[i])[apart]))
