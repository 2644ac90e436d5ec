"""Rows held against each other: of one model on the same devices, MFU grows as tokens/s do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Term
from longpole.claims.evaluate import evaluate_all
from longpole.claims.figures import LEVELS
from longpole.claims.words import times
from longpole.records.audit import AuditAcross

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from longpole.claims.evaluate import Evaluation
    from longpole.claims.figures import Figure
    from longpole.claims.statement import Statement

_PAIRS_MOST: Final = 2_000
_RATES: Final = ("tok_s_gpu", "tok_s", "flops_gpu")
_OF_MODEL: Final = ("params", "active_params", "layers", "hidden", "seq", "peak", "flops_token")
_EXCHANGED: Final = ("mfu", "hfu", "tok_s_gpu", "tok_s", "step_s", "flops_gpu")
_SUPERLINEAR: Final = 1.05


def across(
    statements: Sequence[Statement], evaluations: Sequence[Evaluation], exchanged: Collection[int] = ()
) -> list[AuditAcross]:
    """Return what rows of one model on the same devices say of each other.

    Args:
        statements: The rows.
        evaluations: What came of each.
        exchanged: Rows whose figures are known to be exchanged; they are left out.
    """
    found = []
    numbers = [number for number in range(len(statements)) if number not in exchanged]
    pairs = [(one, other) for one in numbers for other in numbers if one < other][:_PAIRS_MOST]
    for one, other in pairs:
        if _is_same_run(statements[one], statements[other]):
            answer = _utilisation(statements, evaluations, one, other)
            if answer is not None:
                found.append(answer)
    return found


def _is_same_run(one: Statement, other: Statement) -> bool:
    """Tell whether two rows are of one model, sequence, device and precision, as far as either says."""
    if (one.model_name, one.device, one.words.get("dtype")) != (
        other.model_name,
        other.device,
        other.words.get("dtype"),
    ):
        return False
    return all(_value(one, name) == _value(other, name) for name in _OF_MODEL)


def _value(statement: Statement, name: str) -> float | None:
    figure = statement.figures.get(name)
    return figure.value if figure is not None else None


def _utilisation(
    statements: Sequence[Statement], evaluations: Sequence[Evaluation], one: int, other: int
) -> AuditAcross | None:
    """R5: MFU(2) / MFU(1) = tokens/s of a device(2) / (1), whatever model and peak are."""
    name = next((name for name in ("mfu", "hfu", "utilisation") if all(
        name in statements[number].figures for number in (one, other))), None)  # fmt: skip
    if name is None:
        return None
    rates = [_rate(evaluations[number], statements[number], f"[{number}]") for number in (one, other)]
    if rates[0] is None or rates[1] is None:
        return None
    figures: dict[str, Figure] = {}
    shares = []
    for number, (_, own) in zip((one, other), (rates[0], rates[1]), strict=True):
        figures |= own
        figures[f"{name}[{number}]"] = statements[number].figures[name]
        shares.append(Term(1.0, {f"{name}[{number}]": 1.0}))
    throughput = rates[1][0].times(rates[0][0], -1.0)
    utilisation = shares[1].times(shares[0], -1.0)
    residual = utilisation.times(throughput, -1.0)
    if any(_holds(residual, figures, level) for level in LEVELS):
        return None
    grown, stated = throughput.value(figures), utilisation.value(figures)
    title = "HFU" if name == "hfu" else "MFU"
    says = (
        f"{times(grown)}× the throughput a device against {times(stated)}× the {title} contradicts itself,"
        " whatever the model, its convention and the peak"
    )
    return AuditAcross(
        code="R5",
        status="contradicts",
        statements=[statements[one].name, statements[other].name],
        says=says,
        stated=stated,
        expected=grown,
        factor=stated / grown,
    )


def _holds(residual: Term, figures: dict[str, Figure], level: int) -> bool:
    low, high = residual.ends(figures, level)
    return low <= 1.0 <= high


def _rate(evaluation: Evaluation, statement: Statement, row: str) -> tuple[Term, dict[str, Figure]] | None:
    """Return the tokens/s of a device over what its row states, without its utilisation."""
    solution = evaluation.solution
    term = solution.known.get("tok_s_gpu")
    if term is None and "tok_s" in statement.figures:
        term = Term(1.0, {"tok_s": 1.0})  # on the same devices, however many
    if term is None or {"mfu", "hfu", "utilisation", "flops_gpu", "hw_flops_gpu"} & term.powers.keys():
        return None
    named = {name: name if name in statement.shared else f"{name}{row}" for name in term.powers}
    powers = {named[name]: power for name, power in term.powers.items()}
    return Term(term.constant, powers), {named[name]: solution.figures[name] for name in term.powers}


def swapped(one: Statement, other: Statement) -> str | None:
    """Return the figure that two rows have to exchange for both to hold, None where none does."""
    for name in _EXCHANGED:
        first, second = one.figures.get(name), other.figures.get(name)
        if first is None or second is None or first.value == second.value:
            continue
        if not evaluate_all(one.given(name, second))[0].bad and not evaluate_all(other.given(name, first))[0].bad:
            return name
    return None
