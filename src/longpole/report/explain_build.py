"""From symptoms, pages and a run's report to what `longpole explain` answers."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from longpole.advice.cause_pages import NEEDS_MORE, read_page
from longpole.records.ledger import Unknown
from longpole.report.explain import (
    CauseEntry,
    FigureEntry,
    PageEntry,
    SectionEntry,
    SymptomEntry,
    TopicEntry,
)
from longpole.report.figures_at import read_figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.advice.symptoms import Figure, Symptom
    from longpole.advice.topics import Topic
    from longpole.report.document import Report
    from longpole.report.figures_at import Reading
    from longpole.settings import Settings

_PATH = "PATH"


def build_topics(topics: Iterable[Topic]) -> list[TopicEntry]:
    """Return topics as a document has them."""
    return [TopicEntry(topic.kind, topic.id, topic.says) for topic in topics]


def build_symptom(
    symptom: Symptom, settings: Settings, report: Report | None = None, paths: Sequence[str] = ()
) -> SymptomEntry:
    """Return a symptom, and what a run says of it.

    Args:
        symptom: The symptom.
        settings: From which values on figures are notable.
        report: The run's report; None without a run.
        paths: How the run was named, for the commands.
    """
    figures = [_figure(figure, settings, report) for figure in symptom.figures]
    causes = [build_cause(cause, report) for cause in symptom.causes]
    if report is not None:
        causes = _in_order(causes, figures)
    found = [cause for cause in causes if cause.findings is not UNSET and cause.findings]
    candidates = _candidates(symptom, found)
    wanted = {*symptom.candidates, *candidates}
    return SymptomEntry(
        id=symptom.id,
        says=symptom.says,
        means=symptom.means,
        figures=figures,
        causes=causes,
        candidates=candidates,
        candidates_here=[entry for entry in report.candidates if entry.id in wanted] if report is not None else [],
        record=list(symptom.record),
        next=_commands(symptom, found, paths),
    )


def build_page(cause: str, report: Report | None = None) -> PageEntry:
    """Return the page of a cause, and what a run says of it."""
    page = read_page(cause)
    sections = [SectionEntry(section.title, section.text) for section in page.sections]
    return PageEntry(build_cause(cause, report), sections, f"docs/reference/causes/{cause}.md")


def build_cause(cause: str, report: Report | None = None) -> CauseEntry:
    """Return a cause, and the findings of a run that name it."""
    page = read_page(cause)
    entry = CauseEntry(cause, page.object, page.says, needs=NEEDS_MORE.get(cause, ""))
    if report is not None:
        entry.findings = [finding for finding in report.findings if finding.cause == cause]
    return entry


def long_pole_of(report: Report) -> str | None:
    """Return the cause that is a run's long pole; None where no verdict is given."""
    return next((finding.cause for finding in report.findings if finding.id == report.long_pole), None)


def headline_of(report: Report) -> str:
    """Return what a report says first."""
    if isinstance(report.headline, Unknown):
        return f"no verdict: {report.headline.unknown}"
    return report.headline.says


def _figure(figure: Figure, settings: Settings, report: Report | None) -> FigureEntry:
    entry = FigureEntry(
        what=figure.what,
        at=figure.at,
        take=figure.take,
        reads=figure.reads,
        of=figure.of,
        notable_from=figure.least(settings),
        points_to=list(dict.fromkeys([*figure.points_to, *figure.when.values()])),
    )
    if report is not None:
        _fill(entry, figure, read_figure(report, figure.at, figure.of, figure.take))
    return entry


def _fill(entry: FigureEntry, figure: Figure, reading: Reading) -> None:
    """Write what a run says into a figure."""
    entry.value = reading.value
    entry.found_at = reading.found_at
    if reading.share is not None:
        entry.share = reading.share
    if reading.parts is not None:
        entry.parts = reading.parts
    if figure.when:
        parts = reading.parts or {}
        entry.points_to = list(
            dict.fromkeys(cause for name, cause in figure.when.items() if any(name in part for part in parts))
        )
        entry.is_notable = bool(entry.points_to)
        return
    decisive: Any = reading.share if figure.of else reading.value
    if entry.notable_from is not None and isinstance(decisive, int | float):
        entry.is_notable = decisive >= entry.notable_from


def _in_order(causes: list[CauseEntry], figures: list[FigureEntry]) -> list[CauseEntry]:
    """Return causes that were found first, the costliest of them ahead, then those that a notable figure points at."""
    pointed = {cause for figure in figures if figure.is_notable is True for cause in figure.points_to}

    def key(entry: CauseEntry) -> tuple[bool, int, bool]:
        found = entry.findings if entry.findings is not UNSET else []
        cost_ns = max((max(finding.cost_ns_per_unit, finding.cost_once_ns) for finding in found), default=0)
        return (not found, -cost_ns, entry.cause not in pointed)

    return sorted(causes, key=key)


def _candidates(symptom: Symptom, found: Sequence[CauseEntry]) -> list[str]:
    """Return the changes of the catalogue that answer what was found; where nothing was, those of the symptom."""
    if not found:
        return list(symptom.candidates)
    from longpole.advice.catalogue import load_catalogue

    causes = {cause.cause for cause in found}
    return [row.id for row in load_catalogue() if row.table == "change" and causes & set(row.answers)]


def _commands(symptom: Symptom, found: Sequence[CauseEntry], paths: Sequence[str]) -> list[str]:
    """Return what to run next: first the what-if that stands for the removal of what was found."""
    removals = [
        " ".join(["longpole whatif", _PATH, *(_quoted(option) for option in finding.what_if)])
        for cause in found
        for finding in (cause.findings if cause.findings is not UNSET else [])
        if finding.what_if
    ]
    commands = [*removals, *(command for command in symptom.next if not (removals and " whatif " in command))]
    named = shlex.join(paths) if paths else _PATH
    return list(dict.fromkeys(command.replace(f" {_PATH}", f" {named}") for command in commands))


def _quoted(option: str) -> str:
    """Write an option so that a shell hands it over as it is."""
    name, _, value = option.partition(" ")
    return f"{name} {shlex.quote(value)}" if value else name
