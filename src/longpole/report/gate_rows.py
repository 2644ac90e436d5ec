"""The cells of a gate's tables, the same on the page and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.units import format_bytes, format_ns

if TYPE_CHECKING:
    from longpole.records.gate import GateFigure, GateStage
    from longpole.report.gate import Gate

FIGURE_COLUMNS: Final = ("figure", "base", "new", "change", "interval", "limit", "verdict", "n")
STAGE_COLUMNS: Final = ("stage", "base", "new", "change", "interval", "Δ time", "share", "verdict", "n")
DASH: Final = "–"
_LARGEST: Final = 10.0  # times: beyond, a percentage is no help to anybody
_WORDS: Final = {
    "latency_p95": "latency P95",
    "peak_memory": "peak memory",
    "collective": "exposed comm.",
}


def figure_row(figure: GateFigure) -> tuple[str, ...]:
    """Return the cells of a figure, in the order of `FIGURE_COLUMNS`."""
    sign = "-" if figure.better == "higher" else "+"
    return (
        _WORDS.get(figure.metric, figure.metric),
        write_amount(figure.unit, figure.base),
        write_amount(figure.unit, figure.new),
        write_share(figure.change_share),
        write_span(figure.interval_share),
        f"{sign}{100 * figure.threshold_share:.3g} %",
        figure.verdict,
        str(figure.n),
    )


def stage_row(stage: GateStage) -> tuple[str, ...]:
    """Return the cells of a stage, in the order of `STAGE_COLUMNS`."""
    return (
        stage.stage,
        write_amount("ns", stage.base_ns),
        write_amount("ns", stage.new_ns),
        write_share(stage.change_share),
        write_span(stage.interval_share),
        _signed_ns(stage.change_ns),
        DASH if isinstance(stage.share_of_change, Unknown) else f"{round(100 * stage.share_of_change)} %",
        f"{stage.verdict}{' (critical)' if stage.critical and stage.fails else ''}",
        str(stage.n),
    )


def level_of(gate: Gate) -> str:
    """Return how sure the intervals of the first figure are, as a heading says it."""
    tails = {figure.tail_share for figure in gate.figures}
    return " / ".join(f"{100 * (1 - 2 * tail):.4g} %" for tail in sorted(tails)) + " intervals"


def write_share(share: float | Unknown) -> str:
    """Write a change with its sign.

    >>> write_share(0.0521), write_share(40.0)
    ('+5.2 %', '×41')
    """
    if isinstance(share, Unknown):
        return DASH
    return f"×{1 + share:.3g}" if share >= _LARGEST else f"{100 * share:+.1f} %"


def write_span(span: list[float] | Unknown) -> str:
    """Write both ends of an interval of shares.

    >>> write_span([-0.01, 0.023])
    '[-1.0, +2.3] %'
    """
    if isinstance(span, Unknown):
        return DASH
    if max(span) >= _LARGEST:
        return f"[{write_share(span[0])}, {write_share(span[1])}]"
    return f"[{100 * span[0]:+.1f}, {100 * span[1]:+.1f}] %"


def write_amount(unit: str, value: float | Unknown) -> str:
    """Write a figure with its unit.

    >>> write_amount("per_s", 1234.5), write_amount("ns", 5e6)
    ('1,234 /s', '5.00 ms')
    """
    if isinstance(value, Unknown):
        return DASH
    if unit == "per_s":
        return f"{value:,.0f} /s" if abs(value) >= 1000 else f"{value:.4g} /s"
    write = format_bytes if unit == "bytes" else format_ns
    return f"-{write(-value)}" if value < 0 else write(value)


def _signed_ns(value: float | Unknown) -> str:
    if isinstance(value, Unknown):
        return DASH
    return f"{'-' if value < 0 else '+'}{format_ns(abs(value))}"
