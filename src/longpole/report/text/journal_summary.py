"""The page of `longpole journal summary`: what changes add up to, and how good the predictions were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.journal.summary import gain
from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.journal_words import (
    NONE,
    by_verdict,
    claim_words,
    figure,
    headline,
    says_verdict,
    scope_words,
    shares_in_percent,
)
from longpole.report.text.layout import columns_of, pad, wrap
from longpole.units import format_count

if TYPE_CHECKING:
    from longpole.advice.journal.summary import JobSummary, Predictions
    from longpole.report.journal import ClaimEntry, JournalDocument
    from longpole.report.text.layout import Style

_CELL: Final = 9
_GAPS_SHOWN: Final = 4


def render_summaries(document: JournalDocument, style: Style) -> list[list[str]]:
    """Return the sections of a summary: those of each job, then the stated figures."""
    jobs = document.summary if isinstance(document.summary, list) else []
    if not jobs:
        return [headline("SUMMARY", f"no entries in {escape(document.file)}", style)]
    sections = [section for job in jobs for section in _render_job(job, style)]
    return [*sections, render_claims(document.claims, style)]


def _render_job(summary: JobSummary, style: Style) -> list[list[str]]:
    job = f"{escape(summary.job)}: " if summary.job else ""
    head = headline("SUMMARY", f"{job}{escape(summary.says)}", style)
    if summary.unit.endswith("/s") and isinstance(summary.before, float):
        head += wrap(f"{escape(summary.unit)}: {scope_words(summary.scope)}", style.width, first="  ", rest="  ")
    sections = [head, _kept(summary, style), _sums(summary, style)]
    return [*sections, _predictions(summary.predictions, style), _left_out(summary, style)]


def _kept(summary: JobSummary, style: Style) -> list[str]:
    if not summary.kept:
        return []
    cells = ["before", "after", "effect", "in all", "share"]
    room = style.width - 2 - _CELL * len(cells)
    width = min(max(columns_of(escape(one.title)) for one in summary.kept), room)
    lines = [style.title("KEPT", "in order; shares in logarithms, because changes multiply")]
    lines.append(style.faint(_row("", cells, width)))
    for one, share in zip(summary.kept, shares_in_percent(summary.kept), strict=True):
        row = [_figure(one.before), _figure(one.after), gain(one.speedup), gain(one.compound), share]
        lines.append(_row(escape(one.title), row, width))
        if one.verdict != "accepted":
            lines.append(f"    kept although {says_verdict(one.verdict)}")
    whole = [_figure(summary.before), _figure(summary.after), _gain(summary.compound), "", ""]
    lines.append(_row("all", whole, width))
    return lines


def _row(name: str, cells: list[str], width: int) -> str:
    return (f"  {pad(name, width)}" + "".join(f"{cell:>{_CELL}}" for cell in cells)).rstrip()


def _sums(summary: JobSummary, style: Style) -> list[str]:
    """Set the compound beside what the single effects add up to, in throughput and in time."""
    if isinstance(summary.compound, Unknown):
        return []
    lines = [style.title("TOGETHER", "what changes do one after the other, against their plain sum")]
    interval = ""
    if isinstance(summary.compound_low, float) and isinstance(summary.compound_high, float):
        interval = (
            f", between {gain(summary.compound_low, 1)} and {gain(summary.compound_high, 1)} if errors are independent"
        )
    texts = [
        f"throughput {gain(summary.compound)}{interval}; the single gains add up to {_gain(summary.sum_of_gains)}",
        f"time per item {_saved(summary.time_saved)}; the single savings add up to {_saved(summary.sum_of_savings)}",
    ]
    if summary.gaps:
        texts.append(f"between entries the figure changed, by {_gain(summary.unaccounted)} in all; no entry says why:")
    for text in texts:
        lines += wrap(text, style.width, first="  ", rest="    ")
    for gap in summary.gaps[:_GAPS_SHOWN]:
        text = (
            f"{escape(gap.after_id)} left {figure(gap.left)}, {escape(gap.before_id)} found {figure(gap.found)}"
            f" ({gain(gap.speedup)})"
        )
        lines += wrap(text, style.width, first="    ", rest="      ")
    if len(summary.gaps) > _GAPS_SHOWN:
        lines.append(f"    and {len(summary.gaps) - _GAPS_SHOWN} more; --json has them all")
    return lines


def _predictions(predictions: Predictions, style: Style) -> list[str]:
    if not predictions.each:
        return []
    lines = [style.title("EXPECTED AGAINST MEASURED", "kept and reverted changes")]
    width = min(
        max(columns_of(escape(one.id)) for one in predictions.each), style.width - 2 - 3 * _CELL - len("  missed")
    )
    lines.append(style.faint(_row("", ["expected", "measured", "off by"], width)))
    for one in predictions.each:
        hit = "" if isinstance(one.hit, Unknown) else ("  hit" if one.hit else "  missed")
        cells = [gain(one.expected), gain(one.measured), gain(1 + one.error_share)]
        lines.append(_row(escape(one.id), cells, width) + hit)
    number = format_count(len(predictions.each), "prediction")
    texts = [f"{predictions.right_direction} of {number} in the right direction"]
    if predictions.judged:
        texts.append(f"{predictions.hits} of {predictions.judged} within what both leave open")
    if isinstance(predictions.bias_share, float):
        way = "too good" if predictions.bias_share > 0 else "too cautious"
        texts.append(f"on the whole {100 * abs(predictions.bias_share):.1f} % {way}")
    lines += wrap("; ".join(texts), style.width, first="  ", rest="    ")
    return lines


def _left_out(summary: JobSummary, style: Style) -> list[str]:
    if not summary.not_counted:
        return []
    lines = [style.title("NOT COUNTED")]
    for one in summary.not_counted:
        effect = f", {gain(one.speedup)}" if isinstance(one.speedup, float) else ""
        text = f"{escape(one.title)} ({one.date[:10]}): {escape(one.why)}, {says_verdict(one.verdict)}{effect}"
        lines += wrap(text, style.width, first="  ", rest="    ")
    return lines


def render_claims(claims: list[ClaimEntry], style: Style) -> list[str]:
    """Return the section on stated figures: what was stated, and whether it can be true."""
    if not claims:
        return []
    lines = [style.title("STATED", "by somebody; no record carries these figures")]
    for verdict, told in by_verdict(claims):
        for claim in told:
            lines += wrap(claim_words(claim), style.width, first="  ", rest="    ")
        lines += wrap(escape(verdict), style.width, first="  → ", rest="    ")
    return lines


def _gain(value: float | Unknown) -> str:
    return NONE if isinstance(value, Unknown) else gain(value)


def _figure(value: float | Unknown) -> str:
    return NONE if isinstance(value, Unknown) else figure(value)


def _saved(value: float | Unknown) -> str:
    if isinstance(value, Unknown):
        return NONE
    return f"{'−' if value >= 0 else '+'}{abs(value):.1%}".replace("%", " %")
