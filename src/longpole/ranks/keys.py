"""The key by which operations of different ranks are one: id, group and sequence, or order within unit and kind."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from longpole.records.instances import RECEIVE, SEND
from longpole.timeline.columns import NONE_NS
from longpole.vocabulary.objects import COLLECTIVE_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longpole.ranks.group_names import GroupNumbers
    from longpole.records.instances import Instances

    Ints: TypeAlias = NDArray[np.int64]

_P2P: Final = COLLECTIVE_KINDS.index("send_recv")
_BEFORE: Final = -2  # the unit of operations that were issued before the record began
_SAMPLES: Final = 64  # ends that a shift is judged by; more tell nothing new


@dataclass(slots=True)
class Rows:
    """All ranks' operations, one row each, by rank and start; `[N]` each, of the types in `_TYPES`.

    Attributes:
        rank, instance: Whose, and which of its.
        group: Number in the run's groups, -1 for none.
        unit: Number of the unit's name, -1 for none, -2 for operations issued before the record began.
        time_ns, end_ns: Start and end on clocks brought together as far as base times do that.
        is_pair: A send or receive that names its peer.
        channel: What else must agree: the two ranks of a pair, or the size of a backend's own span.
    """

    rank: NDArray[np.int32]
    instance: NDArray[np.int32]
    group: NDArray[np.int32]
    kind: NDArray[np.int8]
    sequence: Ints
    comms_id: Ints
    is_p2p: NDArray[np.int8]
    peer: NDArray[np.int32]
    bytes: Ints
    unit: NDArray[np.int32]
    time_ns: Ints
    end_ns: Ints
    channel: Ints
    is_pair: NDArray[np.bool_]

    def take(self, some: NDArray[np.int64]) -> Rows:
        """Return some rows."""
        return Rows(**{f.name: getattr(self, f.name)[some] for f in fields(self)})


def collect(
    instances: Mapping[int, Instances],
    numbers: GroupNumbers,
    unit_names: Mapping[int, Sequence[str]],
    offset_ns: Mapping[int, int] | None,
) -> Rows:
    """Put the ranks' tables one below the other, with groups and units numbered in common."""
    units: dict[str, int] = {}
    n_rows = sum(len(mine) for mine in instances.values())
    # Filled rank by rank: a thousand ranks' rows fill memory once, not twice.
    rows = Rows(**{name: np.empty(n_rows, dtype) for name, dtype in _TYPES.items()})
    low = 0
    for rank, mine in sorted(instances.items()):
        names = unit_names.get(rank, ())
        codes = np.array([units.setdefault(name, len(units)) for name in names] + [-1], np.int32)
        place = np.where(mine.unit < len(names), mine.unit, -1)
        shift_ns = (offset_ns or {}).get(rank, 0)
        is_pair = (mine.is_p2p > 0) & (mine.peer >= 0)
        part = slice(low, low + len(mine))
        rows.rank[part] = rank
        rows.instance[part] = np.arange(len(mine))
        rows.group[part] = np.array([*numbers.of_rank[rank], -1], np.int32)[mine.group]
        rows.unit[part] = _units_for_order(mine, codes[place])
        rows.time_ns[part] = mine.start_ns + shift_ns
        rows.end_ns[part] = mine.end_ns + shift_ns
        rows.channel[part] = np.where(is_pair, _pair_codes(mine, rank), np.where(mine.on_device == 0, mine.bytes, -1))
        rows.is_pair[part] = is_pair
        for name in ("kind", "sequence", "comms_id", "is_p2p", "peer", "bytes"):
            getattr(rows, name)[part] = mine.column(name)
        low += len(mine)
    return rows


def _pair_codes(mine: Instances, rank: int) -> Ints:
    """Return a number for the two ranks of each send or receive, and its direction between them."""
    peer, direction = mine.peer.astype(np.int64), mine.direction
    pair = np.minimum(peer, rank) * _WIDE + np.maximum(peer, rank)
    return pair * 4 + np.where(direction == SEND, rank < peer, np.where(direction == RECEIVE, rank > peer, 2))


_TYPES: Final = {
    "rank": np.int32,
    "instance": np.int32,
    "group": np.int32,
    "kind": np.int8,
    "sequence": np.int64,
    "comms_id": np.int64,
    "is_p2p": np.int8,
    "peer": np.int32,
    "bytes": np.int64,
    "unit": np.int32,
    "time_ns": np.int64,
    "end_ns": np.int64,
    "channel": np.int64,
    "is_pair": np.bool_,
}
_WIDE: Final = 1 << 24  # more ranks than any job has


def _units_for_order(mine: Instances, unit: NDArray[np.int32]) -> Ints:
    """Return the units that order is counted in.

    A backend's spans begin when a thread is free, in another unit on another rank: they are ordered over the whole
    record. Kernels whose launch lies before the record belong to no unit that all ranks saw begin.
    """
    known = mine.issue_ns != NONE_NS
    early = ~known & (np.cumsum(known) == 0) & known.any()
    return np.where(mine.on_device == 0, -1, np.where(early, _BEFORE, unit))


def key_rows(rows: Rows, *, based: bool) -> Ints:
    """Return the operation of each row: `[N]` int64; rows with the same number are one operation.

    Args:
        rows: The operations of all ranks.
        based: Their times have a common base.
    """
    by_id, by_sequence = _usable(rows)
    tier = np.where(by_id, 0, np.where(by_sequence, 1, 2)).astype(np.int8)
    sort = (tier * 4 + np.where(rows.is_pair, 2, rows.is_p2p)).astype(np.int8)
    scope = np.where(tier == 0, rows.comms_id, rows.group)
    within = np.where(tier == 0, 0, np.where(tier == 1, rows.sequence, rows.kind))
    bucket = _numbered(sort, scope, within, np.where(tier == 2, rows.channel, 0))
    del sort, scope, within
    unit = np.where(tier == 2, rows.unit, 0).astype(np.int64)
    place = _place_in(bucket, unit, rows)
    ordered = np.flatnonzero(tier == 2)
    if len(ordered):
        unit[ordered], place[ordered] = _line_up(
            rows.take(ordered), bucket[ordered], unit[ordered], place[ordered], based=based
        )
    return _numbered(bucket, unit, place)


def _usable(rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows can be matched by id, and which by sequence: all of their group must have one.

    A pair of send and receive counts its sequence per rank, not per pair, so only an id that just two ranks hold, or
    the order within the pair, can match it.
    """
    scope = _numbered(rows.group, rows.is_p2p)
    n_scopes = int(scope.max()) + 1
    lacks_id = np.zeros(n_scopes, np.bool_)
    lacks_id[scope[rows.comms_id < 0]] = True
    lacks_sequence = np.zeros(n_scopes, np.bool_)
    lacks_sequence[scope[(rows.sequence < 0) | (rows.group < 0)]] = True
    lacks_id[_scopes_of_odd_pairs(rows, scope)] = True
    return ~lacks_id[scope], ~lacks_sequence[scope] & ~rows.is_pair


def _scopes_of_odd_pairs(rows: Rows, scope: Ints) -> Ints:
    """Return the scopes in which one id is held by other than the two ranks of a pair."""
    pairs = np.flatnonzero(rows.is_pair & (rows.comms_id >= 0))
    if len(pairs) == 0:
        return pairs
    by_id = _numbered(rows.comms_id[pairs], scope[pairs])
    by_pair = _numbered(rows.comms_id[pairs], scope[pairs], rows.channel[pairs])
    n_channels = np.bincount(np.unique(np.stack([by_id, by_pair]), axis=1)[0], minlength=int(by_id.max()) + 1)
    return np.unique(scope[pairs][n_channels[by_id] > 1])


def _place_in(bucket: Ints, unit: Ints, rows: Rows) -> Ints:
    """Return the place of each row among its rank's rows of the same bucket and unit, in order of start."""
    order = np.lexsort((rows.instance, rows.rank, unit, bucket))
    b, u, r = bucket[order], unit[order], rows.rank[order]
    begins = np.append(True, (b[1:] != b[:-1]) | (u[1:] != u[:-1]) | (r[1:] != r[:-1]))
    since = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - since
    return place


def _line_up(rows: Rows, bucket: Ints, unit: Ints, place: Ints, *, based: bool) -> tuple[Ints, Ints]:
    """Shift the places of ranks that recorded fewer operations of a bucket and unit than others.

    Operations from before the record line up at their end. In a unit that the recorder cut, ends decide: all members
    of a collective end together, so the right shift is the one under which a rank's ends keep the same distance to
    another rank's.
    """
    block = _numbered(bucket, unit)
    per_rank = _numbered(block, rows.rank)
    count = np.bincount(per_rank)[per_rank]
    n_blocks = int(block.max()) + 1
    most, least = np.zeros(n_blocks, np.int64), np.full(n_blocks, np.iinfo(np.int64).max)
    np.maximum.at(most, block, count)
    np.minimum.at(least, block, count)
    place = place.copy()
    early = unit == _BEFORE
    place[early] -= count[early]
    uneven = np.flatnonzero((most != least)[block] & ~early)
    if len(uneven) == 0:
        return unit, place
    even = np.flatnonzero((most == least)[block] & ~early)
    known_ns = _distances(rows, block, place, even)
    order = uneven[np.lexsort((place[uneven], rows.rank[uneven], block[uneven]))]
    cuts = np.flatnonzero(np.append(True, (np.diff(per_rank[order]) != 0)))
    runs: dict[int, list[NDArray[np.int64]]] = {}
    for run in np.split(order, cuts[1:]):
        runs.setdefault(int(block[run[0]]), []).append(run)
    for parts in runs.values():
        longest = max(parts, key=lambda run: (len(run), -int(rows.rank[run[0]])))
        for run in parts:
            if len(run) < len(longest):
                place[run] += _best_shift(rows, longest, run, known_ns, based=based)
    return unit, place


def _distances(rows: Rows, block: Ints, place: Ints, even: Ints) -> dict[tuple[int, int], int]:
    """Return, for pairs of ranks, the median distance of ends of operations that are matched for certain."""
    found: dict[tuple[int, int], int] = {}
    if len(even) == 0:
        return found
    operation = _numbered(block[even], place[even])
    ranks = np.unique(rows.rank[even])
    base = int(ranks[0])
    end_of = {int(r): _by_operation(operation, rows.end_ns[even], rows.rank[even] == r) for r in ranks}
    for rank in ranks.tolist():
        common, mine, other = np.intersect1d(end_of[rank][0], end_of[base][0], return_indices=True)
        if len(common):
            found[base, rank] = int(np.median(end_of[rank][1][mine] - end_of[base][1][other]))
    return found


def _by_operation(operation: Ints, end_ns: Ints, chosen: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    return operation[chosen], end_ns[chosen]


def _best_shift(rows: Rows, longest: Ints, run: Ints, known_ns: dict[tuple[int, int], int], *, based: bool) -> int:
    """Return how many of the longer run's operations precede the shorter run's first one.

    The right shift is the one under which ends keep the distance that certain matches show; without any, the one under
    which their distances scatter least.
    """
    step = max(len(run) // _SAMPLES, 1)
    sampled = np.arange(0, len(run), step)
    end_ns = rows.end_ns[run][sampled]
    spread = len(longest) - len(run)
    mine, other = int(rows.rank[run[0]]), int(rows.rank[longest[0]])
    expected_ns = None
    bases = {base for base, _ in known_ns}
    for base in bases:
        if (base, mine) in known_ns and (base, other) in known_ns:
            expected_ns = known_ns[base, mine] - known_ns[base, other]
    distances = [end_ns - rows.end_ns[longest][sampled + shift] for shift in range(spread + 1)]
    middles = [float(np.median(distance)) for distance in distances]
    centres = [expected_ns if expected_ns is not None else middle for middle in middles]
    costs = [float(np.median(np.abs(d - centre))) for d, centre in zip(distances, centres, strict=True)]
    # Operations at even intervals keep their distances under any shift: then base times decide, and without them the
    # end of the record, for recordings begin apart more often than they end apart.
    alike = [shift for shift, cost in enumerate(costs) if cost <= _ALIKE * min(costs) + _ALIKE_NS]
    return min(alike, key=lambda shift: abs(middles[shift]) if based else -shift)


_ALIKE: Final = 2.0
_ALIKE_NS: Final = 2000  # twice the step in which old exporters wrote times


def _numbered(*columns: NDArray[Any]) -> Ints:
    """Return the number, from 0, of each row's combination of values."""
    if len(columns[0]) == 0:
        return np.empty(0, np.int64)
    order = np.lexsort(columns[::-1])
    changed = np.zeros(len(order), np.bool_)
    for column in columns:
        ordered = column[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(changed)
    return number
