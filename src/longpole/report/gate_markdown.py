"""A gate's answer as Markdown, for a comment on a change; names from records are escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.gate_rows import FIGURE_COLUMNS, STAGE_COLUMNS, figure_row, level_of, stage_row
from longpole.report.markdown_text import code, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.gate import Gate

_MARKS: Final = {"regressed": "❌", "invalid": "⛔", "inconclusive": "❔", "same": "✅", "improved": "✅"}
_STAGES: Final = 12
_REASONS: Final = 6


def render_gate_markdown(gate: Gate) -> str:
    """Write a gate's answer as Markdown: the verdict, the figures, the stages, and the next command."""
    parts = [
        f"### {_MARKS[gate.verdict]} {plain(gate.benchmark or 'benchmark')}: {gate.verdict}",
        plain(gate.says),
        *(f"- {plain(says)}" for says in gate.invalid if says != gate.says),
    ]
    if not gate.invalid:
        parts.append(_table(FIGURE_COLUMNS, [figure_row(figure) for figure in gate.figures]))
    if gate.stages:
        rows = [stage_row(stage) for stage in gate.stages[:_STAGES]]
        parts += ["<details><summary>Stages</summary>", _table(STAGE_COLUMNS, rows), "</details>"]
    if gate.reasons:
        hypotheses = [f"- {plain(reason.cause)}: {plain(reason.says)}" for reason in gate.reasons[:_REASONS]]
        parts.append("May lie behind it (hypotheses):\n\n" + "\n".join(hypotheses))
    notes = [*(note for figure in gate.figures for note in figure.notes), *gate.notes]
    parts += [f"> {plain(note)}" for note in notes]
    parts.append(f"{plain(gate.design)}, {level_of(gate)}; at most {100 * gate.false_alarm_share:g} % false alarms.")
    if gate.next:
        parts.append(f"Next: {code(gate.next)}")
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(plain, row)) + " |" for row in rows)])
