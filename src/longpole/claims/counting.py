"""FLOPs of a token as far as a statement lets them be counted, under every convention that can be.

What is stated decides what can be counted: an architecture and a sequence, all of it; parameters with layers and
hidden size, attention too; parameters alone, 6 FLOPs for each of them and a range for what is not stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.claims.algebra import Relation
from longpole.claims.figures import LEVELS, Figure
from longpole.claims.models import described
from longpole.costs.conventions import CONVENTIONS, convention_of
from longpole.costs.flops import counts, hardware_flops_per_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.claims.statement import Statement
    from longpole.costs.architecture import Architecture
    from longpole.costs.conventions import Convention
    from longpole.costs.flops import Counts

MODEL, DEVICE = "flops_token", "hw_flops_token"
_ORDER: Final = ("mcore", "palm", "6n", "titan", "korthikanti", "maxtext", "maxtext_2024")
_HARDWARE: Final = ("sc21_hw", "selective_hw", "palm_hw")
# What parameters alone leave open, as a share of 6N: attention above it (s / 6h, half of that if causal), an embedding
# that is not counted below it (V h / N). The width follows from N = 12 L h^2 and a usual ratio of width to depth.
_USUAL_SEQUENCE: Final = 4096  # where none is stated
_VOCABULARY: Final = 128_000  # the largest that is usual
_EMBEDDING_MOST: Final = 0.2
_ATTENTION_MOST: Final = 20.0
_OPEN_COST: Final = 2
_WIDTH_TO_DEPTH: Final = 100.0  # hidden size by layers; models lie between 40 and 200
_WIDTH_DOUBT: Final = 0.6
_FULL_REMATERIALISATION: Final = 4 / 3  # one more forward pass on top of one forward and two of backward


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """One way to count the FLOPs of a token.

    Attributes:
        name: Of the convention, or what it is.
        says: What it counts.
        relation: What it adds to the relations.
        figures: What it adds to the figures.
        cost: How far it goes beyond what is stated; a lower one is preferred.
    """

    name: str
    says: str
    relation: Relation | None = None
    figures: Mapping[str, Figure] | None = None
    cost: int = 0


NONE: Final = Counting(name="", says="")


def countings(statement: Statement) -> tuple[list[Counting], list[Counting]]:
    """Return the ways to count model FLOPs and hardware FLOPs of a token, the preferred ones first."""
    named = statement.words.get("convention")
    convention = convention_of(named) if named else None
    model = statement.model or described(statement.figures, statement.model_name)
    of_model = _of_model(statement, model)
    of_device = _of_device(statement, model)
    if convention is not None and not convention.hardware:
        of_model = [one for one in of_model if one.name.split(" ")[0] == convention.name] or of_model
    if convention is not None and convention.hardware:
        of_device = [one for one in of_device if one.name.split(" ")[0] == convention.name] or of_device
    return of_model or [NONE], of_device or [NONE]


def _of_model(statement: Statement, model: Architecture | None) -> list[Counting]:
    sequence = statement.count("seq")
    if model is not None and sequence is not None:
        found = [_counted(statement, model, sequence, CONVENTIONS[name], MODEL) for name in _ORDER]
        return found + [
            _counted(statement, variant, sequence, CONVENTIONS["mcore"], MODEL, told)
            for variant, told in _variants(model)
        ]
    found = _of_parameters(statement, model)
    if (dims := _dims(statement)) is not None and found:
        width, length = dims
        attention = {"palm": 1.0, "palm (causal)": 0.5}
        found += [
            _with_attention(statement, name, share * width * length, MODEL, 6.0) for name, share in attention.items()
        ]
    elif found:
        found.append(_open(statement, model, sequence))
    return found


def _of_device(statement: Statement, model: Architecture | None) -> list[Counting]:
    sequence = statement.count("seq")
    recompute = _recompute(statement)
    found: list[Counting] = []
    if model is not None and sequence is not None:
        if recompute != "none":
            found += [_counted(statement, model, sequence, CONVENTIONS[name], DEVICE) for name in _HARDWARE]
        found += [_again(one) for one in _of_model(statement, model)[: len(_ORDER)]]
        if recompute in ("none", "selective", "full"):
            flops = hardware_flops_per_token(model, sequence, recompute, flash=True)  # type: ignore[arg-type]
            says = f"fused attention, {recompute} recomputation"
            found.append(_given("flash", says, Figure.exactly(flops), DEVICE))
    elif (dims := _dims(statement)) is not None:
        width, length = dims
        if recompute != "none":
            found.append(_with_attention(statement, "palm_hw", width * length, DEVICE, 8.0))
        found.append(_with_attention(statement, "palm", width * length, DEVICE, 6.0))
    if name := _parameter_field(statement):
        found += [_multiple(name, 8.0, "8n", "8 FLOPs for each parameter: the forward pass twice", DEVICE)]
        found += [_multiple(name, 6.0, "6n", "6 FLOPs for each parameter", DEVICE)]
    if MODEL in statement.figures:
        relation = Relation(
            "R4", DEVICE, (MODEL,), (), "FLOPs of a token as stated, computed forward twice", "4/3", 4 / 3
        )
        found = [Counting(name="4/3 of it", says="every layer computed twice", relation=relation)]
    found += [_again(one) for one in _of_model(statement, model) if one.cost == _OPEN_COST and one.figures]
    if recompute != "none":
        found += [_between(one) for one in _of_model(statement, model) if one.figures][:2]
    return found


def _counted(
    statement: Statement, model: Architecture, sequence: int, convention: Convention, target: str, told: str = ""
) -> Counting:
    held = counts(model, sequence)
    name = _parameter_field(statement)
    formula = convention.formula.text
    if statement.model is None and name is not None and "N" in formula:
        figure = _over_parameters(statement, name, lambda n: replace(held, N=n).under(convention))
    else:
        figure = Figure.exactly(held.under(convention), f"{convention.name} of {model.name}")
    label = f"{convention.name} {told}".strip()
    return _given(label, convention.title + (f", {told}" if told else ""), figure, target, cost=2 if told else 0)


def _over_parameters(statement: Statement, name: str, count: Callable[[float], float]) -> Figure:
    stated = statement.figures[name]
    low = tuple(count(stated.low[level]) for level in LEVELS)
    high = tuple(count(stated.high[level]) for level in LEVELS)
    return Figure(stated.text, count(stated.value), low, high)  # type: ignore[arg-type]


def _given(name: str, says: str, figure: Figure, target: str, *, cost: int = 0) -> Counting:
    key = f"counted_{target}"
    relation = Relation("R4", target, (key,), (), f"FLOPs of a token as {name} counts them: {says}", "flops")
    return Counting(name=name, says=says, relation=relation, figures={key: figure}, cost=cost)


def _multiple(parameters: str, flops: float, name: str, says: str, target: str, cost: int = 0) -> Counting:
    relation = Relation("R4", target, (parameters,), (), f"FLOPs of a token as {name} counts them: {says}", "6N", flops)
    return Counting(name=name, says=says, relation=relation, cost=cost)


def _of_parameters(statement: Statement, model: Architecture | None) -> list[Counting]:
    says = CONVENTIONS["6n"].title
    if model is not None and statement.model is not None:
        held: Counts = counts(model, 1)
        return [_given("6n", says, Figure.exactly(6 * held.N, f"6N of {model.name}"), MODEL)]
    name = _parameter_field(statement)
    return [_multiple(name, 6.0, "6n", says, MODEL)] if name else []


def _with_attention(statement: Statement, name: str, pairs: float, target: str, flops: float) -> Counting:
    """Count flops · (N + 2 · pairs), which for 6 and pairs of L · h · s is PaLM's 6N + 12 L h s."""
    causal = "(causal)" in name
    says = "all parameters, and the causal half of attention" if causal else CONVENTIONS[name].title
    key = _parameter_field(statement)
    assert key is not None
    figure = _over_parameters(statement, key, lambda n: flops * (n + 2.0 * pairs))
    return _given(name, says, figure, target, cost=1 if causal else 0)


def _open(statement: Statement, model: Architecture | None, sequence: int | None) -> Counting:
    """Count 6N with a range for what is not stated."""
    name = _parameter_field(statement)
    if model is not None and statement.model is not None:
        parameters = Figure.exactly(float(counts(model, 1).N))
    else:
        assert name is not None
        parameters = statement.figures[name]
    width = (_WIDTH_TO_DEPTH * parameters.value / 12.0) ** (1 / 3)
    known = sequence is not None
    most = min((sequence or _USUAL_SEQUENCE) / (6.0 * width * (_WIDTH_DOUBT if known else 1.0)), _ATTENTION_MOST)
    least = min(_VOCABULARY * width / parameters.value, _EMBEDDING_MOST)
    low = tuple(6.0 * end * (1 - least) for end in parameters.low)
    high = tuple(6.0 * end * (1 + most) for end in parameters.high)
    text = f"6N, -{100 * least:.0f} % to +{100 * most:.0f} %"
    figure = Figure(text, 6.0 * parameters.value, low, high)
    says = "6N, give or take attention and an embedding that is not counted, whose dimensions are not stated"
    return _given("6n (attention open)", says, figure, MODEL, cost=_OPEN_COST)


def _again(counting: Counting) -> Counting:
    """Count hardware FLOPs as model FLOPs: nothing is computed again."""
    figure = next(iter((counting.figures or {}).values()))
    return _given(counting.name, counting.says, figure, DEVICE, cost=1)


def _between(counting: Counting) -> Counting:
    """Count anything between no recomputation and a full one."""
    figure = next(iter((counting.figures or {}).values()))
    most = tuple(end * _FULL_REMATERIALISATION for end in figure.high)
    between = Figure(figure.text, figure.value, figure.low, most)  # type: ignore[arg-type]
    return _given(
        f"{counting.name}, partly computed again", "between no and full recomputation", between, DEVICE, cost=2
    )


def _variants(model: Architecture) -> list[tuple[Architecture, str]]:
    """Return the model with and without what some count and some do not: modules that predict further tokens."""
    if model.predicted_tokens:
        return [(replace(model, predicted_tokens=0), "without multi-token prediction")]
    return [(replace(model, predicted_tokens=1), "with one multi-token prediction module")] if model.latent else []


def _dims(statement: Statement) -> tuple[int, int] | None:
    """Return L · (heads · head dimension) and the sequence, where parameters are known beside them."""
    layers, sequence = statement.count("layers"), statement.count("seq")
    heads, head_dim = statement.count("heads"), statement.count("head_dim")
    width = heads * head_dim if heads and head_dim else statement.count("hidden")
    if not layers or not sequence or not width or _parameter_field(statement) is None:
        return None
    return layers * width, sequence


def _parameter_field(statement: Statement) -> str | None:
    """Return which parameters a token visits: the active ones where they are stated."""
    return next((name for name in ("active_params", "params") if name in statement.figures), None)


def _recompute(statement: Statement) -> str:
    stated = statement.words.get("recompute", "").lower()
    return {"yes": "full", "true": "full", "no": "none", "false": "none", "selective_op": "partial"}.get(stated, stated)
