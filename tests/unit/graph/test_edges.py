"""Edges as columns."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.errors import InvariantError
from longpole.graph.edges import Edges
from longpole.graph.kinds import CONSTANT_KINDS, CONTROL_GROUPS, EDGES, GRADES, EdgeKind


def _edges(*pairs: tuple[int, int]) -> Edges:
    return Edges.of(EdgeKind.STREAM, np.array([u for u, _ in pairs]), np.array([v for _, v in pairs]))


def test_an_edge_needs_two_points() -> None:
    with pytest.raises(InvariantError, match="STREAM has an end that is no point"):
        _edges((3, -1))


def test_edges_are_joined_in_order_and_chosen_by_place() -> None:
    joined = Edges.join([_edges((0, 1)), _edges(), _edges((2, 3), (4, 5))])

    assert joined.src.tolist() == [0, 2, 4]
    assert joined.take(np.array([2, 0])).dst.tolist() == [5, 1]
    assert len(Edges.join([])) == 0


def test_every_kind_has_its_grade_and_constants_have_defaults() -> None:
    assert set(EDGES) == set(EdgeKind)
    assert {spec.grade for spec in EDGES.values()} == set(GRADES)
    for kind in EdgeKind:
        assert (int(kind) in CONSTANT_KINDS) == (EDGES[kind].default_ns is not None)
        assert (EDGES[kind].fitted_with is None) == (EDGES[kind].default_ns is None)


def test_the_defaults_are_those_of_the_design() -> None:
    """DESIGN 3.7: launch 6, stream 1, return 8, wait 3 µs."""
    default_us = {kind: (spec.default_ns or 0) / 1000 for kind, spec in EDGES.items()}

    assert default_us[EdgeKind.LAUNCH] == 6
    assert default_us[EdgeKind.STREAM] == 1
    assert default_us[EdgeKind.RETURN] == default_us[EdgeKind.RETURN_RECORDED] == 8
    assert default_us[EdgeKind.EVENT_RECORDED] == default_us[EdgeKind.EVENT_UNTESTED] == 3


def test_no_kind_is_deleted_with_two_others() -> None:
    kinds = [kind for group in CONTROL_GROUPS.values() for kind in group]

    assert len(kinds) == len(set(kinds))
