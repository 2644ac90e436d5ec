"""The page of `longpole bench calibrate`: the noise floor, and the smallest change that pairs can see above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.calibration import FLOOR_PAIRS
from longpole.report.escape import escape
from longpole.report.text.layout import Style, pad, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.records.calibration import Calibration, CalibrationFigure

_NAME: Final = 13
_COLUMN: Final = 11
_METRICS: Final = {"time": "time", "peak_memory": "peak memory"}


def render_calibration(calibration: Calibration, path: Path, *, width: int, color: bool) -> str:
    """Write how noisy a benchmark is here.

    Args:
        calibration: What was found.
        path: Where it is kept.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [
        _render_verdict(calibration, style),
        _render_noise(calibration, style),
        _render_smallest(calibration, style),
        [line for text in calibration.warnings for line in wrap(escape(text), style.width, rest="  ")],
        _render_next(calibration, path, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _render_verdict(calibration: Calibration, style: Style) -> list[str]:
    time = calibration.figures[0]
    head = f"noise floor ±{_percent(time.floor_share)}"
    text = f"{head} at {FLOOR_PAIRS} pairs: nine of ten comparisons of this command with itself stay within that"
    lines = wrap(text, style.width, rest="  ")
    lines[0] = style.verdict(head) + lines[0][len(head) :]
    floor_above = time.floor_share > calibration.threshold_share
    if floor_above:
        said = (
            f"that is more than the threshold of {_percent(calibration.threshold_share)}: a gate raises it to the floor"
        )
        lines += [style.warning(line) for line in wrap(said, style.width, rest="  ")]
    name = f"{escape(calibration.benchmark)} · {plural(calibration.pairs, 'pair')} of equal processes, in random order"
    return wrap(name, style.width, rest="  ", max_lines=3) + lines


def _render_noise(calibration: Calibration, style: Style) -> list[str]:
    columns = ("median", "within", "between", "of a pair", "A against A")
    lines = [style.title("noise") + pad("", _NAME - 3) + "".join(f"{name:>{_COLUMN + 1}}" for name in columns)]
    for figure in calibration.figures:
        cells = [
            _amount(figure),
            _percent(figure.within_cv_share) if figure.within_cv_share is not None else "–",
            _percent(figure.between_cv_share),
            _percent(figure.pair_spread_share),
            f"{100 * figure.difference_share:+.1f} %",
        ]
        name = pad(_METRICS.get(figure.metric, escape(figure.metric)), _NAME)
        lines.append(f"  {name}" + "".join(f"{cell:>{_COLUMN + 1}}" for cell in cells))
    says = (
        "within a process and between processes: coefficients of variation; of a pair: standard deviation of the"
        " ratio; A against A: what the equal sides seemed to differ by"
    )
    return lines + [style.faint(line) for line in wrap(says, style.width, first="  ", rest="  ")]


def _render_smallest(calibration: Calibration, style: Style) -> list[str]:
    counts = [effect.pairs for effect in calibration.figures[0].smallest]
    title = f"smallest change found in 4 of 5 cases, threshold {_percent(calibration.threshold_share)}"
    lines = [style.title(title)]
    lines.append(f"  {pad('pairs', _NAME)}" + "".join(f"{count:>{_COLUMN}}" for count in counts))
    for figure in calibration.figures:
        name = pad(_METRICS.get(figure.metric, escape(figure.metric)), _NAME)
        lines.append(f"  {name}" + "".join(f"{_percent(effect.share):>{_COLUMN}}" for effect in figure.smallest))
    return lines


def _render_next(calibration: Calibration, path: Path, style: Style) -> list[str]:
    del calibration
    where = escape(str(path))
    lines = wrap(f"calibration: {where}", style.width, rest="  ")
    step = f"longpole bench gate … --calibration {where} raises its threshold to the floor"
    return lines + wrap(step, style.width, first="next: ", rest="      ")


def _amount(figure: CalibrationFigure) -> str:
    return format_bytes(figure.median) if figure.unit == "bytes" else format_ns(figure.median)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"
