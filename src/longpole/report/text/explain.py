"""The page of `longpole explain`: the list, what may be meant, a symptom, or a cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.explain_figures import notable_words, value_words
from longpole.report.text.layout import Style, columns_of, pad, wrap
from longpole.report.text.words import plural, ranks_as_text
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.records.findings import CandidateEntry, CauseFinding
    from longpole.report.explain import CauseEntry, Explain, FigureEntry, PageEntry, SymptomEntry, TopicEntry

_NARROWEST: Final = 60
_NAME: Final = 26
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_EMPHASIS: Final = re.compile(r"(\*{1,2})(\S[^*]*)\1")
_ITEM: Final = re.compile(r"(- |\d+\. )")
_KINDS: Final = {"symptom": "SYMPTOMS", "cause": "CAUSES"}
_WHOLE_FROM: Final = 0.095


def render_explain(answer: Explain, *, width: int, color: bool) -> str:
    """Write an answer of `longpole explain`.

    Args:
        answer: The answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, _NARROWEST), color)
    if answer.symptom is not None:
        sections = _of_symptom(answer, answer.symptom, style)
    elif answer.cause is not None:
        sections = _of_cause(answer, answer.cause, style)
    else:
        sections = _of_topics(answer, style)
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _of_topics(answer: Explain, style: Style) -> Iterator[list[str]]:
    """List symptoms and causes."""
    if answer.answer == "several":
        yield wrap(f"“{escape(answer.asked)}” may mean:", style.width)
    for kind, title in _KINDS.items():
        topics = [topic for topic in answer.topics if topic.kind == kind]
        if topics:
            yield [style.title(title), *_topic_lines(topics, style)]
    yield wrap("longpole explain NAME says more; with the traces behind it, what they say of it.", style.width)


def _topic_lines(topics: Sequence[TopicEntry], style: Style) -> Iterator[str]:
    for topic in topics:
        yield from _row(topic.id, topic.says, style)


def _row(name: str, text: str, style: Style) -> list[str]:
    """Return a name with a text beside it, which goes on below itself."""
    first = f"  {pad(name, _NAME)} "
    if columns_of(name) > _NAME:
        return [f"  {name}", *wrap(text, style.width, first=" " * (_NAME + 3), rest=" " * (_NAME + 3))]
    return wrap(text, style.width, first=first, rest=" " * (_NAME + 3))


def _of_symptom(answer: Explain, symptom: SymptomEntry, style: Style) -> Iterator[list[str]]:
    yield [
        *_titled(symptom.id, symptom.says, style),
        *wrap(symptom.means, style.width, first="  ", rest="  "),
    ]
    yield _run_lines(answer, style)
    has_run = answer.run is not None
    beside = "in this run; ◂ marks what is notable" if has_run else "figures of `longpole report --json`"
    yield [style.title("WHAT DECIDES", beside), *(line for one in symptom.figures for line in _figure(one, style))]
    yield from _causes(symptom, style)
    if symptom.candidates_here:
        lines = [line for entry in symptom.candidates_here for line in _candidate(entry, style)]
        yield [style.title("WHAT TO TRY", "changes that apply to this run"), *lines]
    elif symptom.candidates:
        text = " · ".join(symptom.candidates)
        yield [style.title("WHAT TO TRY", "changes of the catalogue"), *wrap(text, style.width, first="  ", rest="  ")]
    yield [style.title("WHERE THAT DOES NOT DECIDE IT, RECORD"), *_items(symptom.record, style)]
    yield [style.title("NEXT"), *(f"  {escape(command)}" for command in symptom.next)]


def _causes(symptom: SymptomEntry, style: Style) -> Iterator[list[str]]:
    """Show the causes: in a run those that were found, and the names of the others."""
    found = [cause for cause in symptom.causes if cause.findings is UNSET or cause.findings]
    lines = [line for cause in found for line in _cause(cause, style)]
    others = [cause for cause in symptom.causes if cause.findings is not UNSET and not cause.findings]
    if not others:
        yield [style.title("WHAT IT MAY BE"), *lines]
        return
    yield [style.title("WHAT WAS FOUND"), *(lines or ["  none of the causes that this symptom may have"])]
    names = " · ".join(cause.cause for cause in others if not cause.needs)
    lines = wrap(names, style.width, first="  ", rest="  ") if names else []
    for cause in others:
        if cause.needs:
            lines += wrap(f"{cause.cause}: it needs {cause.needs}", style.width, first="  ", rest="    ")
    yield [style.title("WHAT WAS NOT", "which does not exclude it where the record lacks something"), *lines]


def _titled(name: str, text: str, style: Style) -> list[str]:
    title = name.upper() if "-" in name else name
    lines = wrap(text, style.width, first=f"{title}  ", rest="  ")
    lines[0] = style.verdict(title) + lines[0][len(title) :]
    return lines


def _run_lines(answer: Explain, style: Style) -> list[str]:
    """Say which run it is, and what its report says first."""
    if answer.run is None:
        return []
    lines = [style.title("THIS RUN", f"{plural(len(answer.run.ranks_present), 'rank')}, {_sources(answer)}")]
    lines += wrap(escape(answer.headline), style.width, first="  ", rest="  ")
    pole = f"the long pole: {answer.long_pole}" if answer.long_pole else "no long pole is named"
    return [*lines, f"  {pole}"]


def _sources(answer: Explain) -> str:
    n = len(answer.run.sources) if answer.run is not None else 0
    return "1 file" if n == 1 else f"{n} files"


def _figure(figure: FigureEntry, style: Style) -> Iterator[str]:
    """Show a figure: its value in a run, how to read it, and without a run where it stands."""
    if figure.value is UNSET:
        of = f" of {figure.of}" if figure.of else ""
        take = "" if figure.take == "value" else f"{figure.take} of "
        yield from wrap(figure.what, style.width, first="  ", rest="    ")
        least = notable_words(figure)
        yield from wrap(figure.reads + (f" ({least})" if least else ""), style.width, first="      ", rest="      ")
        yield from map(style.faint, wrap(f"{take}{figure.at}{of}", style.width, first="      ", rest="      "))
        return
    mark = "  ◂" if figure.is_notable is True else ""
    yield from wrap(f"{figure.what}: {value_words(figure)}{mark}", style.width, first="  ", rest="    ")
    if figure.is_notable is True and figure.points_to:
        pointed = f"points at {', '.join(figure.points_to)}"
        yield from wrap(pointed, style.width, first="      ", rest="      ")
    reads = [style.faint(line) for line in wrap(figure.reads, style.width, first="      ", rest="      ")]
    yield from reads


def _cause(cause: CauseEntry, style: Style) -> Iterator[str]:
    """Show a cause, and in a run what was found of it."""
    yield from _row(cause.cause, cause.says, style)
    if cause.findings is not UNSET:
        yield from _found(cause.findings, style, " " * (_NAME + 3))


def _found(findings: Sequence[CauseFinding], style: Style, indent: str) -> Iterator[str]:
    for finding in findings:
        lines = wrap(f"FOUND: {_finding_words(finding)}", style.width, first=indent, rest=indent)
        yield from [lines[0].replace("FOUND", style.verdict("FOUND"), 1), *lines[1:]]


def _finding_words(finding: CauseFinding) -> str:
    """Say what a finding costs, on which ranks; its sentence already does where it names a cost."""
    where = f" on {ranks_as_text(finding.ranks)}" if finding.ranks else ""
    if finding.once:
        cost = f"{format_ns(finding.cost_once_ns)} in all, once"
    else:
        cost = f"{format_ns(finding.cost_ns_per_unit)} per unit ({_percent(finding.cost_share)})"
    return f"{finding.id}, {cost}{where}: {escape(finding.says)}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= _WHOLE_FROM else f"{share:.1%}"


def _candidate(entry: CandidateEntry, style: Style) -> list[str]:
    gain = entry.predicted_gain_share
    known = "gain not known" if isinstance(gain, Unknown) else f"{_percent(gain)} less"
    return _row(entry.id, f"{escape(entry.says)} ({known})", style)


def _items(texts: Iterable[str], style: Style) -> list[str]:
    return [line for text in texts for line in wrap(text, style.width, first="  - ", rest="    ")]


def _of_cause(answer: Explain, page: PageEntry, style: Style) -> Iterator[list[str]]:
    yield [*_titled(page.cause.cause, page.cause.says, style), f"  charged to {page.cause.object}"]
    if answer.run is not None:
        yield [*_run_lines(answer, style), *_found_here(page.cause, style)]
    for section in page.sections:
        yield [style.title(section.title.upper()), *render_markdown(section.text, style)]


def _found_here(cause: CauseEntry, style: Style) -> list[str]:
    """Say whether the run has this cause."""
    findings = cause.findings if cause.findings is not UNSET else []
    if findings:
        return list(_found(findings, style, "  "))
    why = f"; it needs {cause.needs}" if cause.needs else ", which does not exclude it where the record lacks something"
    return wrap(f"NOT FOUND: {cause.cause}{why}", style.width, first="  ", rest="  ")


def render_markdown(text: str, style: Style) -> list[str]:
    r"""Write paragraphs and lists of Markdown as lines of a page; a link shows where it leads if that is an address.

    >>> render_markdown("See [it](it.md), `x`.\n\n- one\n- two", Style(60, color=False))
    ['  See it, x.', '  - one', '  - two']
    """
    lines: list[str] = []
    mark, words = "", ""
    for line in [*text.splitlines(), ""]:
        item = _ITEM.match(line)
        if words and (item or not line.strip()):
            rest = " " * (2 + len(mark))
            lines += wrap(_plain(words), style.width, first=f"  {mark}", rest=rest)
            mark, words = "", ""
        if item:
            mark = item[1]
        words += f" {line[item.end() :] if item else line.strip()}"
        words = words.strip()
    return lines


def _plain(text: str) -> str:
    """Take the marks out of a line of Markdown; code stays as it is."""
    linked = _LINK.sub(lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else link[1], text)
    pieces = linked.split("`")
    pieces[::2] = [_EMPHASIS.sub(r"\2", piece) for piece in pieces[::2]]
    return "".join(pieces)
