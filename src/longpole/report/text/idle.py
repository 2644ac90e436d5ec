"""WHY THE DEVICE IDLED: the idle time of the mean unit by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.escape import escape
from longpole.report.text.figures import percent, spread_percent
from longpole.report.text.layout import pad, shorten
from longpole.report.text.words import idle_words, is_on_cpu, is_recorded, unit_noun, with_article

if TYPE_CHECKING:
    from longpole.report.document import Report
    from longpole.report.text.figures import Scale
    from longpole.report.text.layout import Style

_SHOWN: Final = 6
_LEAST_SHARE: Final = 0.0005  # what is shown as 0.0 % joins the others
_FIGURE, _SHARE, _NAME = 11, 9, 20


def render_idle(report: Report, scale: Scale, style: Style) -> list[str]:
    """Show the reasons of the idle time, the worst first, each with its share of the unit."""
    ledger = report.ledger
    idle_ns = ledger.device.idle_ns
    if idle_ns <= 0:
        return []
    noun = with_article(unit_noun(report.unit.kind))
    on_cpu = "TIME WITHOUT COMPUTE" if is_recorded(report) else "WHY NO OPERATOR RAN"
    title = on_cpu if is_on_cpu(report) else "WHY THE DEVICE IDLED"
    whole = f"{scale.unit}; {scale.write(idle_ns)} in all, {percent(idle_ns, ledger.wall_ns)} of {noun}"
    lines = [style.title(title, whole)]
    reasons = sorted((name for name, time in ledger.idle_ns.items() if time), key=lambda name: -ledger.idle_ns[name])
    notable = [name for name in reasons if ledger.idle_ns[name] >= _LEAST_SHARE * ledger.wall_ns]
    shown = notable[:_SHOWN]
    rest = reasons[len(shown) :]
    if len(rest) == 1:
        shown, rest = reasons, []
    parts_ns = [ledger.idle_ns[name] for name in shown] + [sum(ledger.idle_ns[name] for name in rest)]
    names = [*shown, "others"]
    figures, shares = scale.spread(parts_ns), spread_percent(parts_ns, ledger.wall_ns)
    for name, figure, share in zip(names, figures, shares, strict=True):
        if name == "others" and not rest:
            continue
        words = ", ".join(rest) if name == "others" else idle_words(name, report)
        left = f"{figure:>{_FIGURE}}{share:>{_SHARE}}  {pad(escape(name), _NAME)}"
        lines.append(left + shorten(words, style.width - len(left)))
    return lines
