"""The critical path of one unit: its pieces on the tracks that it comes by, and what they add up to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.report.figures.sheet import (
    SMALL,
    Drawn,
    add_boxes,
    add_legend,
    color_of,
    fitting,
    label_room,
    new_figure,
    own_look,
    shown,
    text_color_on,
    time_scale,
    write_notes,
)
from longpole.units import format_count, format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from longpole.records.critical_path import CriticalPath, PathPiece

ROWS_MAX: Final = 24
_FINEST: Final = 2048  # of the path, what can be told apart
_ROW_IN: Final = 0.2
_LABELS: Final = 0.3  # what is written beside takes of the width, about
_NAMES_MAX: Final = 200
_UNSURE: Final = ("inferred", "guess")
_NOWHERE: Final = (1 << 62, "in no rank's record")
_OTHERS: Final = (1 << 61, "other tracks")


def draw_path(path: CriticalPath, *, width_in: float) -> Drawn:
    """Draw the unit that a report shows the critical path of.

    Args:
        path: The path.
        width_in: Width in inches.
    """
    length_ns = max(sum(piece.dur_ns for piece in path.pieces), 1)
    pieces = _joined(path.pieces, max(length_ns // _FINEST, 1))
    rows = _rows(pieces)
    by_object: Counter[str] = Counter()
    for piece in path.pieces:
        by_object[piece.object if piece.object in OBJECTS else "unknown"] += piece.dur_ns
    says = f"Critical path of {path.unit}: {format_ns(path.period_ns)}"
    notes = [_grades(path.pieces, length_ns)] if path.pieces else []
    with own_look():
        figure = new_figure(width_in, 1.2 + _ROW_IN * max(len(set(rows.values())), 1))
        axes = figure.add_subplot()
        _draw_pieces(axes, pieces, rows, length_ns, (label_room(width_in), width_in * (1 - _LABELS) / length_ns))
        legend = [
            (name, f"{name} {format_ns(by_object[name])} ({_percent(by_object[name] / length_ns)})")
            for name in OBJECTS
            if by_object[name]
        ]
        add_legend(figure, says, legend)
        write_notes(figure, notes)
    return Drawn(figure, f"{says}, {format_count(len(path.pieces), 'piece')}", notes)


def _joined(pieces: Sequence[PathPiece], least_ns: int) -> list[PathPiece]:
    """Join neighbours that differ in nothing that is drawn, and sort those too short to be told apart by object.

    Pieces shorter than a column that follow one another on a track within one are drawn as one piece for each object;
    what each object takes stays exact.
    """
    found: list[PathPiece] = []
    short: list[PathPiece] = []
    for piece in pieces:
        first = short[0] if short else None
        is_short = piece.dur_ns < least_ns
        if first and not (is_short and _track(piece) == _track(first) and piece.start_ns - first.start_ns < least_ns):
            found += _by_object(short)
            short = []
        if is_short:
            short.append(piece)
            continue
        last = found[-1] if found else None
        if last is not None and _look(last) == _look(piece) and last.start_ns + last.dur_ns == piece.start_ns:
            found[-1] = msgspec.structs.replace(last, dur_ns=last.dur_ns + piece.dur_ns)
        else:
            found.append(piece)
    return found + _by_object(short)


def _by_object(pieces: Sequence[PathPiece]) -> list[PathPiece]:
    """Return one piece for each object, one behind the other; the longest gives the name and the grade."""
    if len(pieces) < 2:
        return list(pieces)
    spent: Counter[str] = Counter()
    longest: dict[str, PathPiece] = {}
    for piece in pieces:
        spent[piece.object] += piece.dur_ns
        if piece.object not in longest or piece.dur_ns > longest[piece.object].dur_ns:
            longest[piece.object] = piece
    at_ns, found = pieces[0].start_ns, []
    for name, time_ns in sorted(spent.items()):
        found.append(msgspec.structs.replace(longest[name], start_ns=at_ns, dur_ns=time_ns))
        at_ns += time_ns
    return found


def _look(piece: PathPiece) -> tuple[object, ...]:
    return piece.rank, piece.track, piece.name, piece.object, piece.grade


def _rows(pieces: Sequence[PathPiece]) -> dict[tuple[int, str], tuple[int, str]]:
    """Return the row of each track, those of one rank together; beyond `ROWS_MAX` tracks share a row."""
    spent: Counter[tuple[int, str]] = Counter()
    for piece in pieces:
        spent[_track(piece)] += piece.dur_ns
    kept = {track for track, _ in spent.most_common(ROWS_MAX if len(spent) <= ROWS_MAX else ROWS_MAX - 1)}
    return {track: track if track in kept else _OTHERS for track in sorted(spent)}


def _track(piece: PathPiece) -> tuple[int, str]:
    return _NOWHERE if piece.rank is None else (piece.rank, piece.track)


def _draw_pieces(
    axes: Axes,
    pieces: Sequence[PathPiece],
    rows: dict[tuple[int, str], tuple[int, str]],
    length_ns: int,
    room: tuple[int, float],
) -> None:
    places = {row: place for place, row in enumerate(dict.fromkeys(sorted(rows.values())))}
    start_ns = pieces[0].start_ns if pieces else 0
    step_ns, unit = time_scale(length_ns)
    boxes: dict[tuple[str, bool], list[tuple[float, float, float, float]]] = {}
    spent: Counter[int] = Counter()
    line: list[tuple[float, float]] = []
    for piece in pieces:
        place = places[rows[_track(piece)]]
        spent[place] += piece.dur_ns
        left_ns = piece.start_ns - start_ns
        box = left_ns / step_ns, place + 0.32, (left_ns + piece.dur_ns) / step_ns, place - 0.32
        boxes.setdefault((piece.object, piece.grade in _UNSURE), []).append(box)
        line += [(box[0], place), (box[2], place)]
    if line:
        axes.plot(*zip(*line, strict=True), color="#999999", linewidth=0.5, zorder=0.5)
    for (charged, unsure), mine in sorted(boxes.items()):
        # A path's lines are the hatch's colour too.
        look = {"hatch": "/////", "edgecolor": "white"} if unsure else {}
        add_boxes(axes, mine, color_of(charged), gid=charged, **look)
    _name_pieces(axes, pieces, [places[rows[_track(piece)]] for piece in pieces], room[1])
    for place, time_ns in spent.items():
        axes.text(length_ns / step_ns * 1.01, place, format_ns(time_ns), fontsize=SMALL, va="center_baseline")
    axes.set_yticks(list(places.values()), [_label(row, room[0]) for row in places], fontsize=SMALL)
    axes.set_xlim(0, length_ns / step_ns * 1.08)
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    axes.set_xlabel(f"{unit} since the path began")
    if not pieces:
        axes.text(0.5, 0.5, "the path has no pieces", transform=axes.transAxes, ha="center")


def _name_pieces(axes: Axes, pieces: Sequence[PathPiece], places: Sequence[int], in_per_ns: float) -> None:
    """Write names into what has room for them: neighbours of one object in a row have the name of most of it."""
    start_ns = pieces[0].start_ns if pieces else 0
    whole_ns = sum(piece.dur_ns for piece in pieces)
    step_ns, _ = time_scale(whole_ns)
    runs: list[tuple[int, str, list[PathPiece]]] = []
    for piece, place in zip(pieces, places, strict=True):
        if piece.dur_ns * _FINEST < whole_ns and runs and runs[-1][0] == place:
            continue  # too short to part what it lies between
        if runs and runs[-1][:2] == (place, piece.object):
            runs[-1][2].append(piece)
        else:
            runs.append((place, piece.object, [piece]))
    runs.sort(key=lambda run: -_span_ns(run[2]))
    for place, charged, run in runs[:_NAMES_MAX]:
        spent: Counter[str] = Counter()
        for piece in run:
            spent[piece.name or charged] += piece.dur_ns
        says = fitting(spent.most_common(1)[0][0], _span_ns(run) * in_per_ns)
        if says:
            middle = (run[0].start_ns - start_ns + _span_ns(run) / 2) / step_ns
            color = text_color_on(color_of(charged))
            axes.text(middle, place, says, fontsize=SMALL, ha="center", va="center_baseline", color=color)


def _span_ns(run: Sequence[PathPiece]) -> int:
    return run[-1].start_ns + run[-1].dur_ns - run[0].start_ns


def _label(row: tuple[int, str], most: int) -> str:
    return row[1] if row in (_NOWHERE, _OTHERS) else shown(f"rank {row[0]} · {row[1]}", most)


def _grades(pieces: Sequence[PathPiece], length_ns: int) -> str:
    """Say how sure the path is."""
    spent: Counter[str] = Counter()
    for piece in pieces:
        spent[piece.grade] += piece.dur_ns
    parts = [f"{name} {_percent(time_ns / length_ns)}" for name, time_ns in spent.most_common()]
    hatched = "; inferred and guessed pieces are hatched" if any(spent[name] for name in _UNSURE) else ""
    return f"evidence: {', '.join(parts)}{hatched}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 or not share else "under 1 %"
