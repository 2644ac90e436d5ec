"""The page of `longpole whatif`: the prediction, where the saving comes from, how far to believe it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.figures import scale_for
from longpole.report.text.layout import Style, join_wrapped, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun, with_article
from longpole.units import format_bytes, format_count, format_ns
from longpole.vocabulary.objects import OBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.whatif import PricedBy, WhatIf

_LINES: Final = 4
_LABEL: Final = 26
_FIGURE: Final = 13
_CHANGES_SHOWN: Final = 12
_WHOLE_FROM: Final = 0.095  # from here on, percent without decimals have two figures
_USABLE: Final = (
    "The unchanged run replays well, and enough of it is computed rather than kept for that to mean something."
)
_NOT_TESTED: Final = (
    "NOT TESTED: so much of the path is kept as recorded that any graph would replay it as well."
    " The small error says nothing about the prediction."
)
_REFUSED: Final = "REFUSED: the replay of the unchanged run is not good enough to predict from."
_OF_VERDICT: Final = {"usable": _USABLE, "not tested": _NOT_TESTED, "refused": _REFUSED}


def render_whatif(answer: WhatIf, *, width: int, color: bool) -> str:
    """Write the answer of a what-if.

    Args:
        answer: The answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(answer, style),
        _render_verdict(answer, style),
        _render_changes(answer, style),
        _render_saving(answer, style),
        _render_next(answer, style),
        _render_belief(answer, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(answer: WhatIf, style: Style) -> list[str]:
    run = answer.run
    n_present = len(run.ranks_present)
    world = run.world_size if isinstance(run.world_size, int) else None
    parts = [f"{n_present} of {plural(world, 'rank')}" if world is not None else plural(n_present, "rank")]
    if answer.replay.units:
        parts.append(f"{plural(answer.replay.units, answer.unit_kind)} replayed")
    if isinstance(answer.measured_period_ns, int):
        noun = with_article(unit_noun(answer.unit_kind))
        parts.append(f"{noun} completes every {format_ns(answer.measured_period_ns)} (median)")
    size = format_bytes(sum(source.bytes for source in run.sources))
    parts.append(f"{plural(len(run.sources), 'file')}, {size}")
    return join_wrapped(parts, style.width)


def _render_verdict(answer: WhatIf, style: Style) -> list[str]:
    """Give the prediction with its error, or say why there is none and what to record."""
    if answer.refused is not None:
        lines = _titled("NO PREDICTION", f"because {answer.refused.why}", style, alarm=True)
        if answer.refused.missing:
            need = escape("; ".join(answer.refused.missing))
            lines += wrap(f"To get one: {need}", style.width, first="  ", rest="  ", max_lines=_LINES)
        return lines
    title = "PREDICTION, NOT TESTED" if answer.replay.verdict == "not tested" else "PREDICTION"
    lines = _titled(title, _prediction(answer), style)
    for one in answer.priced_by:
        lines += wrap(f"{_price_words(one)}.", style.width, first="  ", rest="  ", max_lines=_LINES)
    for doubt in dict.fromkeys(one.doubt for one in answer.priced_by if one.doubt):
        lines += wrap(f"But {escape(doubt)}.", style.width, first="  ", rest="  ", max_lines=_LINES)
    return lines + wrap(_error_words(answer), style.width, first="  ", rest="  ", max_lines=_LINES)


def _titled(title: str, text: str, style: Style, *, alarm: bool = False) -> list[str]:
    lines = wrap(escape(text), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    lines[0] = (style.alarm if alarm else style.verdict)(title) + lines[0][len(title) :]
    return lines


def _prediction(answer: WhatIf) -> str:
    noun = with_article(unit_noun(answer.unit_kind))
    before, after, saving = answer.replayed_period_ns, answer.predicted_period_ns, answer.saving_ns
    if not (isinstance(before, int) and isinstance(after, int) and isinstance(saving, int)):
        return _plain_why(after if isinstance(after, Unknown) else Unknown("nothing was replayed"))
    figures = f"{noun} every {format_ns(after)} instead of {format_ns(before)}"
    if saving == 0:
        same = f"no difference: {noun} every {format_ns(after)}, with the changes as without them"
        mean = answer.mean_saving_ns
        if isinstance(mean, Unknown) or mean == 0:
            return same
        how = "less" if mean > 0 else "MORE"
        return f"{same} in the median; in the mean {format_ns(abs(mean))} {how}, as only some units are concerned"
    share = f" ({_rounded(abs(saving) / before)})" if before else ""
    how = f"{format_ns(abs(saving))} {'less' if saving > 0 else 'MORE'}{share}"
    return f"{figures}: {how}"


def _price_words(one: PricedBy) -> str:
    """Say what a collective of another size was priced by."""
    model = one.model
    root = f" + {format_ns(model.gamma * 1024)} × √(S / 1 MiB)" if model.gamma * 1024 >= 1 else ""
    curve = f"{format_ns(model.alpha_ns)}{root} + S / {model.gb_per_s:.3g} GB/s"
    whose = {
        "fit": "fitted to this run's own sizes",
        "record": f"from your record ({escape(model.says)})",
        "shipped": f"the shipped fit ({escape(model.says)})",
    }
    return f"{one.kind} of {plural(one.ranks, 'rank')} priced at {curve}: {whose.get(model.source, model.source)}"


def _rounded(share: float) -> str:
    return f"{share:.0%}" if share >= _WHOLE_FROM else f"{share:.1%}"


def _error_words(answer: WhatIf) -> str:
    """Say how wrong predictions of this kind were; never the replay's own error in its place."""
    error = answer.what_if_error
    if isinstance(error, Unknown):
        return f"How far off it may be is not known: {_why(error)}."
    bias = f"{abs(error.bias_share):.1%} too {'fast' if error.bias_share < 0 else 'slow'}"
    return (
        f"Predictions of {escape(error.kind_of_change)} were off by {error.median_share:.1%} of the period in the"
        f" median and {error.p90_share:.1%} at most in nine of ten ({format_count(error.pairs, 'pair')} of recordings,"
        f" median {bias}; {escape(error.source)})."
    )


def _why(unknown: Unknown) -> str:
    return escape(_plain_why(unknown))


def _plain_why(unknown: Unknown) -> str:
    need = f" (record {'; '.join(unknown.missing)})" if unknown.missing else ""
    return f"{unknown.unknown}{need}"


def _render_changes(answer: WhatIf, style: Style) -> list[str]:
    title = "THE CHANGE" if len(answer.changes) == 1 else "THE CHANGES"
    lines = [style.title(title, "" if len(answer.changes) == 1 else "replayed together, in this order")]
    for change in answer.changes[:_CHANGES_SHOWN]:
        rows = f", {format_count(change.rows, 'row')}" if isinstance(change.rows, int) else ""
        lines += wrap(escape(f"{change.says}{rows}"), style.width, first="  ", rest="      ", max_lines=_LINES)
        if change.text:
            typed = wrap(_quoted(change.text), style.width, first="      ", rest="      ")
            lines += [style.faint(line) for line in typed]
    if len(answer.changes) > _CHANGES_SHOWN:
        lines.append(f"  and {len(answer.changes) - _CHANGES_SHOWN} more")
    return lines


def _quoted(text: str) -> str:
    """Write a change so that a shell hands it over as it is."""
    option, _, value = escape(text).partition(" ")
    return f"{option} {shlex.quote(value)}" if value else option


def _render_saving(answer: WhatIf, style: Style) -> list[str]:
    """Show the path of a unit by object, before and after."""
    before, after = answer.path_before_ns, answer.path_after_ns
    names = [name for name in OBJECTS if before.get(name) or after.get(name)]
    names += sorted(name for name in {*before, *after} if name not in OBJECTS)
    if answer.refused is not None or not names:
        return []
    columns = [[side.get(name, 0) for name in names] for side in (before, after)]
    scale = scale_for(max(map(sum, columns)))
    noun = unit_noun(answer.unit_kind)
    lines = [style.title("WHERE IT COMES FROM", f"the path of the mean {noun}, in {scale.unit}")]
    lines.append(style.faint(_row(style, "", ["before", "after", "saving"])))
    shown = [scale.spread(column) for column in columns]
    savings = [one - other for one, other in zip(*columns, strict=True)]
    for name, was, becomes, saving in zip(names, *shown, scale.spread(savings), strict=True):
        lines.append(_row(style, escape(name), [was, becomes, _minus(saving)]))
    totals = [scale.write(sum(column)) for column in (*columns, savings)]
    lines.append(_row(style, "all", [*totals[:2], _minus(totals[2])]))
    return lines


def _row(style: Style, name: str, cells: Sequence[str]) -> str:
    label = min(_LABEL, style.width - 2 - _FIGURE * len(cells))
    return f"  {pad(name, label)}" + "".join(f"{cell:>{_FIGURE}}" for cell in cells)


def _minus(figure: str) -> str:
    return figure.replace("-", "−") if figure.strip("-0.") else figure.lstrip("-")


def _render_next(answer: WhatIf, style: Style) -> list[str]:
    if answer.refused is not None:
        return []
    following = answer.next_long_pole
    if isinstance(following, Unknown):
        return _titled("NEXT", f"not known: {_plain_why(following)}", style)
    return _titled("NEXT", following.says, style)


def _render_belief(answer: WhatIf, style: Style) -> list[str]:
    """Say how well the unchanged run replays, and what of that was kept rather than computed."""
    replay = answer.replay
    lines = [style.title("HOW FAR TO BELIEVE IT")]
    words = _OF_VERDICT.get(replay.verdict, replay.verdict)
    lines += wrap(escape(words), style.width, first="  ", rest="  ")
    units = replay.error_units
    rows = [
        ("replay of the unchanged run", f"{_signed_share(replay.error_of_median)} of the measured median"),
        ("single units", f"{_share(units.median)} in the median, {_share(units.max)} at most"),
        ("kept as recorded", _kept(answer)),
        ("unexplained", _share(replay.unexplained_share)),
        ("resting on a guess", _share(replay.guess_share)),
    ]
    if replay.orphans:
        orphans = _why(replay.orphans) if isinstance(replay.orphans, Unknown) else f"{replay.orphans:,}"
        rows.append(("points that nothing leads to", orphans))
    if replay.overlapping_share is not UNSET:
        share = _share(replay.overlapping_share)
        if not isinstance(replay.overlapping_share, Unknown):
            share += "; how they slow each other is not modelled"
        rows.append(("changed rows that overlap others", share))
    if replay.without_effect:
        rows.append(("edges without effect", ", ".join(map(escape, replay.without_effect))))
    for name, text in rows:
        lines += wrap(text, style.width, first=f"  {pad(name, _LABEL + 8)}", rest=" " * (_LABEL + 10), max_lines=_LINES)
    return lines


def _kept(answer: WhatIf) -> str:
    named = answer.replay.kept_named_share
    inner = f", {_share(named)} under a named activity" if not isinstance(named, Unknown) else ""
    return f"{_share(answer.replay.kept_share)} of the path is host time{inner}"


def _share(value: float | Unknown) -> str:
    return f"not known: {_why(value)}" if isinstance(value, Unknown) else f"{value:.1%}"


def _signed_share(value: float | Unknown) -> str:
    if isinstance(value, Unknown):
        return f"not known: {_why(value)}"
    return f"{'+' if value > 0 else ''}{value:.2%}".replace("-", "−")
