"""A statement under one reading and one convention: what holds, and at which rounding; and the best of all of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Check, Solution, solve
from longpole.claims.bounds import breaches
from longpole.claims.counting import NONE, Counting, countings
from longpole.claims.figures import CUT
from longpole.claims.readings import Reading, other_readings, usual_reading
from longpole.claims.relations import USUAL

if TYPE_CHECKING:
    from longpole.claims.algebra import Term
    from longpole.claims.breach import Breach
    from longpole.claims.figures import Figure
    from longpole.claims.statement import Statement

MEASURED_SHARE: Final = 0.025
"""How far figures may be apart that were measured each by itself, over other steps or with other rounding on the way.

Megatron-Bridge prints tokens/s and TFLOP/s of one run that differ by up to 2.2 % beyond their digits."""
COUNTED_SHARE: Final = 0.015
"""The same of a utilisation beside a throughput, and of FLOPs per token: small terms are counted by some only.

arXiv:2505.09343 prints 2448 GFLOP for Llama-3-405B, and the count that gives its other rows gives 2473."""
_MEASURED: Final = (
    frozenset({"flops_gpu", "hw_flops_gpu", "flops_total"}),
    frozenset({"tok_s", "tok_s_gpu", "seq_s"}),
    frozenset({"step_s"}),
    frozenset({"time_s", "gpu_s"}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What came of one reading.

    Attributes:
        reading: Which.
        counting, device_counting: How model and hardware FLOPs were counted.
        solution: What follows.
        failed: Checks that hold at no rounding.
        apart: Of measured figures, those that are apart by less than `MEASURED_SHARE`.
        breaches: Limits that are exceeded.
        level: The highest rounding that a check needs.
    """

    reading: Reading
    counting: Counting
    device_counting: Counting
    solution: Solution
    failed: tuple[Check, ...]
    apart: tuple[Check, ...]
    breaches: tuple[Breach, ...]
    level: int

    @property
    def bad(self) -> float:
        """How much is wrong; what is only implausible counts half."""
        return len(self.failed) + sum(0.5 if one.severity == "implausible" else 1.0 for one in self.breaches)

    @property
    def cost(self) -> int:
        """How far it goes beyond the usual reading."""
        return self.reading.cost + self.counting.cost + self.device_counting.cost

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure that went in."""
        return dict(self.solution.figures)


def evaluate(reading: Reading, counting: Counting = NONE, device_counting: Counting = NONE) -> Evaluation:
    """Solve a reading under a convention."""
    figures = {**reading.statement.figures, **(counting.figures or {}), **(device_counting.figures or {})}
    added = [one.relation for one in (counting, device_counting) if one.relation is not None]
    instead = dict(reading.instead)
    usual = [instead.get(one, one) for one in USUAL] if instead else USUAL
    solution = solve(figures, [*reading.relations, *added, *usual])
    failing = [check for check in solution.checks if check.level is None]
    apart = tuple(check for check in failing if is_apart(check.residual, figures))
    failed = tuple(check for check in failing if check not in apart)
    levels = [check.level for check in solution.checks if check.level is not None]
    return Evaluation(
        reading=reading,
        counting=counting,
        device_counting=device_counting,
        solution=solution,
        failed=failed,
        apart=apart,
        breaches=_told_once(breaches(reading.statement, solution), failed),
        level=max(levels, default=0),
    )


def _told_once(found: list[Breach], failed: tuple[Check, ...]) -> tuple[Breach, ...]:
    """Leave out what is only implausible of a figure that contradicts others anyway."""
    wrong = {name for check in failed for name in check.residual.powers}
    return tuple(one for one in found if one.severity != "implausible" or not wrong & set(one.fields))


def _is_counted(residual: Term) -> bool:
    """Tell whether a residual is a utilisation beside a throughput, or FLOPs of a token beside their count."""
    named = residual.powers.keys()
    beside = any(group & named for group in _MEASURED[1:])
    return (beside and bool(named & {"mfu", "hfu"})) or set(named) == {"flops_token", "counted_flops_token"}


def is_apart(residual: Term, figures: dict[str, Figure]) -> bool:
    """Tell whether a residual is as close to 1 as figures are that were measured or counted each by itself."""
    named = residual.powers.keys()
    groups = sum(bool(group & named) for group in _MEASURED)
    if groups >= 2:
        share = MEASURED_SHARE
    elif _is_counted(residual):
        share = COUNTED_SHARE
    else:
        return False
    low, high = residual.ends(figures, CUT)
    return low <= 1 + share and high >= 1 - share


def evaluate_all(statement: Statement) -> tuple[Evaluation, list[Evaluation]]:
    """Return the best evaluation of a statement, and those of its usual reading under every convention."""
    usual = usual_reading(statement)
    first = _under_all(usual)
    best = _best(first)
    if best.bad or best.apart or best.cost:
        for reading in other_readings(usual):
            best = _best([best, *_under_all(reading)])
            if not best.bad and not best.apart and best.cost <= 1:
                break
    same = first if best.reading is usual else _under_all(best.reading)
    return best, same


def _under_all(reading: Reading) -> list[Evaluation]:
    of_model, of_device = countings(reading.statement)
    if not {"hfu", "hw_flops_gpu", "hw_flops_run"} & reading.statement.figures.keys():
        of_device = [NONE]
    elif any("hardware FLOPs" in says for says in reading.says):
        of_device = [one for one in of_device if one.cost == 0 and one.name]
    return [evaluate(reading, counting, device) for counting in of_model for device in of_device]


def _best(found: list[Evaluation]) -> Evaluation:
    """Choose what is least wrong, then nearest to the words, then least rounded; the first of equals."""
    return min(found, key=lambda one: (one.bad, len(one.apart), one.cost, one.level))
