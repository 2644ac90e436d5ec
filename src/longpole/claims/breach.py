"""A limit that figures go beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from longpole.claims.figures import CUT

if TYPE_CHECKING:
    from longpole.claims.algebra import Solution, Term

Severity: TypeAlias = Literal["contradicts", "impossible", "implausible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A limit that figures go beyond.

    Attributes:
        code: Of the relation.
        severity: `impossible`, `implausible`, or `contradicts` where it is a contradiction between statements.
        says: What is beyond what, in words; `{ratio}` stands for how far.
        ratio: What should be 1 at most; None where the limit is no product.
        fields: What is stated of it.
        readings: What would make it hold, and is common.
    """

    code: str
    severity: Severity
    says: str
    ratio: Term | None = None
    fields: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


def is_above(solution: Solution, ratio: Term | None, most: float = 1.0) -> bool:
    """Tell whether a ratio is above its limit however its figures were rounded."""
    return ratio is not None and ratio.ends(solution.figures, CUT)[0] > most
