"""Which rows of a file belong to which rank: a merger may have put several ranks into one file.

pids  [TP00] 4200  [TP00] 0  [TP01] 4200  [TP01] 0      by what stands in front
pids  4200  0   104200  100000                          by a number that was added: 100000
pids  4200  0   4300                                    not at all: one rank; refused if they share correlations
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from longpole.readers.kineto.identity import rank_prefixes
from longpole.readers.kineto.kinds import STEP
from longpole.readers.kineto.place import IDLE_VOIDS
from longpole.timeline.columns import DEVICE_KINDS, HOST_KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from longpole.readers.kineto.complaints import Complaints
    from longpole.readers.kineto.raw import RawTrace


class Share(NamedTuple):
    """The rows of one rank.

    Attributes:
        mine: `[N]` bool over the spans of the file.
        rank: The rank that the rows name, None where the file or its name must tell.
        place: The place among ranks that nothing names, None for a file of one rank.
    """

    mine: NDArray[np.bool_]
    rank: int | None = None
    place: int | None = None


def find_shares(raw: RawTrace, kind: NDArray[np.uint8], complaints: Complaints) -> list[Share]:
    """Tell the ranks of a file apart; most files hold one.

    Args:
        raw: The file.
        kind: `[N]` uint8: kinds of its spans.
        complaints: Hears of rows that no rank claims.

    Raises:
        InputError: Several programs recorded with the same correlation ids: nothing tells whose the device rows are.
    """
    prefixes = rank_prefixes(raw)
    if len(prefixes) > 1:
        shares = [Share(_of_prefix(raw, prefix), rank) for prefix, rank in prefixes.items()]
        _complain_of_rankless(shares, kind, complaints)
        return shares
    everything = np.ones(len(kind), np.bool_)
    programs = _programs(raw, kind)
    if len(programs) <= 1:
        return [Share(everything, next(iter(prefixes.values()), None))]
    groups = _by_distance(programs, set(_pids(raw, np.flatnonzero(_placeable(kind)))))
    if groups is None:
        if _share_correlations(raw, kind, programs):
            complaints.refuse_merged(programs)
        return [Share(everything)]
    return [Share(_of_pids(raw, group), None, place) for place, group in enumerate(groups)]


def _placeable(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.isin(kind, [int(k) for k in (*DEVICE_KINDS, *HOST_KINDS)])


def _of_prefix(raw: RawTrace, prefix: str) -> NDArray[np.bool_]:
    of_track = np.array([isinstance(pid, str) and pid.startswith(prefix) for pid, _ in raw.tracks], np.bool_)
    return of_track[raw.span["track"]]


def _of_pids(raw: RawTrace, pids: set[int]) -> NDArray[np.bool_]:
    return np.array([pid in pids for pid, _ in raw.tracks], np.bool_)[raw.span["track"]]


def _pids(raw: RawTrace, rows: NDArray[np.intp]) -> Counter[int]:
    """Count rows by process id, of those whose id is a number."""
    counts: Counter[int] = Counter()
    for track, count in zip(*np.unique(raw.span["track"][rows], return_counts=True), strict=True):
        pid = raw.tracks[track][0]
        if isinstance(pid, int):
            counts[pid] += int(count)
    return counts


def _programs(raw: RawTrace, kind: NDArray[np.uint8]) -> list[int]:
    """Return the processes that run operators or mark steps; a profiler records one.

    A process with few of them is no program but damage: a digit of an id was flipped.
    """
    steps = [code for code, name in enumerate(raw.names) if STEP.match(name)]
    is_step = np.isin(raw.span["name"], steps) & (kind == Kind.ANNOTATION)
    counts = _pids(raw, np.flatnonzero((kind == Kind.OPERATOR) | is_step))
    most = max(counts.values(), default=0)
    return sorted(pid for pid, count in counts.items() if count >= _PROGRAM_MIN_SHARE * most)


_PROGRAM_MIN_SHARE: Final = 0.1


def _share_correlations(raw: RawTrace, kind: NDArray[np.uint8], programs: list[int]) -> bool:
    """Tell whether two programs use the same correlation ids, so that a device row has two possible launches."""
    seen = np.empty(0, np.int64)
    for program in programs:
        calls = np.flatnonzero((kind == Kind.RUNTIME) & _of_pids(raw, {program}))
        ids = np.unique(raw.span["correlation"][calls])
        if np.intersect1d(seen, ids[ids > 0]).size:
            return True
        seen = np.union1d(seen, ids[ids > 0])
    return False


def _by_distance(programs: list[int], pids: set[int]) -> list[set[int]] | None:
    """Group process ids that lie as far apart as the programs do; None where that does not account for all."""
    distances = [program - programs[0] for program in programs]
    first = {pid for pid in pids if all(pid + distance in pids for distance in distances)}
    groups = [{pid + distance for pid in first} for distance in distances]
    is_partition = sum(map(len, groups)) == len(pids) and _union(groups) == pids
    return groups if is_partition else None


def _union(groups: Iterable[set[int]]) -> set[int]:
    return set().union(*groups)


def _complain_of_rankless(shares: list[Share], kind: NDArray[np.uint8], complaints: Complaints) -> None:
    """Complain of rows that no rank claims; they are in no figure."""
    claimed = np.logical_or.reduce([share.mine for share in shares])
    rows = np.flatnonzero(_placeable(kind) & ~claimed)
    on_device = np.isin(kind[rows], [int(k) for k in DEVICE_KINDS])
    complaints.rows("event.no_rank", "warn", rows, IDLE_VOIDS if on_device.any() else [])
