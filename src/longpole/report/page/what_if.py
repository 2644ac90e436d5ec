"""The panel that asks what a unit would take if something were different; hidden unless `longpole serve` answers."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Final

from longpole.advice.catalogue import conflicts_of, load_catalogue
from longpole.records.ledger import Unknown
from longpole.report.page.markup import Figure, section, text
from longpole.whatif.selector import SELECTABLE_OBJECTS

if TYPE_CHECKING:
    from longpole.records.findings import CandidateEntry
    from longpole.report.document import Report

WHAT_IF: Final = Figure(
    "whatif",
    "What if",
    "The recorded run is replayed with the changes, all together: sliders first, then the candidates that are ticked."
    " A prediction is not a measurement. The answer is that of the longpole whatif command below it, byte for byte.",
    "docs/guides/what-if.md",
)
_CANDIDATES_MAX: Final = 40  # as many as the page lists
_RESULT: Final = (
    '<div id="whatif-result" aria-live="polite"><p id="whatif-says" class=big></p><p id="whatif-error" class=note></p>'
    '<p id="whatif-next"></p><div class=scroll><table id="whatif-path" hidden><thead><tr><th scope=col>path of the mean'
    " unit</th><th scope=col class=num>before</th><th scope=col class=num>after</th><th scope=col class=num>saving</th>"
    '</tr></thead><tbody></tbody></table></div><p id="whatif-belief" class=note></p>'
    '<p id="whatif-asked" class=note></p></div>'
)


def render_what_if(report: Report) -> str:
    """Return the panel; its script shows it where there is somebody to ask."""
    sliders = "".join(_slider(name) for name in _objects(report))
    ranks = len(report.run.ranks_present)
    only = '<label>only on rank <input id="whatif-rank" type="number" min="0" placeholder="all"></label>'
    controls = (
        f'<div class="controls whatif">{sliders}</div><div class=controls>{only if ranks > 1 else ""}'
        '<button id="whatif-reset">as recorded</button></div>'
    )
    whole = section(WHAT_IF, controls, _toggles(report.candidates or []), _RESULT)
    return whole.replace('<section id="whatif">', '<section id="whatif" hidden>', 1)


def _objects(report: Report) -> list[str]:
    """Return the objects that take time in this run, the costliest first."""
    path = report.critical_path
    if isinstance(path, Unknown):
        times = {name: one.exposed_ns for name, one in report.ledger.objects.items()}
    else:
        times = path.by_object_ns
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [name for name, time_ns in ordered if time_ns > 0 and name in SELECTABLE_OBJECTS]


def _slider(name: str) -> str:
    return (
        f'<label>{text(name)} <input type="range" min="0" max="2" step="0.05" value="1" data-object="{text(name)}">'
        " <output>× 1</output></label>"
    )


def _toggles(candidates: list[CandidateEntry]) -> str:
    """Return a box for each change; its script lets none be ticked beside one that it excludes."""
    shown = [one for one in candidates[:_CANDIDATES_MAX] if one.changes]
    if not shown:
        return ""
    excludes = conflicts_of(load_catalogue())
    ids = {one.id for one in shown}
    rows = [
        f'<li><label><input type="checkbox" data-id="{text(one.id)}" data-changes="{_json(one.changes)}"'
        f' data-excludes="{_json(sorted(excludes.get(one.id, set()) & ids))}" aria-describedby="toggle-{place}">'
        f' <code>{text(one.id)}</code> {text(one.says)}</label> <span class=note id="toggle-{place}"></span></li>'
        for place, one in enumerate(shown)
    ]
    return f'<ul class="toggles">{"".join(rows)}</ul>'


def _json(values: list[str]) -> str:
    """Return texts exactly, as an attribute: changes are sent back as they are."""
    return html.escape(json.dumps(values))
