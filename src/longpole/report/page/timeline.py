"""The data of the timeline: spans as columns of numbers, base 64, names and call stacks once each.

26 bytes a span before and 35 after encoding; with the names a page stays below 60 bytes for each span drawn.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from longpole.digest.rank_drawing import STREAM
from longpole.report.escape import escape
from longpole.report.page.drawn_path import draw_path
from longpole.report.page.markup import without_place
from longpole.report.palette import OBJECT_COLORS, PATH_COLOR, text_color_on
from longpole.report.utilisation import ESTIMATED
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.digest.rank_drawing import Spans
    from longpole.report.drawing import Drawing, DrawnUnit

_TICKS_MAX: Final = (1 << 32) - 1
_NAME_MAX: Final = 300
_SHARE_STEPS: Final = 10_000  # a hundredth of a percent
_SHARE_UNKNOWN: Final = (1 << 16) - 1


def timeline_data(drawing: Drawing) -> str:
    """Return the timeline as JSON that may stand inside a script element which is no script."""
    uses = _uses(drawing)
    document = {
        "lanes": [
            {"rank": one.rank, "kind": one.lane.kind, "label": escape(one.lane.label)[:_NAME_MAX]}
            for one in drawing.lanes
        ],
        "names": [_shortened(name) for name in drawing.names],
        "uses": uses.tolist(),
        "measured": is_measured(drawing),
        "estimates": [place for place, code in enumerate(uses.tolist()) if drawing.names[code].startswith(ESTIMATED)],
        "stacks": [[frame for frame in stack if frame >= 0] for stack in drawing.stacks.tolist()],
        "objects": list(OBJECTS),
        "colors": [OBJECT_COLORS[name] for name in OBJECTS],
        "inks": [text_color_on(OBJECT_COLORS[name]) for name in OBJECTS],
        "path_color": PATH_COLOR,
        "units": [_unit(unit, drawing, uses) for unit in drawing.units],
    }
    # A name may hold the end of the element; no character of markup is left in it.
    written = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shortened(name: str) -> str:
    plain = escape(without_place(name))
    return plain if len(plain) <= _NAME_MAX else f"{plain[: _NAME_MAX - 60]} … {plain[-50:]}"


def is_measured(drawing: Drawing) -> bool:
    """Return whether the use of any span is known: then heights mean something."""
    return any(bool(np.isfinite(unit.spans.share).any()) for unit in drawing.units)


def heights_told(drawing: Drawing) -> str:
    """Return what the heights of device spans mean in a drawing; empty where it has none."""
    lanes = [place for place, one in enumerate(drawing.lanes) if one.lane.kind == STREAM]
    if not lanes:
        return ""
    if is_measured(drawing):
        return (
            "Heights of a device's spans: how much each used of the peak that is nearest to bounding it. Hatched: no"
            " peak to compare with; as high as the profiler's estimate of how full the processors were, or at full"
            " height where nothing is known. Pointing at a span says which."
        )
    lost_ns: dict[int, int] = {}
    for spans in (unit.spans for unit in drawing.units):
        mine = np.flatnonzero(np.isin(spans.lane, lanes) & (spans.use >= 0))
        for code in np.unique(spans.use[mine]).tolist():
            of_code = mine[spans.use[mine] == code]
            lost_ns[code] = lost_ns.get(code, 0) + int((spans.end_ns[of_code] - spans.start_ns[of_code]).sum())
    if not lost_ns:
        return ""
    why = drawing.names[max(lost_ns, key=lambda code: lost_ns[code])]
    return (
        "How much of its peaks a device's spans used is not known, so all are drawn at full height. The usual reason:"
        f" {why}."
    )


def _uses(drawing: Drawing) -> NDArray[np.int32]:
    """Return the codes of the names that say what shares are shares of."""
    found = np.unique(np.concatenate([unit.spans.use for unit in drawing.units] or [np.empty(0, np.int32)]))
    return found[found >= 0][: (1 << 16) - 1]


def _unit(unit: DrawnUnit, drawing: Drawing, uses: NDArray[np.int32]) -> dict[str, Any]:
    spans = unit.spans
    length_ns = max(unit.end_ns - unit.start_ns, 1)
    tick_ns = max(-(-length_ns // _TICKS_MAX), 1)
    lanes = {(one.rank, one.lane.track): place for place, one in enumerate(drawing.lanes) if one.lane.track}
    names, pieces = draw_path(unit, lanes, _shortened)
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
        **_looked_into(spans, uses),
        "path": pieces,
        "path_names": names,
    }


def _looked_into(spans: Spans, uses: NDArray[np.int32]) -> dict[str, str]:
    """Return shares, what they are shares of, and call stacks, from 1; each empty where no span has one."""
    steps = np.clip(np.nan_to_num(spans.share, nan=0.0) * _SHARE_STEPS, 0, _SHARE_UNKNOWN - 1).round()
    steps = np.where(np.isnan(spans.share), _SHARE_UNKNOWN, steps)
    place = np.searchsorted(uses, spans.use) + 1
    said = (spans.use >= 0) & (place <= len(uses))
    return {
        "share": _packed(steps, "<u2") if said.any() else "",
        "use": _packed(np.where(said, place, 0), "<u2") if said.any() else "",
        "stack": _packed(spans.stack + 1, "<u4") if (spans.stack >= 0).any() else "",
    }


def _packed(column: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(column, dtype=dtype).tobytes()).decode("ascii")
