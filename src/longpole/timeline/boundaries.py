"""Units of work: where one step ends and the next begins (DESIGN 3.2).

recorded  ├───────────────────────────────────────────────────────┤
markers        ├─ step 3 ─┤   ├─ step 4 ─┤  ├─ step 5 ─┤
units     │head│ unit 3       │ unit 4      │ unit 5     │  tail   │
                          └───┘ between_ns
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.errors import UsageError
from longpole.timeline.columns import Kind
from longpole.vocabulary.meanings import StepMeaning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.timeline.timeline import Timeline
    from longpole.vocabulary.matcher import Vocabulary

_PROFILER_PRIORITY: Final = 1
_OPTIMIZER_PRIORITY: Final = 4
_ENGINE_PRIORITY: Final = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of work of a rank.

    Attributes:
        name: The marker's name, with its place in the series where several markers bear it: units are told apart,
            and found on other ranks, by their names.
        kind: `step`, `iteration`, … or `trace` where the record is one unit for want of markers.
        ordinal: The number in the marker's name; its place among the markers from 0 where a name has none, or where
            the numbers do not ascend (two rounds of a profiler in one file).
        start_ns: Start, in ns since the file's base time.
        end_ns: Start of the next unit; the last one ends with its own marker.
        between_ns: How much of the unit lies behind its marker's end.
        marker: Host row of the marker, -1 for none.
    """

    name: str
    kind: str
    ordinal: int
    start_ns: int
    end_ns: int
    between_ns: int
    marker: int


def find_units(timeline: Timeline, vocabulary: Vocabulary, step_pattern: str | None) -> list[Unit]:
    """Cut a rank's record into units.

    The user's own pattern comes first, then the units that the program declared, the profiler's step annotations, an
    engine's iteration annotations, the optimizer's steps; else the record is one unit.

    Args:
        timeline: The record.
        vocabulary: Knows step markers by name.
        step_pattern: A regular expression that the names of markers match, or None.

    Raises:
        UsageError: The pattern is no regular expression, or matches nothing.
    """
    if step_pattern is not None:
        rows = _matching(timeline, step_pattern)
        return _between_starts(timeline, rows, {}, "step")
    if timeline.told is not None and len(timeline.told.units):
        return _declared(timeline, timeline.told.units)
    by_priority = _markers(timeline, vocabulary)
    for priority in sorted(by_priority):
        meanings = by_priority[priority]
        marks = np.array(sorted(meanings), np.int64)
        rows = _outermost(timeline, marks)
        if priority == _PROFILER_PRIORITY:
            rows = _with_other_threads(timeline, rows, marks)
        if priority == _OPTIMIZER_PRIORITY:
            units = _between_optimizer_steps(timeline, rows)
        elif priority == _ENGINE_PRIORITY and len(rows) < 2:
            continue
        else:
            units = _between_starts(timeline, rows, meanings, meanings[int(rows[0])].kind)
        if units:
            return units
    return _whole(timeline)


def _declared(timeline: Timeline, rows: NDArray[np.int64]) -> list[Unit]:
    """Make units of those that the program itself declared; the number at the end of a name is its place."""
    rows = _outermost(timeline, rows)
    names = [timeline.names[code] for code in timeline.host.name[rows].tolist()]
    meanings = {row: _numbered(name) for row, name in zip(rows.tolist(), names, strict=True)}
    return _between_starts(timeline, rows, meanings, meanings[int(rows[0])].kind)


def _numbered(name: str) -> StepMeaning:
    digits = _LAST_NUMBER.search(name)
    kind = next((kind for kind in _UNIT_KINDS if kind in name.lower()), "step")
    return StepMeaning(kind, int(digits[0]) if digits else None, 0)  # type: ignore[arg-type]


_LAST_NUMBER: Final = re.compile(r"\d{1,18}$")
_UNIT_KINDS: Final = ("request", "iteration")


def count_marks(timeline: Timeline, vocabulary: Vocabulary) -> int:
    """Return how many step marks of the profiler the record holds, those that make no unit included."""
    return len(_markers(timeline, vocabulary).get(_PROFILER_PRIORITY, ()))


def marker_rows(units: list[Unit]) -> NDArray[np.intp]:
    """Return the host rows of the units' markers."""
    return np.array([unit.marker for unit in units if unit.marker >= 0], np.intp)


def _matching(timeline: Timeline, pattern: str) -> NDArray[np.int64]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        msg = f"--step: {pattern!r} is not a regular expression: {error}"
        raise UsageError(msg) from None
    codes = [code for code, name in enumerate(timeline.names) if compiled.search(name)]
    rows = np.flatnonzero(np.isin(timeline.host.name, codes)).astype(np.int64)
    if len(rows) == 0:
        seen = sorted({timeline.names[c] for c in np.unique(timeline.host.name[timeline.host.kind == Kind.ANNOTATION])})
        shown = ", ".join(seen[:8]) or "none"
        msg = f"--step: no host event of {timeline.source.path} matches {pattern!r}; annotations there: {shown}"
        raise UsageError(msg)
    return _outermost(timeline, rows)


def _markers(timeline: Timeline, vocabulary: Vocabulary) -> dict[int, dict[int, StepMeaning]]:
    """Collect the host rows that mark units: priority -> row -> meaning."""
    host = timeline.host
    candidates = np.flatnonzero(np.isin(host.kind, (int(Kind.ANNOTATION), int(Kind.OTHER))))
    meaning_of = {int(code): vocabulary.step(timeline.names[code]) for code in np.unique(host.name[candidates])}
    found: dict[int, dict[int, StepMeaning]] = {}
    for row in candidates.tolist():
        meaning = meaning_of[int(host.name[row])]
        if meaning is not None:
            found.setdefault(meaning.priority, {})[row] = meaning
    return found


def _outermost(timeline: Timeline, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep the markers of the thread that has most of them, in time order, without those inside another.

    Rounding lets a step end a little after the next one has begun, so only a marker of which at least half lies
    inside another one is left out.
    """
    host = timeline.host
    track = int(np.bincount(host.track[rows]).argmax())
    rows = rows[host.track[rows] == track]
    rows = rows[np.lexsort((-host.end_ns[rows], host.start_ns[rows]))]
    start_ns, end_ns = host.start_ns[rows], host.end_ns[rows]
    outside = np.ones(len(rows), np.bool_)
    if (start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]).all():
        return rows
    reach_ns = int(end_ns[0])
    for place in range(1, len(rows)):
        start, end = int(start_ns[place]), int(end_ns[place])
        outside[place] = start >= reach_ns or end - reach_ns > reach_ns - start
        reach_ns = max(reach_ns, end) if outside[place] else reach_ns
    return rows[outside]


def _with_other_threads(timeline: Timeline, rows: NDArray[np.int64], marks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add the step marks of other threads where the loop moved there: at other times, under other names.

    thread 1   ├─ step 0 ─┤├─ step 1 ─┤
    thread 2                            ├─ step 2 ─┤├─ step 3 ─┤
    """
    host = timeline.host
    others = marks[host.track[marks] != host.track[rows[0]]]
    kept = rows.tolist()
    names = set(host.name[rows].tolist())
    for row in others[np.argsort(host.start_ns[others], kind="stable")].tolist():
        start_ns, end_ns = int(host.start_ns[row]), int(host.end_ns[row])
        beside_ns = np.minimum(host.end_ns[kept], end_ns) - np.maximum(host.start_ns[kept], start_ns)
        if int(host.name[row]) not in names and 2 * int(beside_ns.max()) < end_ns - start_ns:
            kept.append(row)
            names.add(int(host.name[row]))
    found = np.array(kept, np.int64)
    return found[np.argsort(host.start_ns[found], kind="stable")]


def _between_starts(
    timeline: Timeline, rows: NDArray[np.int64], meanings: dict[int, StepMeaning], kind: str
) -> list[Unit]:
    host = timeline.host
    starts, own_ends = host.start_ns[rows].tolist(), host.end_ns[rows].tolist()
    names = _told_apart([timeline.names[code] for code in host.name[rows].tolist()])
    ordinals = _ascending([meanings[row].ordinal if row in meanings else None for row in rows.tolist()])
    units = []
    for place, row in enumerate(rows.tolist()):
        end_ns = starts[place + 1] if place + 1 < len(rows) else own_ends[place]
        units.append(
            Unit(
                name=names[place],
                kind="step" if kind == "engine" else kind,
                ordinal=ordinals[place],
                start_ns=starts[place],
                end_ns=end_ns,
                between_ns=max(end_ns - own_ends[place], 0),
                marker=row,
            )
        )
    return units


def _ascending(numbers: list[int | None]) -> list[int]:
    """Return the numbers where there is one for each and they ascend, else places from 0."""
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers) and all(before < after for before, after in pairwise(known)):
        return known
    return list(range(len(numbers)))


def _told_apart(names: list[str]) -> list[str]:
    """Add its place in the list to every name that occurs several times."""
    seen = Counter(names)
    return [f"{name} #{place}" if seen[name] > 1 else name for place, name in enumerate(names)]


def _between_optimizer_steps(timeline: Timeline, rows: NDArray[np.int64]) -> list[Unit]:
    """Make units from one optimizer step's end to the next one's; what precedes the first end is head.

    With several optimizers in a step, the one that steps most often and last in the record marks.
    """
    host = timeline.host
    codes, counts = np.unique(host.name[rows], return_counts=True)
    often = codes[counts == counts.max()]
    last = host.name[rows[np.isin(host.name[rows], often)][-1]]
    rows = rows[host.name[rows] == last]
    ends = host.end_ns[rows].tolist()
    return [
        Unit(
            name=f"{timeline.names[int(last)]} {place + 1}",
            kind="step",
            ordinal=place,
            start_ns=ends[place],
            end_ns=ends[place + 1],
            between_ns=0,
            marker=int(rows[place + 1]),
        )
        for place in range(len(ends) - 1)
        if ends[place + 1] > ends[place]
    ]


def _whole(timeline: Timeline) -> list[Unit]:
    recorded = timeline.recorded()
    if len(recorded.start_ns) == 0:
        return []
    return [Unit("trace", "trace", 0, int(recorded.start_ns[0]), int(recorded.end_ns[0]), 0, -1)]
