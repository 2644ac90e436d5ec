"""NOT KNOWN: which figures are missing, why, and what to record so that they are there next time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.layout import wrap
from longpole.report.text.pointers import say_pointer
from longpole.report.text.words import plural, ranks_as_text

if TYPE_CHECKING:
    from longpole.report.document import Report, UnknownEntry
    from longpole.report.text.layout import Style

_SHOWN: Final = 5
_NAMED: Final = 3
_LINES: Final = 3
# The figures of the page first; the first beginning that fits counts.
_ORDER: Final = (("/ledger/", 0), ("/run/", 1), ("/unit/period_ns/p95", 5), ("/unit/period_ns", 1), ("/ranks/", 2))
_UNRANKED: Final = 4
_ON_THE_PAGE: Final = 2
_BESIDE_THE_PAGE: Final = re.compile(r"/headline$|/unit/items/|/candidates/|/resources|/ranks/\d+/units/")


def render_not_known(report: Report, style: Style) -> list[str]:
    """Show what is not known of this page's figures, and what could be known if it were recorded.

    Figures with the same reason are named together.
    """
    n_groups, shown = said_unknown(report)
    if not n_groups:
        return []
    if not shown:
        rest = f"{plural(n_groups, 'reason')}, none about the figures above; --json has them"
        return [style.title("NOT KNOWN", rest)]
    lines = [style.title("NOT KNOWN")]
    for text in shown:
        lines += wrap(escape(text), style.width, first="  ", rest="      ", max_lines=_LINES)
    if n_groups > len(shown):
        lines.append(f"  and {n_groups - len(shown)} more; --json has them all")
    return lines


def said_unknown(report: Report) -> tuple[int, list[str]]:
    """Say what is not known of a page's figures: how many reasons there are, and the first ones in a sentence each."""
    groups: dict[tuple[str, tuple[str, ...]], list[UnknownEntry]] = {}
    for entry in sorted(_for_the_page(report), key=_weight):
        groups.setdefault((entry.why, tuple(entry.missing)), []).append(entry)
    shown = [group for group in groups.items() if group[0][1] or _weight(group[1][0]) <= _ON_THE_PAGE][:_SHOWN]
    texts = []
    for (why, missing), entries in shown:
        need = f" → record {'; '.join(missing)}" if missing else ""
        texts.append(f"{_figures(report, entries)}: {why}{need}")
    return len(groups), texts


def _for_the_page(report: Report) -> list[UnknownEntry]:
    """Leave out what stands elsewhere on the page (the verdict, findings) or is about nothing on it."""
    said = {f"{finding.code}: {finding.message}" for finding in report.integrity}
    return [entry for entry in report.unknown if entry.why not in said and not _BESIDE_THE_PAGE.match(entry.at)]


def _weight(entry: UnknownEntry) -> int:
    return next((weight for beginning, weight in _ORDER if entry.at.startswith(beginning)), _UNRANKED)


def _figures(report: Report, entries: list[UnknownEntry]) -> str:
    """Name the figures of some entries, and the ranks that they belong to."""
    places = [say_pointer(entry.at, report) for entry in entries]
    parts: dict[str, dict[str, None]] = {}
    for place in places:
        parts.setdefault(place.owner, {})[place.part] = None
    words = [f"{owner} ({', '.join(filter(None, of))})" if any(of) else owner for owner, of in parts.items()]
    named = "; ".join(words[:_NAMED]) + (f" and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
    ranks = {place.rank for place in places if place.rank is not None}
    if not ranks or ranks == {row.rank for row in report.ranks}:
        return named
    return f"{ranks_as_text(ranks)}: {named}"
