"""The call tree of a thread against one that is found by looking at every earlier span."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longpole.timeline.nesting import Nesting, inherit, nest, segment
from tests.examples import examples
from tests.oracle import Node, call_tree, innermost_at
from tests.strategies import call_trees

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pairs = list[tuple[int, int]]


def _nest(pairs: Pairs, by: int = 0) -> tuple[NDArray[np.int64], Nesting]:
    start = np.array([s + by for s, _ in pairs], np.int64)
    return start, nest(start, np.array([e + by for _, e in pairs], np.int64))


def _place(nodes: list[Node], node: Node | None) -> int:
    return next((place for place, other in enumerate(nodes) if other is node), -1)


@examples(150)
@given(call_trees())
def test_every_span_finds_the_innermost_one_that_it_starts_in(pairs: Pairs) -> None:
    """Also where spans overlap in part, however many of them in a row."""
    nodes = call_tree(pairs)

    _, nesting = _nest(pairs)

    assert nesting.parent.tolist() == [_place(nodes, node.parent) for node in nodes]
    assert nesting.end_ns.tolist() == [node.end for node in nodes]
    assert nesting.depth.tolist() == [len(node.upwards()) - 1 for node in nodes]


@given(call_trees(), st.sampled_from((-(10**6), 1_700_000_000_000_000_000)))
def test_a_call_tree_does_not_depend_on_when_it_was(pairs: Pairs, shift: int) -> None:
    _, here = _nest(pairs)
    _, there = _nest(pairs, shift)

    assert there.parent.tolist() == here.parent.tolist()
    assert there.depth.tolist() == here.depth.tolist()


@examples(150)
@given(call_trees())
def test_segments_name_the_innermost_span_of_every_instant(pairs: Pairs) -> None:
    nodes = call_tree(pairs)

    start, nesting = _nest(pairs)
    pieces = segment(start, nesting)

    assert (np.diff(pieces.start_ns) > 0).all()
    for time in range(-1, 22):
        piece = int(np.searchsorted(pieces.start_ns, time, side="right")) - 1
        named = int(pieces.span[piece]) if piece >= 0 else -1
        assert named == _place(nodes, innermost_at(nodes, time))


@given(call_trees(), st.data())
def test_values_are_inherited_from_the_nearest_span_that_has_one(pairs: Pairs, data: st.DataObject) -> None:
    own = data.draw(st.lists(st.integers(-1, 3), min_size=len(pairs), max_size=len(pairs)))
    nodes = call_tree(pairs)

    _, nesting = _nest(pairs)
    values = inherit(nesting, np.array(own, np.int32))

    expected = []
    for node in nodes:
        values_upwards = [own[_place(nodes, above)] for above in node.upwards()]
        expected.append(next((value for value in values_upwards if value >= 0), -1))
    assert values.tolist() == expected
