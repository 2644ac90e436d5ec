"""Products of powers of stated figures, and what follows from relations between them.

A relation says that one figure is a product and quotient of others. Figures that are not stated are derived from
those that are, so that in the end every known figure is `constant · x^a · y^b …` over stated ones only. A relation
all of whose figures are known and that derived none of them is a check: its residual, a product too, has to be 1.
Each stated figure stands in it once, so the ends of its range follow from the ends of theirs exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from longpole.claims.figures import LEVELS
from longpole.costs.formula import Formula

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from longpole.claims.figures import Figure

_DUST: Final = 1e-9  # of floating-point arithmetic, as a share


@dataclass(frozen=True, slots=True)
class Relation:
    """One figure as a product of others.

    Attributes:
        code: `R1` to `R12`.
        target: What is given.
        over: What it is the product of.
        under: What it is divided by.
        says: In words.
        source: Where it is taken from, or how it follows.
        constant: A number that multiplies it.
    """

    code: str
    target: str
    over: tuple[str, ...]
    under: tuple[str, ...]
    says: str
    source: str
    constant: float = 1.0

    @property
    def fields(self) -> tuple[str, ...]:
        """Every figure in it."""
        return (self.target, *self.over, *self.under)

    def exponents(self) -> dict[str, float]:
        """Return the exponents of its residual: target / (constant · over / under)."""
        found = {self.target: 1.0}
        for name in self.over:
            found[name] = found.get(name, 0.0) - 1.0
        for name in self.under:
            found[name] = found.get(name, 0.0) + 1.0
        return found


@dataclass(frozen=True, slots=True)
class Term:
    """`constant` times powers of stated figures."""

    constant: float
    powers: Mapping[str, float]

    def times(self, other: Term, power: float = 1.0) -> Term:
        """Return the product with a power of another."""
        powers = dict(self.powers)
        for name, exponent in other.powers.items():
            powers[name] = powers.get(name, 0.0) + exponent * power
        kept = {name: exponent for name, exponent in powers.items() if abs(exponent) > _DUST}
        return Term(self.constant * other.constant**power, kept)

    def value(self, figures: Mapping[str, Figure]) -> float:
        """Return its value where every figure is as it was written."""
        product = self.constant
        for name, power in self.powers.items():
            product *= figures[name].value ** power
        return product

    def ends(self, figures: Mapping[str, Figure], level: int) -> tuple[float, float]:
        """Return between which it lies where figures were rounded at a level."""
        low = high = self.constant
        for name, power in self.powers.items():
            figure = figures[name]
            first, last = figure.low[level], figure.high[level]
            if power < 0:
                first, last = last, first
            low *= _power(first, power)
            high *= _power(last, power)
        return low * (1 - _DUST), high * (1 + _DUST)

    def solved(self, name: str) -> Term:
        """Return what a figure of it has to be for it to be 1."""
        power = self.powers[name]
        rest = {other: -exponent / power for other, exponent in self.powers.items() if other != name}
        return Term(self.constant ** (-1.0 / power), rest)

    def formula(self, unit: str = "", source: str = "") -> Formula:
        """Return it as a formula that can be printed with its values."""
        over = [_written(name, power) for name, power in self.powers.items() if power > 0]
        under = [_written(name, -power) for name, power in self.powers.items() if power < 0]
        if abs(self.constant - 1.0) > _DUST or not over:
            over.insert(0, f"{self.constant:.10g}")
        text = "*".join(over)
        if len(under) == 1:
            text = f"{text}/{under[0]}"
        elif under:
            text = f"{text}/({'*'.join(under)})"
        return Formula(text, unit, source)

    def explain(self, figures: Mapping[str, Figure], unit: str = "") -> str:
        """Write it with its values, and what comes out."""
        formula = self.formula(unit)
        return formula.explain(**{name: figures[name].value for name in self.powers})


def _power(base: float, power: float) -> float:
    if base == 0.0:
        return 0.0 if power > 0 else float("inf")
    return base**power


def _written(name: str, power: float) -> str:
    return name if abs(power - 1.0) < _DUST else f"{name}**{power:g}"


@dataclass(frozen=True, slots=True)
class Check:
    """A relation that nothing was derived from: its residual has to be 1.

    Attributes:
        relation: Which.
        residual: Over stated figures.
        level: The lowest level of rounding at which it holds, None for none.
    """

    relation: Relation
    residual: Term
    level: int | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The stated figures that it holds against each other."""
        return tuple(self.residual.powers)


@dataclass(frozen=True, slots=True)
class _Structure:
    """What follows from which figures, whatever their values are.

    Attributes:
        known: Every known figure as a product over stated ones.
        through: Of each, the relations that it was derived through.
        residuals: Of every relation that nothing was derived from, what has to be 1.
    """

    known: Mapping[str, Term]
    through: Mapping[str, tuple[Relation, ...]]
    residuals: tuple[tuple[Relation, Term], ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """What follows from stated figures.

    Attributes:
        figures: What is stated.
        known: Every known figure as a product over these.
        through: Of each, the relations that it was derived through.
        checks: What has to hold.
    """

    figures: Mapping[str, Figure]
    known: Mapping[str, Term]
    through: Mapping[str, tuple[Relation, ...]]
    checks: tuple[Check, ...]

    def value(self, name: str) -> float | None:
        """Return a known figure, None for one that is not."""
        term = self.known.get(name)
        return None if term is None else term.value(self.figures)

    def ends(self, name: str, level: int = 0) -> tuple[float, float] | None:
        """Return between which a known figure lies."""
        term = self.known.get(name)
        return None if term is None else term.ends(self.figures, level)


def solve(figures: Mapping[str, Figure], relations: Iterable[Relation]) -> Solution:
    """Derive what follows, and return what is left to hold.

    Args:
        figures: What is stated.
        relations: In the order in which they may derive something.
    """
    structure = _structure(tuple(figures), tuple(relations))
    checks = tuple(Check(relation, residual, level_of(residual, figures)) for relation, residual in structure.residuals)
    return Solution(figures, structure.known, structure.through, checks)


@lru_cache(maxsize=4096)
def _structure(names: tuple[str, ...], relations: tuple[Relation, ...]) -> _Structure:
    """Derive every figure that can be; rows of one table have one structure."""
    known = {name: Term(1.0, {name: 1.0}) for name in names}
    through: dict[str, tuple[Relation, ...]] = dict.fromkeys(names, ())
    left = list(relations)
    while True:
        deriving = next(((one, name) for one in left if (name := _missing(one, known)) is not None), None)
        if deriving is None:
            break
        relation, name = deriving
        left.remove(relation)
        known[name] = _derived(relation, name, known)
        others = (step for other in relation.fields if other != name for step in through[other])
        through[name] = tuple(dict.fromkeys((*others, relation)))
    found = ((relation, _residual(relation, known)) for relation in left if all(n in known for n in relation.fields))
    return _Structure(known, through, tuple((relation, term) for relation, term in found if term.powers))


def _missing(relation: Relation, known: Mapping[str, Term]) -> str | None:
    """Return the one figure of a relation that is not known; None where there is none, or another one."""
    missing = {name for name in relation.fields if name not in known}
    return missing.pop() if len(missing) == 1 else None


def _derived(relation: Relation, name: str, known: Mapping[str, Term]) -> Term:
    exponents = relation.exponents()
    power = exponents.pop(name)
    term = Term(1.0 / relation.constant, {})
    for other, exponent in exponents.items():
        term = term.times(known[other], exponent)
    return Term(1.0, {}).times(term, -1.0 / power)


def _residual(relation: Relation, known: Mapping[str, Term]) -> Term:
    """Return target / (constant · over / under) over stated figures."""
    term = Term(1.0 / relation.constant, {})
    for name, exponent in relation.exponents().items():
        term = term.times(known[name], exponent)
    return term


def level_of(residual: Term, figures: Mapping[str, Figure]) -> int | None:
    """Return the lowest level of rounding at which a residual may be 1."""
    for level in LEVELS:
        low, high = residual.ends(figures, level)
        if low <= 1.0 <= high:
            return level
    return None
