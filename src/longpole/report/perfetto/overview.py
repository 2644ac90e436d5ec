"""What stands above the ranks in a viewer's trace: the critical path, and what is wrong with the evidence.

A viewer opens with all groups closed, and of a closed group it shows the group's own row: the path in short, and how
many findings there are.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.report.perfetto.writer import SaidSpans
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longpole.records.critical_path import CriticalPath, PathPiece
    from longpole.report.perfetto.writer import TraceWriter
    from longpole.timeline.integrity import Finding

    _Row: TypeAlias = tuple[int | None, str]

EVIDENCE: Final = "evidence"
"""The category of findings about the evidence."""
_SEVEREST_FIRST: Final = ("void", "warn", "note")
_NO_RANK: Final = "in no rank's record"


def add_path(writer: TraceWriter, path: CriticalPath, name_of: Callable[[int], str]) -> None:
    """Write the path: on its own row joined by rank and object, below a row for each thread and stream it visits.

    Rows stand in the order in which the path first comes by, those of a rank together: it is read like a staircase.

    Args:
        writer: Where to.
        path: The path.
        name_of: What a rank is called.
    """
    about = f"{path.says} Unit {path.unit}, {format_ns(path.period_ns)}; an arrow wherever the path changes its row."
    group = writer.add_track("critical path", about=about)
    _add_in_short(writer, group, path.pieces, name_of)
    rows = [_row_of(piece) for piece in path.pieces]
    order = {row: place for place, row in enumerate(_by_first_visit(rows))}
    lane = np.array([order[row] for row in rows], np.int64)
    start_ns = np.array([piece.start_ns for piece in path.pieces], np.int64)
    end_ns = start_ns + np.array([piece.dur_ns for piece in path.pieces], np.int64)
    said, arrives, leaves = _said(writer, path.pieces), np.zeros_like(lane), np.zeros_like(lane)
    left = np.flatnonzero(lane[1:] != lane[:-1])
    arrives[left + 1] = leaves[left] = left + 1
    for row, place in order.items():
        track = writer.add_track(_label(row, name_of), group, place)
        mine = np.flatnonzero(lane == place)
        writer.add_said(track, SaidSpans(start_ns[mine], end_ns[mine], said[mine], arrives[mine], leaves[mine]))


def add_integrity(writer: TraceWriter, findings: Sequence[Finding], times_ns: tuple[int, int]) -> None:
    """Write each finding as a bar across the run, the severest on top: the row says which one, the bar what is wrong.

    Args:
        writer: Where to.
        findings: What is wrong with the evidence.
        times_ns: Start and end of the run.
    """
    if not findings:
        return
    group = writer.add_track("integrity", about="What is wrong with the evidence, and what that voids.")
    writer.add_span(group, times_ns, _in_short(findings), EVIDENCE, {})
    ordered = sorted(findings, key=lambda finding: _SEVEREST_FIRST.index(finding.severity))
    for order, finding in enumerate(ordered):
        label = finding.code if finding.rank is None else f"{finding.code} · rank {finding.rank}"
        track = writer.add_track(label, group, order)
        writer.add_span(track, times_ns, finding.message, EVIDENCE, _finding_notes(finding))


def _in_short(findings: Sequence[Finding]) -> str:
    """Say how many there are, and what they do to figures."""
    counts = Counter(finding.severity for finding in findings)
    effects = [f"{counts['void']} of them withdrawing figures"] if counts["void"] else []
    effects += [f"{counts['warn']} of them limiting figures"] if counts["warn"] else []
    return f"{format_count(len(findings), 'finding')} about the evidence, {', '.join(effects) or 'no figure limited'}"


def _add_in_short(writer: TraceWriter, group: int, pieces: Sequence[PathPiece], name_of: Callable[[int], str]) -> None:
    """Write the path once more on one row, pieces that follow each other on a rank for one object as one."""
    starts_ns, ends_ns, said = [], [], []
    for (rank, charged), joined in groupby(pieces, key=lambda piece: (piece.rank, piece.object)):
        row = list(joined)
        starts_ns.append(row[0].start_ns)
        ends_ns.append(row[-1].start_ns + row[-1].dur_ns)
        where = _NO_RANK if rank is None else name_of(rank)
        said.append(writer.say(f"{charged} · {where}", charged, {"pieces": len(row)}))
    none = np.zeros(len(said), np.int64)
    spans = SaidSpans(np.array(starts_ns, np.int64), np.array(ends_ns, np.int64), np.array(said, np.int64), none, none)
    writer.add_said(group, spans)


def _said(writer: TraceWriter, pieces: Sequence[PathPiece]) -> NDArray[np.int64]:
    """Return what is shown of each piece; there are few kinds of them, and may be hundreds of thousands of pieces."""
    codes: dict[tuple[object, ...], int] = {}
    found = []
    for piece in pieces:
        key = (piece.name, piece.object, piece.grade, piece.reason, piece.rank, piece.track)
        code = codes.get(key)
        if code is None:
            name = piece.name or piece.reason or piece.object
            code = codes[key] = writer.say(name, piece.object, _piece_notes(piece))
        found.append(code)
    return np.array(found, np.int64)


def _by_first_visit(rows: Sequence[_Row]) -> list[_Row]:
    ranks = {rank: place for place, rank in enumerate(dict.fromkeys(rank for rank, _ in rows))}
    return sorted(dict.fromkeys(rows), key=lambda row: ranks[row[0]])


def _label(row: _Row, name_of: Callable[[int], str]) -> str:
    rank, track = row
    return _NO_RANK if rank is None else f"{name_of(rank)} · {track}" if track else name_of(rank)


def _row_of(piece: PathPiece) -> _Row:
    return (None, "") if piece.rank is None else (piece.rank, piece.track)


def _piece_notes(piece: PathPiece) -> dict[str, int | str]:
    notes: dict[str, int | str] = {"object": piece.object, "grade": piece.grade, "why here": piece.reason}
    return notes | ({"rank": piece.rank, "track": piece.track} if piece.rank is not None else {})


def _finding_notes(finding: Finding) -> dict[str, int | str]:
    notes: dict[str, int | str] = {"severity": finding.severity, "says": finding.message, "count": finding.count}
    notes |= {"rank": finding.rank} if finding.rank is not None else {}
    return notes | ({"voids": " ".join(finding.voids)} if finding.voids else {})
