"""Which kinds of work ran at once on a device, and how much longer each took beside the other (DESIGN 3.10).

    stream 7   ├─ aten::mm ─┤   ├──── aten::mm ────┤
    stream 9                     ├── collective ──┤

The product beside the collective is compared with products of the same kernel and shapes that ran alone.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.analyses.pieces import RUNG_COLLECTIVE, RUNG_COMPUTE
from longpole.records.operator_work import Together
from longpole.timeline.intervals import covered_before, intersect, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.analyses.operator_work import KernelOwners
    from longpole.analyses.rungs import DeviceRow
    from longpole.timeline.intervals import Intervals
    from longpole.timeline.timeline import Timeline

    Ints = NDArray[np.int64]

COLLECTIVE: Final = "collective"
COPY: Final = "copy "
_KINDS_KEPT: Final = 12  # with the most time beside others
_PAIRS_KEPT: Final = 20
_BESIDE: Final = 0.9  # a span runs beside other work where that covers this share of it
_ALONE_MIN: Final = 3  # undisturbed spans that a comparison needs
_TIGHT: Final = 0.2  # and how far apart their quartiles may lie, in medians: others are no reference


class _Kind(NamedTuple):
    """The spans of one kind of work: when any ran, and each one's start, length and what it is comparable with."""

    name: str
    ran: Intervals
    start_ns: Ints
    end_ns: Ints
    key: Ints
    alone: NDArray[np.bool_]


def find_together(
    timeline: Timeline, book: NameBook, row: DeviceRow, owners: KernelOwners, window: Intervals
) -> list[Together]:
    """Return the pairs of kinds of work that ran at once within the units, the longest first.

    Args:
        timeline: The record.
        book: Meanings of its names.
        row: The device.
        owners: Which operator each of its compute kernels belongs to.
        window: From the first unit's start to the last one's end.
    """
    spans = _inside(row, window)
    start_ns, end_ns = row.spans.start_ns[spans], row.spans.end_ns[spans]
    beside = _has_company(start_ns, end_ns)
    if not beside.any():
        return []
    names, label = _labels(timeline, book, row, owners)
    label = label[spans]
    time_ns = np.zeros(len(names), np.int64)
    np.add.at(time_ns, label[beside], (end_ns - start_ns)[beside])
    kept = np.argsort(-time_ns, kind="stable")[:_KINDS_KEPT]
    key = _keys(timeline, row, owners)[spans]
    kinds = []
    for code in kept[time_ns[kept] > 0].tolist():
        mine = label == code
        others = union(start_ns[~mine], end_ns[~mine])
        covered_ns = covered_before(others, end_ns[mine]) - covered_before(others, start_ns[mine])
        ran = union(start_ns[mine], end_ns[mine])
        kinds.append(_Kind(names[code], ran, start_ns[mine], end_ns[mine], key[mine], covered_ns == 0))
    kinds.sort(key=lambda kind: kind.name)
    pairs = [_pair(first, second) for first, second in combinations(kinds, 2)]
    pairs = [pair for pair in pairs if pair.together_ns > 0]
    return sorted(pairs, key=lambda pair: (-pair.together_ns, pair.first, pair.second))[:_PAIRS_KEPT]


def _inside(row: DeviceRow, window: Intervals) -> NDArray[np.intp]:
    if len(window.start_ns) == 0:
        return np.empty(0, np.intp)
    low_ns, high_ns = int(window.start_ns[0]), int(window.end_ns[-1])
    return np.flatnonzero((row.spans.start_ns >= low_ns) & (row.spans.start_ns < high_ns))


def _has_company(start_ns: Ints, end_ns: Ints) -> NDArray[np.bool_]:
    """Return which spans, ascending in start, overlap another one."""
    if len(start_ns) < 2:
        return np.zeros(len(start_ns), np.bool_)
    reach_ns = np.maximum.accumulate(end_ns)
    into_before = np.append(False, start_ns[1:] < reach_ns[:-1])
    into_next = np.append(start_ns[1:] < end_ns[:-1], False)
    return into_before | into_next


def _labels(
    timeline: Timeline, book: NameBook, row: DeviceRow, owners: KernelOwners
) -> tuple[list[str], NDArray[np.int64]]:
    """Return what each span of the row counts as: its operator, else its kernel; a collective; a copy and its way."""
    numbers: dict[str, int] = {}
    operator = np.full(len(row.spans), -1, np.int64)
    operator[owners.kernel] = np.where(owners.owner >= 0, owners.owner, owners.innermost)
    name = np.where(operator >= 0, timeline.host.name[operator] if len(timeline.host) else -1, row.spans.name)
    sort = np.where(row.rung == RUNG_COLLECTIVE, 1, np.where(row.rung == RUNG_COMPUTE, 0, 2))
    distinct, inverse = np.unique(np.stack([sort, name]).astype(np.int64), axis=1, return_inverse=True)
    texts = []
    for which, code in distinct.T.tolist():
        text = timeline.names[code] if which == 0 else COLLECTIVE if which == 1 else COPY + _direction(book, code)
        texts.append(numbers.setdefault(text, len(numbers)))
    return list(numbers), np.array(texts, np.int64)[inverse.reshape(-1)]


def _direction(book: NameBook, code: int) -> str:
    return book.copy(code).direction or "unknown"


def _keys(timeline: Timeline, row: DeviceRow, owners: KernelOwners) -> Ints:
    """Return what spans must share to be comparable: kernel, and shapes or size; -1 where those are not recorded."""
    shapes = np.full(len(row.spans), -1, np.int64)
    operator = np.where(owners.owner >= 0, owners.owner, owners.innermost)
    shapes[owners.kernel] = timeline.input_dims.codes(operator)
    shapes = np.where(row.rung == RUNG_COMPUTE, shapes, row.spans.size_bytes)
    _, of_shape = np.unique(shapes, return_inverse=True)
    return np.where(shapes >= 0, row.spans.name.astype(np.int64) << 32 | of_shape.reshape(-1), -1)


def _pair(first: _Kind, second: _Kind) -> Together:
    pair = Together(
        first=first.name,
        second=second.name,
        together_ns=intersect(first.ran, second.ran).total_ns(),
        first_ns=first.ran.total_ns(),
        second_ns=second.ran.total_ns(),
    )
    if pair.together_ns:
        pair.first_compared_ns, pair.first_alone_ns = _compared(first, second.ran)
        pair.second_compared_ns, pair.second_alone_ns = _compared(second, first.ran)
    return pair


def _compared(kind: _Kind, other: Intervals) -> tuple[int, int]:
    """Return the time of spans beside other work, and what the same take alone, for those that also ran alone.

    A collective's length includes waiting for its peers, which nothing here tells from moving: none is compared.
    """
    if kind.name == COLLECTIVE:
        return 0, 0
    dur_ns = kind.end_ns - kind.start_ns
    covered_ns = covered_before(other, kind.end_ns) - covered_before(other, kind.start_ns)
    beside = (covered_ns >= _BESIDE * dur_ns) & (dur_ns > 0) & (kind.key >= 0)
    compared_ns = alone_ns = 0
    for one in np.unique(kind.key[beside]).tolist():
        same = kind.key == one
        reference = dur_ns[same & kind.alone & (dur_ns > 0)]
        if len(reference) < _ALONE_MIN:
            continue
        low, middle, high = np.percentile(reference, [25, 50, 75])
        if high - low > _TIGHT * middle:
            continue
        disturbed = dur_ns[same & beside]
        compared_ns += int(disturbed.sum())
        alone_ns += round(float(middle) * len(disturbed))
    return compared_ns, alone_ns
