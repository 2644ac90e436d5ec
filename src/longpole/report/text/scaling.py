"""The page of `longpole scaling`: the result in a sentence, efficiency by run, the loss by part, and what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.scaling import PARTS
from longpole.report.text.figures import percent, scale_for
from longpole.report.text.layout import Style, columns_of, pad, shorten, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural, unit_noun
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.scaling import Scaling, ScalingRun
    from longpole.report.text.figures import Scale

PART_LABELS: Final = {
    "transfer": "moving bytes",
    "skew": "waiting for the last rank",
    "bubble": "waiting in the pipeline",
    "collective": "communication, not split",
    "input": "input",
    "artifact": "artifacts",
    "state": "state",
    "output": "output",
    "host": "host",
    "compute": "compute",
    "unknown": "unknown",
    "lag": "completion drift",
}
_LABEL_WIDTH: Final = 26
_COLUMN: Final = 18
_CELLS: Final = (7, 13, 12, 10, 11)
_DASH: Final = "–"
_LINES: Final = 4
_DIFFERENCES: Final = 8
_RUN_WIDTH: Final = 24


def render_scaling(scaling: Scaling, *, width: int, color: bool) -> str:
    """Write how a job scales.

    Args:
        scaling: The comparison of its runs.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a trace is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_who(scaling, style),
        _render_verdict(scaling, style),
        _render_runs(scaling, style),
        _render_loss(scaling, style),
        _render_differences(scaling, style),
        _render_not_known(scaling, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_who(scaling: Scaling, style: Style) -> list[str]:
    fewest, most = scaling.runs[0].ranks, scaling.runs[-1].ranks
    span = plural(most, "rank") if fewest == most else f"{fewest:,} to {plural(most, 'rank')}"
    text = f"{plural(len(scaling.runs), 'run')} · {span} · {escape(scaling.items.says)}"
    return wrap(text, style.width, rest="  ")


def _render_verdict(scaling: Scaling, style: Style) -> list[str]:
    title = "SCALING" if scaling.comparable else "NOT COMPARABLE"
    if scaling.comparable:
        text = scaling.says
    else:
        # What there is to say of it in detail stands with the other differences.
        void = next(difference.says for difference in scaling.differences if difference.severity == "void")
        text = void.partition(";")[0]
    lines = wrap(escape(text), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    paint = style.verdict if scaling.comparable else style.alarm
    lines[0] = paint(title) + lines[0][len(title) :]
    return lines


def _render_runs(scaling: Scaling, style: Style) -> list[str]:
    """Show each run: ranks, period, efficiency and speed-up."""
    noun = unit_noun(scaling.runs[0].unit_kind)
    periods = [run.period_ns for run in scaling.runs if isinstance(run.period_ns, int)]
    scale = scale_for(max(periods, default=0))
    has_rates = any(not isinstance(run.items_per_s, Unknown) for run in scaling.runs)
    head = ["ranks", f"{scale.unit} per {noun}", "efficiency", "speed-up", *(["items/s"] if has_rates else [])]
    name_width = min(max(columns_of(escape(run.label)) for run in scaling.runs), _RUN_WIDTH)
    name_width = max(min(name_width, style.width - 2 - sum(_CELLS[: len(head)])), len("run"))
    lines = [style.title("EFFICIENCY", f"items per rank and time, against {_short(scaling.base)}; mean periods")]
    lines.append(style.faint(_row("run", head, name_width)))
    for run in scaling.runs:
        cells = [f"{run.ranks:,}", _time(run.period_ns, scale), _share(run.efficiency), _factor(run.speedup)]
        cells += [_rate(run.items_per_s)] if has_rates else []
        lines.append(_row(escape(run.label), cells, name_width))
    return lines


def _row(name: str, cells: Sequence[str], name_width: int) -> str:
    return f"  {pad(name, name_width)}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, _CELLS, strict=False)
    )


def _render_loss(scaling: Scaling, style: Style) -> list[str]:
    """Show what the loss of each run is made of; where not all fit, the largest runs."""
    compared = [run for run in scaling.runs[1:] if isinstance(run.loss_ns, int) and isinstance(run.period_ns, int)]
    if not compared:
        return []
    fits = max((style.width - _LABEL_WIDTH - 2) // _COLUMN, 1)
    shown = compared[-fits:]
    noun = unit_noun(scaling.runs[0].unit_kind)
    scale = scale_for(max(abs(_int(run.loss_ns)) for run in shown))
    rest = f"{scale.unit} per {noun} over the pace of {_short(scaling.base)}"
    lines = [style.title("WHERE THE LOSS WENT", rest)]
    lines.append(style.faint(_loss_row("", [_heading(run) for run in shown])))
    columns = [_loss_column(run, scale) for run in shown]
    for part in PARTS:
        if all(column.get(part) is None for column in columns):
            continue
        lines.append(_loss_row(PART_LABELS[part], [column.get(part) or _DASH for column in columns]))
    total = [_figure(scale.write(_int(run.loss_ns)), _int(run.loss_ns), run) for run in shown]
    lines.append(_loss_row("all", total))
    if len(shown) < len(compared):
        lines.append(f"  and {format_count(len(compared) - len(shown), 'smaller run')}; --json has them all")
    return lines


def _loss_column(run: ScalingRun, scale: Scale) -> dict[str, str | None]:
    """Return part -> text; None for a part that plays no role, so that its line can be left out."""
    known = [part for part in run.parts if isinstance(part.loss_ns, int)]
    # Rounded together, so that the figures shown add up to the sum that is shown.
    figures = scale.spread([_int(part.loss_ns) for part in known])
    column: dict[str, str | None] = {part.part: "not known" for part in run.parts if isinstance(part.loss_ns, Unknown)}
    if not any(part.taken_ns or part.ideal_ns for part in known if part.part == "collective"):
        column = dict.fromkeys(column)
    for part, figure in zip(known, figures, strict=True):
        loss_ns = _int(part.loss_ns)
        text = _figure(figure, loss_ns, run)
        column[part.part] = text if part.taken_ns or part.ideal_ns else None
    return column


def _heading(run: ScalingRun) -> str:
    return plural(run.ranks, "rank")


def _loss_row(name: str, cells: Sequence[str]) -> str:
    return f"  {pad(name, _LABEL_WIDTH)}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def _render_differences(scaling: Scaling, style: Style) -> list[str]:
    if not scaling.differences:
        return []
    lines = [style.title("ABOUT THE RUNS")]
    for difference in scaling.differences[:_DIFFERENCES]:
        severity = difference.severity
        wrapped = wrap(
            escape(difference.says), style.width, first=f"  {severity:<6}", rest="        ", max_lines=_LINES
        )
        paint = {"void": style.alarm, "warn": style.warning}.get(severity, style.faint)
        wrapped[0] = "  " + paint(severity) + wrapped[0][2 + len(severity) :]
        lines += wrapped
    if len(scaling.differences) > _DIFFERENCES:
        lines.append(f"  and {len(scaling.differences) - _DIFFERENCES} more; --json has them all")
    return lines


def _render_not_known(scaling: Scaling, style: Style) -> list[str]:
    """Say once for each reason why parts of the loss are not known."""
    reasons: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for run in scaling.runs[1:]:
        for part in run.parts:
            if isinstance(part.loss_ns, Unknown):
                why = (part.loss_ns.unknown, tuple(part.loss_ns.missing))
                labels = reasons.setdefault(why, [])
                labels += [run.label] if run.label not in labels else []
    lines = [style.title("NOT KNOWN")] if reasons else []
    for (reason, missing), labels in reasons.items():
        need = f" → record {'; '.join(missing)}" if missing else ""
        text = escape(f"moving and waiting apart, of {', '.join(labels)}: {reason}{need}")
        lines += wrap(text, style.width, first="  ", rest="      ", max_lines=_LINES)
    return lines


def _short(label: str) -> str:
    return shorten(escape(label), _RUN_WIDTH)


def _int(value: int | Unknown) -> int:
    return value if isinstance(value, int) else 0


def _figure(figure: str, loss_ns: int, run: ScalingRun) -> str:
    """Write a loss with its sign, and its share of the run's period."""
    sign = "+" if loss_ns > 0 and figure.strip("0.") else ""
    text = figure.replace("-", "−") if figure.strip("-0.") else figure.lstrip("-")
    share = percent(abs(loss_ns), _int(run.period_ns))
    return f"{sign}{text} {('−' if loss_ns < 0 and share != '0 %' else '') + share:>7}"


def _time(value: int | Unknown, scale: Scale) -> str:
    return scale.write(value) if isinstance(value, int) else _DASH


def _share(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else f"{value:.1%}"


def _factor(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else f"{value:.2f} ×"


def _rate(value: float | Unknown) -> str:
    return _DASH if isinstance(value, Unknown) else shorten(f"{value:,.4g}" if value < 1000 else f"{value:,.0f}", 12)
