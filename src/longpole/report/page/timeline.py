"""The data of the timeline: spans as columns of numbers, base 64, names once each.

18 bytes a span before and 24 after encoding; with the names a page stays below 60 bytes for each span drawn.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.report.escape import escape
from longpole.report.palette import OBJECT_COLORS, PATH_COLOR
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longpole.records.critical_path import PathPiece
    from longpole.report.drawing import Drawing, DrawnUnit

_TICKS_MAX: Final = (1 << 32) - 1
_NAME_MAX: Final = 300


def timeline_data(drawing: Drawing) -> str:
    """Return the timeline as JSON that may stand inside a script element which is no script."""
    document = {
        "lanes": [
            {"rank": one.rank, "kind": one.lane.kind, "label": escape(one.lane.label)[:_NAME_MAX]}
            for one in drawing.lanes
        ],
        "names": [_shortened(name) for name in drawing.names],
        "objects": list(OBJECTS),
        "colors": [OBJECT_COLORS[name] for name in OBJECTS],
        "path_color": PATH_COLOR,
        "units": [_unit(unit, drawing) for unit in drawing.units],
    }
    # A name may hold the end of the element; no character of markup is left in it.
    written = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shortened(name: str) -> str:
    plain = escape(name)
    return plain if len(plain) <= _NAME_MAX else f"{plain[: _NAME_MAX - 60]} … {plain[-50:]}"


def _unit(unit: DrawnUnit, drawing: Drawing) -> dict[str, Any]:
    spans = unit.spans
    length_ns = max(unit.end_ns - unit.start_ns, 1)
    tick_ns = max(-(-length_ns // _TICKS_MAX), 1)
    names, pieces = _path(unit.pieces, unit, drawing)
    return {
        "name": escape(unit.name)[:_NAME_MAX],
        "start_ns": unit.start_ns,
        "length_ns": length_ns,
        "tick_ns": tick_ns,
        "n": len(spans),
        "lane": _packed(spans.lane, "<u2"),
        "depth": _packed(spans.depth, "<u1"),
        "object": _packed(spans.object, "<u1"),
        "start": _packed(spans.start_ns // tick_ns, "<u4"),
        "length": _packed(np.maximum((spans.end_ns - spans.start_ns) // tick_ns, 1), "<u4"),
        "label": _packed(spans.name, "<u4"),
        "count": _packed(np.minimum(spans.count, 65535), "<u2"),
        "sized": _packed(np.flatnonzero(spans.size_bytes >= 0), "<u4"),
        "bytes": _packed(spans.size_bytes[spans.size_bytes >= 0], "<f8"),
        "path": pieces,
        "path_names": names,
    }


def _path(pieces: Sequence[PathPiece], unit: DrawnUnit, drawing: Drawing) -> tuple[list[str], list[list[int]]]:
    """Return the path as [lane or -1, start, length, object, text] with texts by number."""
    lanes = {(one.rank, one.lane.track): place for place, one in enumerate(drawing.lanes) if one.lane.track}
    texts: dict[str, int] = {}
    found = []
    for piece in pieces:
        lane = lanes.get((piece.rank, piece.track), -1) if piece.rank is not None else -1
        name = _shortened(f"{piece.name or piece.object} · {piece.grade} · {piece.reason}")
        charged = OBJECTS.index(piece.object) if piece.object in OBJECTS else OBJECTS.index("unknown")
        found.append([lane, piece.start_ns - unit.start_ns, piece.dur_ns, charged, texts.setdefault(name, len(texts))])
    return list(texts), found


def _packed(column: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(column, dtype=dtype).tobytes()).decode("ascii")
