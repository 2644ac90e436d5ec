"""Whether a row of the catalogue applies to a run: conditions that hold, that do not, and that are not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.advice.fields import missing_fields
from longpole.records.ledger import Unknown
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.advice.catalogue import Row
    from longpole.advice.conditions import Condition
    from longpole.advice.figures import Figures
    from longpole.records.findings import CauseFinding

APPLIES: Final = "applies"
SILENCED: Final = "silenced"
NOT_HERE: Final = "does not apply"
NOT_KNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class Check:
    """One condition, looked at.

    Attributes:
        says: The condition.
        found: The figure's value, or why it is not known.
        holds: None where it is not known.
        why: What it means where it holds and silences the row; empty for a condition of `applies_when`.
    """

    says: str
    found: str
    holds: bool | None
    why: str = ""


@dataclass(slots=True)
class Judgement:
    """Whether a row applies to a run, and why.

    Attributes:
        row: The row.
        verdict: `applies`, `silenced`, `does not apply` or `not known`.
        findings: The findings that it answers.
        wanted: The conditions of `applies_when`.
        against: The conditions of `not_when`.
        missing: What would have to be recorded: for the contract, and for conditions that are not known.
    """

    row: Row
    verdict: str
    findings: list[CauseFinding] = field(default_factory=list)
    wanted: list[Check] = field(default_factory=list)
    against: list[Check] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def because(self) -> list[str]:
        """Return why the row applies, or why not, for a person."""
        if self.verdict == SILENCED:
            return [f"{check.why} ({check.found})" for check in self.against if check.holds]
        if self.verdict == NOT_HERE:
            failed = [f"{check.found}; wanted: {check.says}" for check in self.wanted if check.holds is False]
            return failed or [f"none of its causes was found: {', '.join(self.row.answers)}"]
        told = [f"{found.id}, {found.cause}: {_cost(found)}" for found in self.findings]
        told += [check.found for check in self.wanted if check.holds]
        unknown = [f"{check.found}; wanted: {check.says}" for check in self.wanted if check.holds is None]
        return told + (unknown if self.verdict == NOT_KNOWN else [])


def judge(row: Row, figures: Figures, findings: Sequence[CauseFinding]) -> Judgement:
    """Tell whether a row applies to a run.

    It applies where a finding names one of its causes (unless the row needs figures), or where all conditions of
    `applies_when` hold; one of `not_when` that holds silences it either way. A condition that is not known is neither
    true nor false: it goes to `missing`, and a row that hangs on it is not known to apply.

    Args:
        row: The row.
        figures: The run's figures.
        findings: The causes found in it.
    """
    answered = [found for found in findings if found.cause in row.answers]
    wanted, wanted_unknown = _look(row.applies_when, figures)
    against, against_unknown = _look(row.not_when, figures)
    found = bool(answered) and not row.needs_figures
    unknown = [*([] if found else wanted_unknown), *against_unknown]
    needed = [text for why in unknown for text in (why.missing or [why.unknown])]
    missing = list(dict.fromkeys([*missing_fields(row.must_record, figures), *needed]))
    return Judgement(row, _verdict(wanted, against, found=found), answered, wanted, against, missing)


def _look(conditions: Sequence[Condition], figures: Figures) -> tuple[list[Check], list[Unknown]]:
    checks, unknown = [], []
    for condition in conditions:
        holds = condition.holds(figures)
        if isinstance(holds, Unknown):
            unknown.append(holds)
        known = None if isinstance(holds, Unknown) else holds
        checks.append(Check(condition.says(), condition.found(figures), known, condition.why))
    return checks, unknown


def _verdict(wanted: list[Check], against: list[Check], *, found: bool) -> str:
    if found:
        applies: str = APPLIES
    elif any(check.holds is False for check in wanted) or not wanted:
        return NOT_HERE
    else:
        applies = NOT_KNOWN if any(check.holds is None for check in wanted) else APPLIES
    return SILENCED if any(check.holds for check in against) else applies


def _cost(found: CauseFinding) -> str:
    if found.once:
        return f"{format_ns(found.cost_once_ns)} once"
    return f"{format_ns(found.cost_ns_per_unit)} per unit"
