"""Laws of products of powers: what is derived, what is left to hold, and between which ends it lies."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.claims.algebra import Relation, Term, solve
from longpole.claims.figures import LEVELS, Figure
from longpole.claims.relations import USUAL

RATE: Final = Relation("R3", "rate", ("items",), ("time",), "a rate is items by time", "test")
DOUBLE: Final = Relation("R3", "twice", ("rate",), (), "twice the rate", "test", 2.0)
NAMES: Final = ("a", "b", "c")


def figures(**values: float) -> dict[str, Figure]:
    return {name: Figure.exactly(value) for name, value in values.items()}


@st.composite
def terms(draw: st.DrawFn) -> Term:
    powers = {name: draw(st.sampled_from((-2.0, -1.0, 0.5, 1.0, 2.0))) for name in NAMES}
    return Term(draw(st.floats(min_value=0.1, max_value=10)), powers)


@st.composite
def ranges(draw: st.DrawFn) -> Figure:
    value = draw(st.floats(min_value=0.1, max_value=1e6))
    widths = sorted(draw(st.lists(st.floats(min_value=0, max_value=0.5), min_size=3, max_size=3)))
    low, high = (tuple(value * (1 + sign * width) for width in widths) for sign in (-1, 1))
    return Figure("", value, low, high)  # type: ignore[arg-type]


def test_what_is_missing_is_derived_and_what_is_known_twice_is_checked() -> None:
    solution = solve(figures(items=10, time=2, twice=12), [RATE, DOUBLE])

    assert solution.value("rate") == pytest.approx(5)
    assert [check.relation for check in solution.checks] == [DOUBLE]
    assert solution.checks[0].residual.value(solution.figures) == pytest.approx(1.2)


def test_a_relation_that_derived_a_figure_is_not_held_against_it() -> None:
    solution = solve(figures(items=10, time=2), [RATE, DOUBLE])

    assert solution.checks == ()
    assert solution.value("twice") == pytest.approx(10)


@given(terms(), st.fixed_dictionaries({name: ranges() for name in NAMES}), st.sampled_from(NAMES))
def test_a_figure_that_is_solved_for_makes_the_product_one(term: Term, known: dict[str, Figure], name: str) -> None:
    needed = term.solved(name).value(known)

    assert term.value({**known, name: Figure.exactly(needed)}) == pytest.approx(1.0, rel=1e-6)


@given(terms(), st.fixed_dictionaries({name: ranges() for name in NAMES}), st.data())
def test_a_product_lies_between_its_ends(term: Term, known: dict[str, Figure], data: st.DataObject) -> None:
    """Any choice within the ranges of the figures gives a product within that of the term."""
    level = data.draw(st.sampled_from(LEVELS))
    chosen = {
        name: Figure.exactly(data.draw(st.floats(min_value=one.low[level], max_value=one.high[level])))
        for name, one in known.items()
    }
    low, high = term.ends(known, level)

    assert low * (1 - 1e-6) <= term.value(chosen) <= high * (1 + 1e-6)


@given(terms(), terms(), st.fixed_dictionaries({name: ranges() for name in NAMES}))
def test_products_multiply(one: Term, other: Term, known: dict[str, Figure]) -> None:
    assert one.times(other, -1.0).value(known) == pytest.approx(one.value(known) / other.value(known), rel=1e-6)


def test_the_formula_that_is_printed_is_what_is_computed() -> None:
    term = Term(6.0, {"params": 1.0, "tok_s": 1.0, "gpus": -1.0, "peak": -1.0})
    known = figures(params=7e9, tok_s=1200, gpus=8, peak=312e12)

    assert term.explain(known) == "6*params*tok_s/(gpus*peak) = 6*7e+09*1,200/(8*3.12e+14) = 0.02019"
    assert term.formula()(**{name: one.value for name, one in known.items()}) == pytest.approx(term.value(known))


def test_every_relation_says_what_holds_and_where_it_is_from() -> None:
    for relation in USUAL:
        assert relation.says
        assert relation.source
        assert relation.code[0] == "R"
