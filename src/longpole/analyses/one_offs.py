"""What happens once and not in every unit: creating communicators, compiling, searching for algorithms (DESIGN 3.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.analyses.name_book import CALL_CODE, OBJECT_CODE
from longpole.timeline.columns import Kind
from longpole.timeline.intervals import Intervals, covered_before, union, unite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.analyses.name_book import NameBook
    from longpole.settings import Settings
    from longpole.timeline.boundaries import Unit
    from longpole.timeline.timeline import Timeline

    Rows: TypeAlias = NDArray[np.int64]


COMMUNICATOR_SETUP: Final = "communicator_setup"
COMPILATION: Final = "compilation"
SEARCH: Final = "per_shape_search"
COLD_START: Final = "cold_start"


@dataclass(frozen=True, slots=True)
class OneOff:
    """Something a unit paid once.

    Attributes:
        why: What it was.
        row: Host row of the longest instance.
        dur_ns: How much of the unit it took.
    """

    why: str
    row: int
    dur_ns: int


def _creates_communicator(book: NameBook) -> NDArray[np.bool_]:
    """Return which names create communicators: `[names]` bool. A wait that a program declares is no such thing."""
    names = book.object == OBJECT_CODE["collective"]
    for code in np.flatnonzero(names & book.is_declared).tolist():
        names[code] = book.host(code).activity == COMMUNICATOR_SETUP
    return names


def setup_rows(timeline: Timeline, book: NameBook, settings: Settings) -> Rows:
    """Find the calls in which a communicator was created although nothing is named so.

    A group's first collective creates its communicator: the first call of a name then lasts many times what later
    calls last on the host, without waiting for the device meanwhile (case B079). Only where a device does the
    collectives: on CPU backends a call lasts as long as its slowest rank.

    Returns:
        Host rows.
    """
    if len(timeline.device) == 0:
        return np.empty(0, np.int64)
    host = timeline.host
    calls = np.flatnonzero(book.is_collective_op[host.name] & (host.kind == Kind.OPERATOR))
    key = host.name[calls].astype(np.int64)
    # A name that occurs once has no later calls of its own to compare with: all others' stand in.
    once = np.bincount(key, minlength=1)[key] == 1
    alone = _slow_first(timeline, book, calls, key, np.zeros(len(calls), np.int64), settings)
    repeated = _slow_first(timeline, book, calls[~once], key[~once], key[~once], settings)
    found = np.union1d(alone[np.isin(alone, calls[once])], repeated)
    return np.union1d(found, _rare_outliers(timeline, book, calls, settings)).astype(np.int64)


def _rare_outliers(timeline: Timeline, book: NameBook, calls: NDArray[np.intp], settings: Settings) -> Rows:
    """Return calls of a name that last many times what its others last, where they are but a few.

    Each group creates its communicator at its own first collective, which need not be the first of its name: on a
    device a call only queues work, so that nothing else takes it so long but a full queue, which takes many.
    """
    host = timeline.host
    outliers: list[int] = []
    for name in np.unique(host.name[calls]).tolist():
        rows = calls[host.name[calls] == name]
        dur_ns = host.end_ns[rows] - host.start_ns[rows]
        if len(rows) < _FEW_OF:
            continue
        slow = rows[dur_ns > max(settings.one_off_factor * float(np.median(dur_ns)), _OUTLIER_MIN_NS)]
        if 0 < len(slow) <= len(rows) // _FEW_OF:
            own_ns = host.end_ns[slow] - host.start_ns[slow] - _waiting_inside(timeline, book, slow, settings)
            outliers += slow[own_ns > _OUTLIER_MIN_NS].tolist()
    return np.array(outliers, np.int64)


_FEW_OF: Final = 8  # one in so many calls is a rare one
_OUTLIER_MIN_NS: Final = 10_000_000  # our choice: creating a communicator takes tens of milliseconds at least


_BEGINS_CAPTURE: Final = re.compile(r"BeginCapture|capture_begin")
_ENDS_CAPTURE: Final = re.compile(r"EndCapture|capture_end")


def captures(names: Sequence[str], name: NDArray[np.int32], start_ns: Rows, end_ns: Rows) -> Intervals:
    """Return when one thread captured a graph: from each call that begins to the next that ends.

    What is launched meanwhile runs on no device, so that all of it is the capture's.

    Args:
        names: All names.
        name: `[N]` of the thread's rows, by start.
        start_ns: `[N]` int64 ns.
        end_ns: `[N]` int64 ns.
    """
    used = np.unique(name).tolist()
    begins = np.flatnonzero(np.isin(name, [code for code in used if _BEGINS_CAPTURE.search(names[code])]))
    ends = np.flatnonzero(np.isin(name, [code for code in used if _ENDS_CAPTURE.search(names[code])]))
    at = np.searchsorted(ends, begins)
    closed = at < len(ends)
    if not closed.any():
        return Intervals.none()
    return union(start_ns[begins[closed]], np.maximum(end_ns[ends[at[closed]]], start_ns[begins[closed]]))


def _all_captures(timeline: Timeline) -> Intervals:
    """Return when any thread captured a graph."""
    host = timeline.host
    if not any(_BEGINS_CAPTURE.search(name) for name in timeline.names):
        return Intervals.none()
    found = []
    for track in np.unique(host.track).tolist():
        mine = np.flatnonzero(host.track == track)
        found.append(captures(timeline.names, host.name[mine], host.start_ns[mine], host.end_ns[mine]))
    return unite(*found)


def find_one_offs(
    timeline: Timeline, book: NameBook, units: list[Unit], setups: Rows, settings: Settings
) -> dict[int, OneOff]:
    """Find units in which a one-off took more than its share: place of the unit -> the longest one-off.

    Args:
        timeline: The record.
        book: Meanings of its names.
        units: Its units.
        setups: What `setup_rows` found.
        settings: `one_off_min_share`, `one_off_factor`.
    """
    if len(units) < 2:
        return {}
    host = timeline.host
    by_name = np.flatnonzero(_creates_communicator(book)[host.name])
    compiling = np.flatnonzero(book.call[host.name] == CALL_CODE["compile"])
    kinds = (
        (COMMUNICATOR_SETUP, np.union1d(by_name, setups)),
        (SEARCH, _searches(timeline, book, settings)),
        (COMPILATION, compiling.astype(np.int64)),
        (COLD_START, np.flatnonzero(book.object[host.name] == OBJECT_CODE["artifact"]).astype(np.int64)),
    )
    found: dict[int, OneOff] = {}
    for why, rows in kinds:
        more = _all_captures(timeline) if why == COMPILATION else Intervals.none()
        for place, one_off in _shares(timeline, units, why, rows, more, settings).items():
            found.setdefault(place, one_off)
    return found


def _searches(timeline: Timeline, book: NameBook, settings: Settings) -> Rows:
    """Find operators whose first call with a shape lasted many times what known shapes take (case B087).

    One slow first call may as well be a hiccup of the machine. So an operator counts only if at least two shapes and
    half of all its shapes were slow at first sight, or if the slow call allocated or compiled meanwhile.
    """
    shapes = timeline.input_dims
    host = timeline.host
    # A collective's first call may be slow because another rank came late.
    is_operator = (host.kind[shapes.row] == Kind.OPERATOR) & ~book.is_collective_op[host.name[shapes.row]]
    rows, shape = shapes.row[is_operator], shapes.value[is_operator].astype(np.int64)
    name = host.name[rows].astype(np.int64)
    slow = _slow_first(timeline, book, rows, name * (len(shapes.texts) + 1) + shape, name, settings)
    if len(slow) == 0:
        return slow
    names = host.name[slow]
    n_slow = {code: int((names == code).sum()) for code in np.unique(names).tolist()}
    n_shapes = {code: len(np.unique(shape[name == code])) for code in n_slow}
    usual = np.array([n_slow[code] >= 2 and 2 * n_slow[code] >= n_shapes[code] for code in names.tolist()], np.bool_)
    return slow[usual | _allocates(timeline, book, slow)]


def _allocates(timeline: Timeline, book: NameBook, rows: Rows) -> NDArray[np.bool_]:
    """Tell which spans spent a tenth of their time or more on allocating or compiling on their thread."""
    host = timeline.host
    calls = [CALL_CODE[call] for call in ("alloc", "free", "compile")]
    busy = np.isin(book.call[host.name], calls)
    found = np.zeros(len(rows), np.bool_)
    for place, row in enumerate(rows.tolist()):
        low, high = int(host.start_ns[row]), int(host.end_ns[row])
        inside = np.flatnonzero(busy & (host.track == host.track[row]) & (host.start_ns < high) & (host.end_ns > low))
        cover = union(np.maximum(host.start_ns[inside], low), np.minimum(host.end_ns[inside], high))
        found[place] = 10 * cover.total_ns() >= high - low
    return found


def _slow_first(
    timeline: Timeline, book: NameBook, rows: Rows | NDArray[np.intp], key: Rows, peers: Rows, settings: Settings
) -> Rows:
    """Return the first row of each key that lasted `one_off_factor` times what its peers' and its own later calls last.

    Args:
        timeline: The record.
        book: Meanings of its names.
        rows: Host rows.
        key: `[len(rows)]` what makes two calls alike.
        peers: `[len(rows)]` what makes two calls comparable: the median is over a group's calls that are no first ones.
        settings: `one_off_factor`, `one_off_min_ns`.
    """
    host = timeline.host
    if len(rows) == 0:
        return np.empty(0, np.int64)
    order = np.lexsort((host.start_ns[rows], key))
    rows, key, peers = np.asarray(rows)[order], key[order], peers[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = key[1:] != key[:-1]
    dur_ns = host.end_ns[rows] - host.start_ns[rows]
    candidates = np.flatnonzero(first & (dur_ns > settings.one_off_min_ns))
    of_peers_ns = _later_medians(peers, dur_ns, first, peers[candidates])
    # A large shape is slow every time: where a call recurs, its own later calls are the measure too.
    of_own_ns = _later_medians(key, dur_ns, first, key[candidates])
    limit_ns = np.fmax(of_peers_ns, np.where(np.isfinite(of_own_ns), of_own_ns, 0.0))
    limit_ns[np.isfinite(limit_ns)] *= settings.one_off_factor
    slow = dur_ns[candidates] > limit_ns
    candidates, limit_ns = candidates[slow], limit_ns[slow]
    own_ns = dur_ns[candidates] - _waiting_inside(timeline, book, rows[candidates], settings)
    really = (own_ns > limit_ns) & (own_ns > settings.one_off_min_ns)
    return np.sort(rows[candidates[really]]).astype(np.int64)


def _later_medians(group: Rows, dur_ns: Rows, first: NDArray[np.bool_], wanted: Rows) -> NDArray[np.float64]:
    """Return, for each wanted group, the median of its durations that are no first ones; infinite without any.

    Args:
        group: `[N]`, ascending.
        dur_ns: `[N]` int64 ns.
        first: `[N]` whether it is the first of its kind.
        wanted: `[M]` groups.
    """
    median_ns: dict[int, float] = {}
    for one in np.unique(wanted).tolist():
        low, high = np.searchsorted(group, [one, one + 1])
        later = dur_ns[low:high][~first[low:high]]
        median_ns[one] = float(np.median(later)) if len(later) else np.inf
    return np.array([median_ns[one] for one in wanted.tolist()], np.float64)


def _waiting_inside(timeline: Timeline, book: NameBook, rows: Rows | NDArray[np.intp], settings: Settings) -> Rows:
    """Return how long each span's thread waited for the device within it, in blocking calls and blocking copies."""
    host = timeline.host
    waited = np.zeros(len(rows), np.int64)
    call = book.call[host.name]
    long_call = host.end_ns - host.start_ns > settings.blocking_copy_min_ns
    sync = (call == CALL_CODE["sync"]) | ((call == CALL_CODE["copy"]) & long_call)
    for track in np.unique(host.track[rows]).tolist():
        waits = np.flatnonzero(sync & (host.track == track))
        cover = union(host.start_ns[waits], host.end_ns[waits])
        mine = np.flatnonzero(host.track[rows] == track)
        inside = covered_before(cover, host.end_ns[rows[mine]]) - covered_before(cover, host.start_ns[rows[mine]])
        waited[mine] = inside
    return waited


def _shares(
    timeline: Timeline, units: list[Unit], why: str, rows: Rows, more: Intervals, settings: Settings
) -> dict[int, OneOff]:
    host = timeline.host
    if len(rows) == 0:
        return {}
    cover = unite(union(host.start_ns[rows], host.end_ns[rows]), more)
    found = {}
    for place, unit in enumerate(units):
        ends = np.array([unit.start_ns, unit.end_ns], np.int64)
        took_ns = int(np.diff(covered_before(cover, ends))[0])
        if took_ns <= settings.one_off_min_share * (unit.end_ns - unit.start_ns):
            continue
        inside = rows[(host.start_ns[rows] < unit.end_ns) & (host.end_ns[rows] > unit.start_ns)]
        longest = inside[np.argmax(host.end_ns[inside] - host.start_ns[inside])]
        found[place] = OneOff(why, int(longest), took_ns)
    return found
