"""The report as Markdown, for a comment on a change: the long pole, the ledger, what to try, what is wrong.

A comment holds 65,536 characters on the common hosts, so tables have few rows and texts from traces are shortened;
nothing from a trace becomes markup, a link, or a call for a person or another issue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.critical_path import CriticalPath
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay
from longpole.report.markdown_text import code, plain
from longpole.report.text.figures import percent, scale_for, spread_percent
from longpole.report.text.heading import render_who
from longpole.report.text.layout import Style
from longpole.report.text.ledger_table import basis_of
from longpole.report.text.not_known import said_unknown
from longpole.report.text.words import idle_words, plural, ranks_as_text, unit_noun, with_article
from longpole.units import format_ns
from longpole.vocabulary.causes import NO_VERDICT, NO_WAIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.records.findings import CandidateEntry, CauseFinding
    from longpole.records.ledger import ObjectTime
    from longpole.report.document import Report
    from longpole.timeline.integrity import Finding

_FINDINGS: Final = 6
_CANDIDATES: Final = 5
_GRAVE: Final = 8
_TEXT_MAX: Final = 300
_ONE_LINE: Final = 1 << 20
_MARKS: Final = {"void": "⛔ void", "warn": "⚠️ warn"}
_FIGURES: Final = ("saves", "share", "predicted gain", "error seen so far")
_MEASURED: Final = ("exposed", "hidden", "idle")
_BASES: Final = {"replay": "by replay", "ledger": "by the ledger"}


def render_markdown(report: Report) -> str:
    """Write a report as Markdown; everything that comes from a trace is escaped."""
    parts = [
        *_verdict(report),
        *_findings(report),
        *_ledger(report),
        *_candidates(report),
        *_integrity(report),
        *_path(report),
        *_not_known(report),
        _foot(report),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(report: Report) -> list[str]:
    headline = report.headline
    who = " ".join(render_who(report, Style(_ONE_LINE, color=False)))
    if isinstance(headline, Unknown):
        need = f" To get one: {_text('; '.join(headline.missing))}." if headline.missing else ""
        return ["### No verdict", f"Because {_text(headline.unknown)}.{need}", _text(who)]
    basis = "" if headline.basis == "replay" else " (what the ledger charges; removing it may save less, or more)"
    return ["### The long pole", f"**{_text(headline.says)}**{basis}", _text(who)]


def _findings(report: Report) -> list[str]:
    found = [finding for finding in report.findings if finding.cause not in (NO_VERDICT, NO_WAIT)]
    if not found:
        return []
    rows = [_finding(finding, report) for finding in found[:_FINDINGS]]
    title = f"What holds it up, and what removing each alone would save per {unit_noun(report.unit.kind)}:"
    return [title, _table(("what", "saves", "share", "basis", "cause"), rows), *_more(found, _FINDINGS, "finding")]


def _finding(finding: CauseFinding, report: Report) -> list[str]:
    says = _text(finding.says)
    once = f"{format_ns(finding.cost_once_ns)} once" if finding.once else format_ns(finding.cost_ns_per_unit)
    share = "" if finding.once else f"{finding.cost_share:.0%}"
    says = f"**{says}**" if finding.id == report.long_pole else says
    return [says, once, share, _BASES.get(finding.basis, _text(finding.basis)), _text(finding.cause)]


def _ledger(report: Report) -> list[str]:
    """Return the mean unit's ledger; the figures shown add up to the sum shown."""
    ledger, noun = report.ledger, unit_noun(report.unit.kind)
    scale = scale_for(ledger.wall_ns)
    parts_ns = [time.exposed_ns for time in ledger.objects.values()]
    figures, shares = scale.spread(parts_ns), spread_percent(parts_ns, ledger.wall_ns)
    shown = sorted(zip(ledger.objects.items(), figures, shares, strict=True), key=lambda row: -row[0][1].exposed_ns)
    rows = [
        [_text(name), figure, share, _hidden(time, scale.write), _waits(time)]
        for (name, time), figure, share in shown
        if time.exposed_ns or (isinstance(time.hidden_ns, int) and time.hidden_ns)
    ]
    rows.append(["**sum**", scale.write(ledger.wall_ns), "", "", ""])
    title = "Where the time goes" if report.unit.kind == "trace" else f"Where {with_article(noun)} goes"
    table = _table(("object", f"exposed, {scale.unit}", "share", f"hidden, {scale.unit}", "note"), rows)
    idle = [(reason, idle_ns) for reason, idle_ns in ledger.idle_ns.items() if idle_ns]
    idle.sort(key=lambda row: -row[1])
    parts_ns = [idle_ns for _, idle_ns in idle]
    written = zip(idle, scale.spread(parts_ns), spread_percent(parts_ns, ledger.wall_ns), strict=True)
    why = [[_text(reason), figure, share, _text(idle_words(reason, report))] for (reason, _), figure, share in written]
    ran = "no operator ran" if all(row.device == "cpu" for row in report.ranks) else "nothing ran on the device"
    reasons = (
        _details(f"Why {ran}", _table(("reason", f"idle, {scale.unit}", "share", "what went on"), why)) if why else []
    )
    return [f"{title}, {basis_of(report)}; every nanosecond is in one row:", table, *reasons]


def _hidden(time: ObjectTime, write: Callable[[int], str]) -> str:
    if isinstance(time.hidden_ns, int):
        return write(time.hidden_ns)
    return "?" if isinstance(time.hidden_ns, Unknown) else "–"


def _waits(time: ObjectTime) -> str:
    if isinstance(time.waiting_ns, int) and isinstance(time.service_ns, int) and time.service_ns:
        return f"{percent(time.waiting_ns, time.service_ns)} of it waits for ranks"
    return _text(time.hidden_ns.unknown) if isinstance(time.hidden_ns, Unknown) else ""


def _candidates(report: Report) -> list[str]:
    gaining = [one for one in report.candidates if isinstance(one.predicted_gain_share, float)]
    gaining = [one for one in gaining if _gain(one) > 0]
    if not gaining:
        return []
    rows = [
        [_text(one.id), f"{_gain(one):.1%}", _error(one), _text(one.effort), _text(", ".join(one.must_record))]
        for one in gaining[:_CANDIDATES]
    ]
    title = "Worth trying, each alone by replay, with what must be recorded to judge it:"
    columns = ("change", "predicted gain", "error seen so far", "effort", "must record")
    return [title, _table(columns, rows), *_more(gaining, _CANDIDATES, "candidate")]


def _gain(entry: CandidateEntry) -> float:
    return entry.predicted_gain_share if isinstance(entry.predicted_gain_share, float) else 0.0


def _error(entry: CandidateEntry) -> str:
    return f"± {entry.error_share:.1%}" if isinstance(entry.error_share, float) else "not known"


def _integrity(report: Report) -> list[str]:
    """Return what withdraws or limits figures; notes change none, and are counted."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.integrity:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    grave = [group for severity in _MARKS for (own, _), group in groups.items() if own == severity]
    notes = sum(severity == "note" for severity, _ in groups)
    if not grave:
        said = f"; {plural(notes, 'kind')} of note that change no figure" if notes else ""
        return [f"Integrity: nothing withdraws or limits a figure{said}."]
    rows = [_grave(group) for group in grave[:_GRAVE]]
    title = "Integrity (void withdraws figures, warn limits them):"
    return [title, _table(("severity", "code", "where", "what"), rows), *_more(grave, _GRAVE, "kind")]


def _grave(group: list[Finding]) -> list[str]:
    first = group[0]
    ranks = {finding.rank for finding in group if finding.rank is not None}
    times = f"{sum(finding.count for finding in group):,} times, such as: " if len(group) > 1 else ""
    where = ranks_as_text(ranks) if ranks else "the run"
    return [_MARKS[first.severity], code(first.code), where, times + _text(first.message)]


def _path(report: Report) -> list[str]:
    path = report.critical_path
    if not isinstance(path, CriticalPath):
        return []
    lines = [_text(path.says)]
    if isinstance(report.replay, Replay):
        error = report.replay.error_of_median
        size = f", {error:+.1%} off over all units" if isinstance(error, float) else ""
        lines.append(f"The unchanged replay: {_text(report.replay.verdict)}{size}.")
    return _details("Critical path", "\n\n".join(lines))


def _not_known(report: Report) -> list[str]:
    n_groups, shown = said_unknown(report)
    if not shown:
        return []
    lines = [f"- {_text(text)}" for text in shown]
    lines += [f"- and {n_groups - len(shown)} more"] if n_groups > len(shown) else []
    return _details("Not known", "\n".join(lines))


def _foot(report: Report) -> str:
    pole = next((finding for finding in report.findings if finding.id == report.long_pole), None)
    known = pole is not None and pole.cause not in (NO_VERDICT, NO_WAIT)
    following = f"longpole explain {pole.cause}" if pole is not None and known else "longpole candidates PATH"
    return f"Next: {code(following)}. <sub>longpole {_text(report.longpole)}, {code(report.schema)}</sub>"


def _details(title: str, body: str) -> list[str]:
    """Fold something away; the title is ours, for Markdown in it is not rendered everywhere."""
    return [f"<details><summary>{title}</summary>", body, "</details>"]


def _more(rows: Sequence[object], shown: int, noun: str) -> list[str]:
    return [f"and {plural(len(rows) - shown, noun)} more"] if len(rows) > shown else []


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose cells are Markdown already; figures stand to the right."""
    marks = [
        "---:" if name in _FIGURES or name.startswith(("exposed", "hidden", "idle")) else "---" for name in columns
    ]
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join(marks) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _text(text: str) -> str:
    """Return a text of a trace as a comment shows it, shortened."""
    return plain(text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…")
