"""Decide which recorded rows can be placed in time, and say of the others why not (DESIGN 3.13).

Placing never invents a time. A span that must be too long is cut where its stream goes on; a row without a time is
counted and left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from longpole.timeline.columns import Kind
from longpole.units import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]


class Overlong(NamedTuple):
    """Device spans with impossible durations.

    Attributes:
        row: `[M]` int64: their rows.
        end_ns: `[M]` int64: the next start on their stream.
    """

    row: Ints
    end_ns: Ints


def overlong_on_stream(
    lane: NDArray[np.int32], start_ns: Ints, end_ns: Ints, correlation: Ints, settings: Settings
) -> Overlong:
    """Find device spans that run on although their stream had already gone on to later work.

        stream 0  ├─ a ─┤├────────── b: 3.4 s ──────────── …
                             ├ a ┤ ├ b ┤ ├ a ┤               b cannot have lasted that long

    Spans of one stream run in order. Later ones may start a little early (programmatic dependent launch) and the
    nodes of one graph launch may run side by side under one stream number, so a span is impossible only if at least
    two spans of other launches start inside it and it is ten times longer than every other span of its stream that is
    not itself so. The bad spans stretch the record too, hence no threshold relative to the record.

    Args:
        lane: `[N]` int32: (device, stream) as one number.
        start_ns: `[N]` int64 ns.
        end_ns: `[N]` int64 ns.
        correlation: `[N]` int64: the launch, -1 where unknown.
        settings: `overlong_factor`, `overrun_min_ns`.
    """
    order = np.lexsort((start_ns, lane))
    lane_s, start_s, end_s, launch_s = lane[order], start_ns[order], end_ns[order], correlation[order]
    inside = _successors_inside(lane_s, start_s, end_s, launch_s)
    suspects = np.flatnonzero(inside >= 2)
    if len(suspects) == 0:
        return Overlong(np.empty(0, np.int64), np.empty(0, np.int64))
    dur_ns = end_s - start_s
    normal = np.ones(len(order), np.bool_)
    normal[suspects] = False
    longest_ns = np.zeros(int(lane_s.max()) + 1, np.int64)
    np.maximum.at(longest_ns, lane_s[normal], dur_ns[normal])
    bad = suspects[dur_ns[suspects] >= settings.overlong_factor * np.maximum(longest_ns[lane_s[suspects]], 1)]
    return Overlong(order[bad].astype(np.int64), start_s[bad + 1])


def _successors_inside(lane: NDArray[np.int32], start_ns: Ints, end_ns: Ints, launch: Ints) -> NDArray[np.int64]:
    """Count, of sorted spans, the later ones of the lane and of other launches that start before the end: 0, 1 or 2."""
    count = np.zeros(len(lane), np.int64)
    for ahead in (1, 2):
        if len(lane) <= ahead:
            break
        other = (launch[ahead:] != launch[:-ahead]) | (launch[ahead:] < 0)
        inside = (lane[ahead:] == lane[:-ahead]) & (start_ns[ahead:] < end_ns[:-ahead]) & other
        count[:-ahead] += inside
    return count


def overrunning(start_ns: Ints, end_ns: Ints, least_ns: Ints, settings: Settings) -> Flags:
    """Find spans that end absurdly long after everything else in the record ended.

    Args:
        start_ns: `[N]` int64 ns: starts of all rows of the record.
        end_ns: `[N]` int64 ns.
        least_ns: `[N]` int64 ns: by how much each row must overrun at least.
        settings: A span overruns by more than `overrun_factor` times what the other rows span.

    Returns:
        `[N]` bool.
    """
    bad = np.zeros(len(start_ns), np.bool_)
    if not (end_ns - start_ns > least_ns).any():
        return bad
    for _ in range(_MAX_OVERRUN_GROUPS):
        found = _last_overrun(start_ns, np.where(bad, start_ns, end_ns), least_ns, settings)
        if not found.any():
            break
        bad |= found
    return bad


_MAX_OVERRUN_GROUPS: Final = 8  # groups of bad spans, each far beyond the one before


def _last_overrun(start_ns: Ints, end_ns: Ints, least_ns: Ints, settings: Settings) -> Flags:
    """Find the rows behind the last jump in the ends, where less than half of the rows lie behind it."""
    bad = np.zeros(len(start_ns), np.bool_)
    ends = np.sort(end_ns)
    half = len(ends) // 2
    if half == 0:
        return bad
    span_ns = np.maximum(ends[half - 1 : -1] - int(start_ns.min()), 1)
    jumps = np.flatnonzero(np.diff(ends[half - 1 :]) > _overrun_limit_ns(span_ns, settings))
    if len(jumps) == 0:
        return bad
    last = jumps[-1]
    excess_ns = end_ns - np.maximum(start_ns, ends[half - 1 + last])
    return (excess_ns > _overrun_limit_ns(span_ns[last], settings)) & (excess_ns > least_ns)


def _overrun_limit_ns(span_ns: NDArray[np.int64] | np.int64, settings: Settings) -> NDArray[np.float64]:
    return np.maximum(settings.overrun_factor * np.asarray(span_ns, np.float64), settings.overrun_min_ns)


def strays(start_ns: Ints, end_ns: Ints, settings: Settings) -> Flags:
    """Find rows that lie absurdly far from where the record is, such as those whose clock read 0.

        ├ 1970 ┤                      … 54 years …                      ├───── record ─────┤

    The starts are cut into blocks wherever nothing starts for an hour; the block with the most rows is the record. A
    row that reaches it, or comes nearer than an overrun may go, is no stray. An hour is not asked for where a few rows
    start at exactly 0.

    Args:
        start_ns: `[N]` int64 ns.
        end_ns: `[N]` int64 ns.
        settings: `host_overrun_min_ns`, `overrun_factor`, `stray_max_share`.

    Returns:
        `[N]` bool.
    """
    stray = _at_zero(start_ns, end_ns, settings)
    if stray.any():
        kept = np.flatnonzero(~stray)
        stray[kept] = strays(start_ns[kept], end_ns[kept], settings)
        return stray
    if len(start_ns) == 0 or int(start_ns.max()) - int(start_ns.min()) <= settings.host_overrun_min_ns:
        return stray
    order = np.argsort(start_ns, kind="stable")
    opens = np.diff(start_ns[order]) > settings.host_overrun_min_ns
    if not opens.any():
        return stray
    block = np.concatenate([np.zeros(1, np.int64), np.cumsum(opens)])
    counts = np.bincount(block)
    record = order[block == counts.argmax()]
    first_ns, last_ns = int(start_ns[record[0]]), int(start_ns[record[-1]])
    limit_ns = int(max(settings.host_overrun_min_ns, settings.overrun_factor * (last_ns - first_ns)))
    few = counts <= max(_STRAYS_ALWAYS, settings.stray_max_share * len(start_ns))
    for number in np.flatnonzero(np.arange(len(counts)) != counts.argmax()).tolist():
        rows = order[block == number]
        at_zero = first_ns > _EPOCH_LIKELY_NS and int(np.abs(start_ns[rows]).max()) < _NEAR_ZERO_NS
        if few[number] or at_zero:
            far = (end_ns[rows] < first_ns - limit_ns) | (start_ns[rows] > last_ns + limit_ns)
            stray[rows[far]] = True
    return stray


def _at_zero(start_ns: Ints, end_ns: Ints, settings: Settings) -> Flags:
    """Find rows that start at exactly 0, where all others begin later by far more than they span: no clock was read.

    ├ 0 ┤             … a hundred times the record …              ├── record ──┤
    """
    at_zero = start_ns == 0
    n_zero = int(at_zero.sum())
    none = np.zeros(len(start_ns), np.bool_)
    if n_zero == 0 or n_zero * 2 >= len(start_ns):
        return none
    first_ns, last_ns = int(start_ns[~at_zero].min()), int(start_ns[~at_zero].max())
    reach_ns = int(end_ns[at_zero].max())
    is_far = first_ns - reach_ns > settings.overrun_factor * max(last_ns - first_ns, 1)
    return at_zero if is_far else none


_STRAYS_ALWAYS: Final = 3
_EPOCH_LIKELY_NS: Final = 10**18  # September 2001
_NEAR_ZERO_NS: Final = 24 * 3600 * NS_PER_S


def untimed(start_ns: Ints, end_ns: Ints, kind: NDArray[np.uint8]) -> Flags:
    """Find device rows that the profiler could not time: CUPTI writes 0 for start and end."""
    on_device = (kind == Kind.KERNEL) | (kind == Kind.COPY) | (kind == Kind.MEMSET)
    return on_device & (start_ns == 0) & (end_ns == 0)


def unclosed_frames(end_ns: Ints, kind: NDArray[np.uint8], unfinished: Flags) -> Flags:
    """Find Python frames that the profiler's stop closed.

    They end at the very last stamp of the record, behind all that is no frame. A frame that ends together with an
    operator or an annotation may simply have been the last thing that ran.

    Args:
        end_ns: `[N]` int64 ns: ends of all rows.
        kind: `[N]` kinds.
        unfinished: `[N]` bool: the exporter itself says that the frame had not finished.
    """
    python = kind == Kind.PYTHON
    if not python.any():
        return python
    last_ns = int(end_ns[python].max())
    others_ns = int(end_ns[~python].max()) if (~python).any() else last_ns
    return python & (unfinished | ((end_ns == last_ns) & (last_ns > others_ns)))


def duplicates(keys: tuple[NDArray[np.int64] | NDArray[np.int32], ...]) -> Flags:
    """Find rows that repeat an earlier row in every key.

    Args:
        keys: Columns of equal length; two rows are the same event if they agree in all of them.

    Returns:
        `[N]` bool: True for the second and later copies, in row order.
    """
    repeated = np.zeros(len(keys[0]), np.bool_)
    suspects = _same_hash(keys)
    if len(suspects) == 0:
        return repeated
    order = suspects[np.lexsort((suspects, *(key[suspects] for key in keys)))]
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    repeated[order[1:][same]] = True
    return repeated


_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: spreads neighbours apart


def _same_hash(keys: tuple[NDArray[np.int64] | NDArray[np.int32], ...]) -> NDArray[np.intp]:
    """Return the rows whose keys hash alike, ascending: a cheap sieve before the exact comparison."""
    mixed = _hashes(keys)
    mixed.sort()
    twice = np.unique(mixed[1:][mixed[1:] == mixed[:-1]])
    if len(twice) == 0:
        return np.empty(0, np.intp)
    return np.flatnonzero(np.isin(_hashes(keys), twice))


def _hashes(keys: tuple[NDArray[np.int64] | NDArray[np.int32], ...]) -> NDArray[np.uint64]:
    """Hash rows, some at a time, so that what lies between costs little memory."""
    mixed = np.zeros(len(keys[0]), np.uint64)
    for low in range(0, len(mixed), _HASHED_AT_ONCE):
        part = mixed[low : low + _HASHED_AT_ONCE]
        for key in keys:
            part ^= key[low : low + _HASHED_AT_ONCE].astype(np.int64).view(np.uint64)
            part *= _MIX
            part ^= part >> np.uint64(29)
    return mixed


_HASHED_AT_ONCE: Final = 1 << 16
