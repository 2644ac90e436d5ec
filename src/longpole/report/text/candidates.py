"""The page of `longpole candidates`: what is worth trying, what each gains, and what it takes to judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.explanation import command_lines, render_explanation
from longpole.report.text.layout import Style, join_wrapped, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun, with_article
from longpole.units import format_bytes, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.records.findings import CandidateEntry
    from longpole.report.candidates import Candidates

_IN_FULL: Final = 6  # candidates with a gain that are shown in full
_SHOWN: Final = 8  # of every other group
_LINES: Final = 4
_WHOLE_FROM: Final = 0.095  # from here on, percent without decimals have two figures
_NO_GAIN: Final = "Nothing that can be replayed is predicted to gain anything."
_NOTHING: Final = "Nothing in the catalogue applies to this run."


def render_candidates(document: Candidates, *, width: int, color: bool) -> str:
    """Write the page.

    Args:
        document: The candidates of a run.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end; a word of a command or an address that is longer
        stands whole, for a shortened one is of no use. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    if document.explained is not None:
        entry = next((entry for entry in document.candidates if entry.id == document.explained.id), None)
        sections = [_render_who(document, style), *render_explanation(document.explained, entry, style)]
    else:
        gaining, unpredicted, useless, recording = _groups(document)
        sections = [
            _render_who(document, style),
            _render_gaining(document, gaining, style),
            _render_together(document, style),
            _render_short(
                style, "WITHOUT A PREDICTION", "the most that each could save, and why no more is known", unpredicted
            ),
            _render_short(
                style, "NO GAIN", "the replay says that nothing is gained, or that the unit gets longer", useless
            ),
            _render_short(style, "RECORD FIRST", "what would have to be measured along the way", recording),
            _render_rest(document, style),
        ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _groups(document: Candidates) -> tuple[list[CandidateEntry], ...]:
    """Return candidates with a gain, without a prediction, without a gain, and those that only record."""
    scenarios = {row.id for row in document.rows if row.table == "scenario"}
    rest = [entry for entry in document.candidates if entry.id not in scenarios]
    gaining = [entry for entry in rest if _gain(entry) > 0]
    unpredicted = [entry for entry in rest if isinstance(entry.predicted_gain_share, Unknown)]
    useless = [e for e in rest if not isinstance(e.predicted_gain_share, Unknown) and _gain(e) <= 0]
    return gaining, unpredicted, useless, [entry for entry in document.candidates if entry.id in scenarios]


def _gain(entry: CandidateEntry) -> float:
    return entry.predicted_gain_share if isinstance(entry.predicted_gain_share, float | int) else 0.0


def _render_who(document: Candidates, style: Style) -> list[str]:
    run = document.run
    n_present = len(run.ranks_present)
    world = run.world_size if isinstance(run.world_size, int) else None
    parts = [f"{n_present} of {plural(world, 'rank')}" if world is not None else plural(n_present, "rank")]
    noun = with_article(unit_noun(document.unit_kind))
    if isinstance(document.measured_period_ns, int):
        parts.append(f"{noun} completes every {format_ns(document.measured_period_ns)} (median)")
    parts.append(f"{plural(len(run.sources), 'file')}, {format_bytes(sum(source.bytes for source in run.sources))}")
    lines = join_wrapped(parts, style.width)
    if isinstance(document.replay, Unknown):
        why = f"{document.replay.unknown}; what follows are ceilings from the ledger, no predictions"
        lines += wrap(escape(f"NO REPLAY  {why}"), style.width, rest="  ", max_lines=_LINES)
    elif document.replay.verdict != "usable":
        lines += wrap(
            f"The replay of the unchanged run is {document.replay.verdict}: see longpole whatif.", style.width
        )
    return lines


def _render_gaining(document: Candidates, entries: Sequence[CandidateEntry], style: Style) -> list[str]:
    noun = unit_noun(document.unit_kind)
    if not document.candidates:
        return [style.title("CANDIDATES"), *wrap(_NOTHING, style.width, first="  ", rest="  ")]
    if not entries:
        return [style.title("CANDIDATES"), *wrap(_NO_GAIN, style.width, first="  ", rest="  ")]
    lines = [style.title("CANDIDATES", f"each alone, by what the replay predicts of {with_article(noun)}")]
    for place, entry in enumerate(entries, 1):
        if place <= _IN_FULL:
            lines += ["", *_full(document, entry, style, place)] if place > 1 else _full(document, entry, style, place)
        else:
            text = f"{entry.id}: {_gain_words(document, entry)}"
            lines += wrap(escape(text), style.width, first=f"  {place}  ", rest=" " * 5)
    return lines


def _full(document: Candidates, entry: CandidateEntry, style: Style, place: int) -> list[str]:
    first = f"  {place}  "
    head = f"{escape(entry.id)}: {_gain_words(document, entry)}, {entry.effort} effort"
    lines = wrap(head, style.width, first=first, rest=" " * 5, max_lines=2)
    lines += wrap(escape(entry.says), style.width, first=" " * 5, rest=" " * 5, max_lines=_LINES)
    rows = [
        ("because", "; ".join(entry.because)),
        ("at most", _ceiling_words(entry)),
        ("error", _error_words(entry)),
        ("assumes", "; ".join(entry.assumptions)),
        ("costs", "; ".join(entry.costs)),
        ("missing", "; ".join(entry.missing)),
    ]
    for name, text in rows:
        if text:
            lines += wrap(escape(text), style.width, first=f"     {name:<9}", rest=" " * 14, max_lines=_LINES)
    lines += command_lines(entry.command, style.width, first="     try      ", rest=" " * 7)
    for asked in entry.check_with:
        lines += command_lines(asked, style.width, first="     check    ", rest=" " * 7)
    return lines


def _gain_words(document: Candidates, entry: CandidateEntry) -> str:
    before, after = document.replayed_period_ns, entry.predicted_period_ns
    share = _percent(abs(_gain(entry)))
    if isinstance(before, int) and isinstance(after, int):
        saved_ns = round(_gain(entry) * before)
        return f"{format_ns(abs(saved_ns))} {'less' if saved_ns >= 0 else 'MORE'} ({share})"
    return share


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= _WHOLE_FROM else f"{share:.1%}"


def _ceiling_words(entry: CandidateEntry) -> str:
    if isinstance(entry.ceiling_ns, Unknown):
        return f"not known: {entry.ceiling_ns.unknown}"
    return f"{format_ns(entry.ceiling_ns)}; what must shrink: {entry.part}"


def _error_words(entry: CandidateEntry) -> str:
    if isinstance(entry.error_share, Unknown):
        return f"not known: {entry.error_share.unknown}"
    return f"nine in ten predictions of this kind were off by {_percent(entry.error_share)} of the period at most"


def _render_together(document: Candidates, style: Style) -> list[str]:
    overlap = document.overlap
    if overlap is None:
        return []
    lines = [style.title("TOGETHER", "replayed at once, for savings overlap")]
    names = ", ".join(overlap.ids)
    if isinstance(overlap.together_ns, Unknown) or isinstance(overlap.overlap_ns, Unknown):
        why = overlap.together_ns.unknown if isinstance(overlap.together_ns, Unknown) else "not replayed"
        lines += wrap(escape(f"{names}: {why}"), style.width, first="  ", rest="  ", max_lines=_LINES)
        return lines
    words = f"{names}: {format_ns(overlap.together_ns)} less per {unit_noun(document.unit_kind)}"
    words += f", where the single savings add up to {format_ns(overlap.sum_ns)}"
    if overlap.overlap_ns > 0:
        words += f"; {format_ns(overlap.overlap_ns)} of that would be counted twice"
    elif overlap.overlap_ns < 0:
        words += f"; together they bring {format_ns(-overlap.overlap_ns)} more than alone"
    lines += wrap(escape(words), style.width, first="  ", rest="  ", max_lines=_LINES)
    if overlap.left_out:
        left = f"Left out, for one of these excludes them or changes the same: {', '.join(overlap.left_out)}"
        lines += wrap(escape(left), style.width, first="  ", rest="  ", max_lines=_LINES)
    if document.together is not None and not isinstance(document.together.next_long_pole, Unknown):
        says = f"What holds it up then: {document.together.next_long_pole.says}"
        lines += wrap(escape(says), style.width, first="  ", rest="  ", max_lines=_LINES)
    return lines


def _render_short(style: Style, title: str, about: str, entries: Sequence[CandidateEntry]) -> list[str]:
    if not entries:
        return []
    lines = [style.title(title, about)]
    for entry in entries[:_SHOWN]:
        if isinstance(entry.predicted_gain_share, Unknown):
            most = f"at most {format_ns(entry.ceiling_ns)}; " if isinstance(entry.ceiling_ns, int) else ""
            text = f"{entry.id}: {most}{entry.refused}"
        else:
            longer = _gain(entry) < 0
            text = f"{entry.id}: {f'{_percent(-_gain(entry))} longer' if longer else 'no difference'}"
            text += f"; {entry.assumptions[-1]}" if longer and entry.assumptions else ""
        lines += wrap(escape(text), style.width, first="  ", rest="      ", max_lines=3)
    if len(entries) > _SHOWN:
        lines.append(f"  and {len(entries) - _SHOWN} more")
    return lines


def _render_rest(document: Candidates, style: Style) -> list[str]:
    """Say how many rows were not proposed, and how to learn why."""
    count = {
        verdict: [row.id for row in document.rows if row.verdict == verdict] for verdict in ("silenced", "not known")
    }
    lines = []
    if count["silenced"]:
        text = f"Not worth trying here: {', '.join(count['silenced'])}."
        lines += wrap(escape(text), style.width, rest="  ", max_lines=_LINES)
    if count["not known"]:
        text = f"Not known, for want of a figure: {', '.join(count['not known'])}."
        lines += wrap(escape(text), style.width, rest="  ", max_lines=_LINES)
    rows = format_count(len(document.rows), "row")
    lines += wrap(
        f"--explain ID says of any of the {rows} why it applies or not, and what its contract is.", style.width
    )
    return lines
