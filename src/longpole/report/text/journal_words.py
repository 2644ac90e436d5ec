"""The words of the journal's pages: effects, verdicts, values, and lines that could not be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from msgspec import UnsetType

from longpole.advice.journal.summary import gain
from longpole.analyses.sums import round_shares
from longpole.records.journal import Expected, Measured
from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.report.text.layout import wrap
from longpole.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.advice.journal.summary import Contribution
    from longpole.records.journal import ConfigValue, DamagedLine, Entry
    from longpole.report.journal import ClaimEntry
    from longpole.report.text.layout import Style

NONE: Final = "–"
_SCOPES: Final = {"total": "all devices together", "per_device": "per device"}
_DAMAGED_SHOWN: Final = 5
_FINE: Final = 1_000_000_000  # a share in whole numbers, fine enough to be rounded once


def shares_in_percent(kept: list[Contribution]) -> list[str]:
    """Write shares in whole percent so that what is shown adds up to 100 % (largest remainder)."""
    parts = [round(_FINE * one.log_share) for one in kept if isinstance(one.log_share, float)]
    if len(parts) < len(kept):
        return [NONE for _ in kept]
    return [f"{percent} %".replace("-", "−") for percent in round_shares(parts, _FINE // 100)]


def headline(title: str, text: str, style: Style, paint: Callable[[str], str] | None = None) -> list[str]:
    """Return the first lines of a page: a title in capitals, and what there is to say."""
    lines = wrap(text, style.width, first=f"{title}  ", rest="  ")
    lines[0] = (paint or style.verdict)(title) + lines[0][len(title) :]
    return lines


def effect_of(entry: Entry, *, which: str = "measured") -> str:
    """Return the effect of an entry as a change of throughput; a dash where there is none."""
    effect = entry.measured if which == "measured" else entry.expected
    return gain(effect.speedup) if isinstance(effect, Measured | Expected) else NONE


def interval_words(measured: Measured) -> str:
    """Write the interval of an effect; empty where there is none."""
    if not (isinstance(measured.low, float) and isinstance(measured.high, float)):
        return ""
    level = f" ({measured.level:.0%})".replace("%", " %") if isinstance(measured.level, float) else ""
    return f"between {gain(measured.low, 1)} and {gain(measured.high, 1)}{level}"


def figures_of(measured: Measured) -> str:
    """Write the figures before and after; empty where an entry states a speed-up only."""
    if not (isinstance(measured.before, float) and isinstance(measured.after, float)):
        return ""
    scope = f", {_SCOPES[measured.scope]}" if measured.scope in _SCOPES else ""
    return f"{figure(measured.before)} → {figure(measured.after)} {escape(measured.unit)}{scope}"


def figure(value: float) -> str:
    """Write a figure with up to six digits.

    >>> figure(1200.0), figure(0.00123456789), figure(1234567.0)
    ('1,200', '0.00123457', '1,234,567')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def scope_words(scope: str) -> str:
    """Say what a throughput is of; that nobody said so, where nobody did."""
    return _SCOPES.get(scope, "entries do not say whether per device or of all together")


def says_verdict(verdict: str) -> str:
    """Return a verdict as a person writes it."""
    return escape(verdict.replace("_", " "))


def decision_words(entry: Entry) -> str:
    """Return the decision; that it takes another change back, where it does."""
    return "a revert" if entry.reverts else entry.decision


def value_words(value: ConfigValue | UnsetType) -> str:
    """Write a value of a configuration; text without quotes, and nothing as a dash."""
    if isinstance(value, UnsetType):
        return NONE
    return escape(value) if isinstance(value, str) else json.dumps(value)


def lines_of_damage(damaged: list[DamagedLine], style: Style) -> list[str]:
    """Return the section on lines that could not be read; empty where all could."""
    if not damaged:
        return []
    number = format_count(len(damaged), "line")
    lines = [style.warning(f"DAMAGED  {number} could not be read, and the others were")]
    for line in damaged[:_DAMAGED_SHOWN]:
        lines += wrap(f"line {line.line}: {escape(line.why)}", style.width, first="  ", rest="    ", max_lines=3)
    if len(damaged) > _DAMAGED_SHOWN:
        lines.append(f"  and {len(damaged) - _DAMAGED_SHOWN} more; `longpole journal check` names them all")
    return lines


def by_verdict(claims: list[ClaimEntry]) -> list[tuple[str, list[ClaimEntry]]]:
    """Return what came of stated figures, each with those that it is said of."""
    found: dict[str, list[ClaimEntry]] = {}
    for claim in claims:
        found.setdefault(_verdict_of(claim), []).append(claim)
    return list(found.items())


def _verdict_of(claim: ClaimEntry) -> str:
    if isinstance(claim.check, Unknown):
        return f"not checked: {claim.check.unknown}"
    return f"{claim.check.verdict.replace('_', ' ')}: {claim.check.says}"


def claim_words(claim: ClaimEntry) -> str:
    """Write a stated figure, when it holds and which entry carries it; escaped."""
    side = "before and after" if claim.of == "both" else claim.of
    return f"{escape(claim.what)} = {escape(claim.stated)} {side} {escape(claim.entry)}"
