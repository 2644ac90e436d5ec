"""The page of `longpole whatif` on operation tables: the prediction, the changes, and the replay's error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import Style, wrap
from longpole.report.text.page import NARROWEST
from longpole.report.text.words import plural
from longpole.units import format_count, format_ns

if TYPE_CHECKING:
    from longpole.report.operations import OperationWhatIf

_LINES: Final = 4


def render_operations_whatif(answer: OperationWhatIf, *, width: int, color: bool) -> str:
    """Write the answer of a what-if of operation tables.

    Args:
        answer: The answer.
        width: Columns of a line; below 60 it is 60.
        color: Whether to use SGR sequences.

    Returns:
        Lines of at most that many columns, each with its line end. Everything that comes from a table is escaped.
    """
    style = Style(max(width, NARROWEST), color)
    sections = [_verdict(answer, style), _changes(answer, style), _belief(answer, style), _integrity(answer, style)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _verdict(answer: OperationWhatIf, style: Style) -> list[str]:
    if answer.refused or isinstance(answer.predicted_period_ns, Unknown) or isinstance(answer.saving_ns, Unknown):
        title, text, paint = "NO PREDICTION", f"because {answer.refused or 'nothing was replayed'}", style.alarm
    else:
        title, paint = "PREDICTION", style.verdict
        saving = answer.saving_ns
        text = f"a step takes {format_ns(answer.predicted_period_ns)} instead of {format_ns(answer.replayed_period_ns)}"
        if saving:
            share = abs(saving) / answer.replayed_period_ns
            text += f": {format_ns(abs(saving))} {'less' if saving > 0 else 'MORE'} ({share:.0%})"
        else:
            text = f"no difference: a step takes {format_ns(answer.predicted_period_ns)}, with the changes as without"
    lines = wrap(escape(text), style.width, first=title + "  ", rest="  ", max_lines=_LINES)
    lines[0] = paint(title) + lines[0][len(title) :]
    return lines


def _changes(answer: OperationWhatIf, style: Style) -> list[str]:
    several = len(answer.changes) > 1
    title = style.title("THE CHANGES", "replayed together, in this order") if several else style.title("THE CHANGE")
    lines = [title]
    for change in answer.changes:
        text = f"{change.says}, {format_count(change.operations, 'operation')}"
        lines += wrap(escape(text), style.width, first="  ", rest="      ", max_lines=_LINES)
    return lines


def _belief(answer: OperationWhatIf, style: Style) -> list[str]:
    steps, error = plural(answer.steps, "step"), _signed(answer.error)
    text = (
        f"The unchanged replay of {steps} is off by {error} of the measured mean,"
        f" {format_ns(answer.measured_period_ns)}. How far off the prediction may be is not known: no pair of tables"
        " before and after such a change was recorded."
    )
    lines = wrap(text, style.width, first="  ", rest="  ")
    return [style.title("HOW FAR TO BELIEVE IT"), *lines]


def _integrity(answer: OperationWhatIf, style: Style) -> list[str]:
    lines = [style.title("ABOUT THE TABLES")] if answer.integrity else []
    for finding in answer.integrity:
        text = escape(finding.message)
        lines += wrap(text, style.width, first=f"  {finding.severity:<6}", rest="        ", max_lines=_LINES)
    return lines


def _signed(share: float) -> str:
    return f"{share:+.2%}".replace("-", "−")
