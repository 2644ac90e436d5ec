"""What would make a contradiction vanish: one slip of a known kind, or two.

Every contradiction is a product that should be 1, and a slip multiplies one of its figures by a known factor. So each
slip is tried on each figure, then pairs of them, and those are kept under which every relation of the statement holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import level_of
from longpole.claims.evaluate import is_apart
from longpole.claims.fields import FIELDS
from longpole.claims.figures import CUT
from longpole.claims.slips import slips_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.claims.algebra import Check
    from longpole.claims.breach import Breach
    from longpole.claims.evaluate import Evaluation
    from longpole.claims.figures import Figure
    from longpole.claims.slips import Slip

SHOWN: Final = 4
_PAIRS_MOST: Final = 20_000
_LEAST_SHARE: Final = 0.005  # a utilisation below it explains nothing
_LEAST_USE: Final = 0.02  # of a link or a memory: what uses less of it is no explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Slips under which everything holds.

    Attributes:
        slips: One, or two.
        distance: How far the worst residual is from 1 then, as a logarithm.
    """

    slips: tuple[Slip, ...]
    distance: float

    @property
    def cost(self) -> int:
        """How far-fetched it is, both together."""
        return sum(one.cost for one in self.slips)

    @property
    def says(self) -> str:
        """How the statement is to be read."""
        return " and ".join(one.says for one in self.slips)


def explain(evaluation: Evaluation) -> tuple[list[Explanation], int]:
    """Return the simplest slips that would make a statement hold, and how many were tried.

    Where no one slip (or pair) repairs everything, those that repair the first contradiction are returned.
    """
    slips = slips_of(evaluation)
    every = (*evaluation.failed,), (*evaluation.breaches,)
    found, tried = _search(evaluation, slips, *every)
    several = len(evaluation.failed) + len(evaluation.breaches) > 1
    if not found and several:
        for check in evaluation.failed:
            found, more = _search(evaluation, slips, (check,), ())
            tried += more
            if found:
                break
    return found[:SHOWN], tried


def _search(
    evaluation: Evaluation, slips: Sequence[Slip], failed: tuple[Check, ...], breached: tuple[Breach, ...]
) -> tuple[list[Explanation], int]:
    if not failed and all(one.ratio is None for one in breached):
        return [], 0
    repair = _Repair(evaluation, failed, breached)
    singles = _nearest(found for slip in slips if (found := repair.under((slip,))) is not None)
    tried = len(slips)
    if not singles and failed and not _of_counts(failed):
        pairs = list(_pairs(slips))
        tried += len(pairs)
        singles = _nearest(found for pair in pairs if (found := repair.under(pair)) is not None)
    return _distinct(sorted(singles, key=lambda one: (one.cost, one.distance))), tried


def _of_counts(failed: tuple[Check, ...]) -> bool:
    """Tell whether only counts contradict each other: one of them is wrong, and two slips would be invented."""
    return all(name in FIELDS and FIELDS[name].exact for check in failed for name in check.residual.powers)


def nearest(evaluation: Evaluation) -> tuple[Slip, float] | None:
    """Return the likely slip that brings the first contradiction closest to holding, and its residual then.

    None where none comes at least halfway, as a logarithm.
    """
    if not evaluation.failed:
        return None
    residual = evaluation.failed[0].residual
    figures = evaluation.figures
    before = abs(math.log(residual.value(figures)))
    best: tuple[float, Slip, float] | None = None
    for slip in slips_of(evaluation):
        if slip.cost > 1 or slip.field not in residual.powers:
            continue
        after = residual.value(slip.apply(figures))
        distance = abs(math.log(after))
        if distance < before / 2 and (best is None or distance < best[0]):
            best = (distance, slip, after)
    return None if best is None else (best[1], best[2])


def _pairs(slips: Sequence[Slip]) -> Iterable[tuple[Slip, Slip]]:
    number = 0
    for one, other in combinations(slips, 2):
        if one.field != other.field and not (one.alone or other.alone) and number < _PAIRS_MOST:
            number += 1
            yield one, other


def _nearest(found: Iterable[Explanation]) -> list[Explanation]:
    """Keep of explanations that differ only in what was searched for (a size) the one that fits best."""
    best: dict[tuple[str, ...], Explanation] = {}
    for one in found:
        key = tuple(slip.searched or slip.says for slip in one.slips)
        if key not in best or one.distance < best[key].distance:
            best[key] = one
    return list(best.values())


def _distinct(found: Iterable[Explanation]) -> list[Explanation]:
    return list({one.says: one for one in reversed(list(found))}.values())[::-1]


class _Repair:
    """Tells whether slips make a statement hold."""

    def __init__(self, evaluation: Evaluation, failed: tuple[Check, ...], breached: tuple[Breach, ...]) -> None:
        self.figures = evaluation.figures
        self.failed = failed
        self.held = [check for check in evaluation.solution.checks if check.level is not None]
        self.breached = [one for one in breached if one.ratio is not None]
        self.known = evaluation.solution.known

    def under(self, slips: tuple[Slip, ...]) -> Explanation | None:
        """Return the explanation, None where something does not hold under it."""
        fields = {slip.field for slip in slips}
        if not all(fields & check.residual.powers.keys() for check in self.failed):
            return None
        figures: Mapping[str, Figure] = self.figures
        for slip in slips:
            figures = slip.apply(figures)
        distance = 0.0
        for check in self.failed:
            if level_of(check.residual, figures) is None:
                return None
            distance = max(distance, abs(math.log(max(check.residual.value(figures), 1e-300))))
        touched = [check for check in self.held if fields & check.residual.powers.keys()]
        if any(
            level_of(check.residual, figures) is None and not is_apart(check.residual, dict(figures))
            for check in touched
        ):
            return None
        if not self._within_limits(figures):
            return None
        for one in self.breached:
            assert one.ratio is not None
            distance = max(distance, abs(math.log(max(one.ratio.value(figures), 1e-300))))
        return Explanation(slips=slips, distance=distance)

    def _within_limits(self, figures: Mapping[str, Figure]) -> bool:
        for one in self.breached:
            assert one.ratio is not None
            low, high = one.ratio.ends(figures, CUT)
            least = _LEAST_SHARE if one.code == "R7" else _LEAST_USE
            if low > 1.0 or high < least:
                return False
        shares = [self.known[name] for name in ("mfu", "hfu") if name in self.known]
        return all(term.ends(figures, CUT)[0] <= 1.0 for term in shares)
