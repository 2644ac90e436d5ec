"""The whole page as one self-contained file.

No network, no font, no library: charts are SVG made by `charts`; the timeline and the what-if panel, which stays hidden
unless `longpole serve` answers it, are a script of our own each. So the policy of the page allows these scripts and
that style by their hashes and nothing else, no `eval` among it; names from traces are text, in markup and in the data
that the scripts read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.report.page.charts import legend
from longpole.report.page.ledger import render_ledger, render_units
from longpole.report.page.markup import Figure, section, text
from longpole.report.page.resources import render_resources
from longpole.report.page.sections import (
    render_candidates,
    render_collectives,
    render_findings,
    render_header,
    render_heat,
    render_path,
    render_record,
)
from longpole.report.page.shell import asset, made_from, write_page
from longpole.report.page.timeline import heights_told, timeline_data
from longpole.report.page.what_if import render_what_if
from longpole.report.page.why import render_idle, render_work
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.drawing import Drawing

TIMELINE: Final = Figure(
    "gantt",
    "Timeline of a unit",
    "A row for each thread, stream and link of each rank, on one clock. Colours are objects; below a device's streams"
    " stands what crossed its links, which their rows show again, and why nothing ran. The line is the critical path."
    " Drag to pan; zoom with the buttons, with + and −, or with Ctrl and the wheel; [ and ] walk along the path,"
    " . and , from span to span, Page up and Page down from row to row. Spans too short to be seen are drawn together,"
    " and say how many they are.",
    "docs/concepts/critical-path.md",
)
_CONTROLS: Final = (
    '<div class=controls><label>unit <select id="pick-unit"></select></label>'
    '<label>rank <select id="pick-rank"></select></label>'
    '<button id="pan-left" aria-label="pan left">←</button><button id="pan-right" aria-label="pan right">→</button>'
    '<button id="zoom-in" aria-label="zoom in">+</button><button id="zoom-out" aria-label="zoom out">−</button>'
    '<button id="zoom-all">all</button><button id="last-piece">◂ path</button>'
    '<button id="next-piece">path ▸</button></div>'
    '<canvas id="timeline" tabindex="0" role="application" aria-label="Timeline: arrows pan, plus and minus zoom,'
    " brackets walk along the critical path, full stop and comma go from span to span, Page up and Page down from row"
    ' to row"></canvas><div id="tip" role="status" hidden></div>'
    '<p id="timeline-told" class=note aria-live="polite"></p>'
    "<noscript><p class=unknown>The timeline needs JavaScript; everything else on this page does not.</p></noscript>"
)


def render_page(report: Report, drawing: Drawing | None) -> bytes:
    """Write the page.

    Args:
        report: The report.
        drawing: The pictures of its units; None where none could be made.

    Returns:
        UTF-8 HTML with a line end.
    """
    parts = [
        render_header(report),
        _navigation(report, drawing),
        render_findings(report),
        render_ledger(report),
        _timeline(drawing),
        render_path(report),
        render_idle(report),
        render_candidates(report),
        render_what_if(report),
        render_units(report),
        render_heat(report),
        render_collectives(report),
        render_work(report),
        render_resources(report),
        render_record(report),
    ]
    data = f'<script type="application/json" id="timeline-data">{timeline_data(drawing)}</script>' if drawing else ""
    scripts = [*([asset("timeline.js")] if drawing else []), asset("what_if.js")]
    foot = made_from(report.longpole, [one.path for one in report.run.sources])
    return write_page(_title(report), parts, foot, scripts, data)


def _title(report: Report) -> str:
    says = getattr(report.headline, "says", "no verdict")
    return f"Longpole: {says}"


def _timeline(drawing: Drawing | None) -> str:
    if drawing is None or not drawing.units:
        return ""
    notes = [*drawing.notes]
    if drawing.left_out:
        some = ", ".join(list(drawing.left_out)[:3])
        notes.append(
            f"{len(drawing.left_out)} units are not drawn ({some}, …): {next(iter(drawing.left_out.values()))}"
        )
    said = "; ".join(notes)
    note = f"<p class=note>{text(said[:1].upper() + said[1:])}.</p>" if notes else ""
    heights = heights_told(drawing)
    told = f"<p class=note>{text(heights)}</p>" if heights else ""
    drawn = {code for unit in drawing.units for code in np.unique(unit.spans.object).tolist()}
    colors = legend([name for code, name in enumerate(OBJECTS) if code in drawn])
    return section(TIMELINE, _CONTROLS, colors, told, note)


def _navigation(report: Report, drawing: Drawing | None) -> str:
    links = [("causes", "causes")] if report.findings else []
    links.append(("ledger", "ledger"))
    links += [("gantt", "timeline")] if drawing is not None and drawing.units else []
    links += [("path", "critical path")]
    links += [("idle", "why nothing ran")] if any(report.ledger.idle_ns.values()) else []
    links += [("candidates", "worth trying")] if report.candidates else []
    links += [("collectives", "collectives")] if report.collectives else []
    links += [("resources", "resources")]
    links.append(("record", "the record"))
    asks = '<a id="whatif-link" href="#whatif" hidden>what if</a>'
    return "<nav>" + "".join(f'<a href="#{ident}">{name}</a>' for ident, name in links) + f"{asks}</nav>"
