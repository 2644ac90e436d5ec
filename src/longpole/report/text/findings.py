"""What holds the job up, by cause, the most costly first: what each costs, on what that rests, and where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.layout import wrap
from longpole.report.text.words import plural, unit_noun
from longpole.units import format_ns
from longpole.vocabulary.causes import NO_VERDICT, NO_WAIT

if TYPE_CHECKING:
    from longpole.records.findings import CauseFinding, Evidence
    from longpole.report.document import Report
    from longpole.report.text.layout import Style

_SHOWN: Final = 6
_COLUMN: Final = 26
_TRIED: Final = 3
_GAIN_MIN: Final = 0.01
_GRADES: Final = {"inferred": "inferred", "ordered": "", "recorded": ""}


def render_findings(report: Report, style: Style) -> list[str]:
    """Return the section; empty where nothing was found, or where the headline says all there is."""
    found = [finding for finding in report.findings if finding.cause not in (NO_VERDICT, NO_WAIT)]
    if not found:
        return []
    noun = unit_noun(report.unit.kind)
    lines = [style.title("WHAT HOLDS IT UP", f"what removing each alone would save per {noun}")]
    for finding in found[:_SHOWN]:
        lines += _finding(finding, report, style)
    if len(found) > _SHOWN:
        lines.append(style.faint(f"  and {plural(len(found) - _SHOWN, 'more finding')}; --json has them all"))
    lines += _worth_trying(report, style)
    hint = "all that is worth trying: longpole candidates; what a cause means: longpole explain"
    lines += [style.faint(line) for line in wrap(f"{hint} {found[0].cause}", style.width, first="  ", rest="  ")]
    return lines


def _worth_trying(report: Report, style: Style) -> list[str]:
    """Name the changes with the largest predicted gain."""
    gains = [
        f"{one.id} saves {one.predicted_gain_share:.0%} ({one.effort} effort)"
        for one in report.candidates
        if isinstance(one.predicted_gain_share, float) and one.predicted_gain_share >= _GAIN_MIN
    ]
    if not gains:
        return []
    text = f"worth trying, each alone by replay: {' · '.join(gains[:_TRIED])}"
    return wrap(text, style.width, first="  ", rest="    ")


def _finding(finding: CauseFinding, report: Report, style: Style) -> list[str]:
    is_pole = finding.id == report.long_pole
    says = "the long pole, as above" if is_pole else escape(finding.says)
    mark = "►" if is_pole else " "
    lines = wrap(f"{_cost(finding)}  {says}", style.width, first=f"{mark} ", rest="    ", max_lines=3)
    costs_time = bool(finding.once or finding.cost_ns_per_unit)
    notes = [finding.cause, f"by the {finding.basis}" if costs_time else "costs no time by itself"]
    notes += [_GRADES[finding.evidence_grade]] if _GRADES.get(finding.evidence_grade) else []
    if finding.cost_statistic == "mean" and costs_time:
        notes.append("mean over units")
    where = next((_where(row) for row in finding.evidence if row.where.start_ns is not None), "")
    text = " · ".join(notes) + (f" · see {where}" if where else "")
    return lines + [style.faint(line) for line in wrap(text, style.width, first="    ", rest="    ", max_lines=2)]


def _cost(finding: CauseFinding) -> str:
    if finding.once:
        return f"{format_ns(finding.cost_once_ns)} once"
    if not finding.cost_ns_per_unit:
        return "0"
    return f"{format_ns(finding.cost_ns_per_unit)} ({finding.cost_share:.0%})"


def _where(row: Evidence) -> str:
    place = row.where
    name = f"“{escape(place.name[:_COLUMN])}”" if place.name else "there"
    rank = f" on rank {place.rank}" if place.rank is not None else ""
    return f"{name}{rank} at {format_ns(place.start_ns or 0)}"
