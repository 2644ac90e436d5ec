"""An editable copy of a graph: lengths, dropped edges, added points and edges."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.errors import InvariantError
from longpole.graph.kinds import EdgeKind
from longpole.graph.sweep import NEVER_NS
from tests.build import LOADER, Script
from tests.run_graphs import Run, replayed


def _run() -> Run:
    script = Script(base_ns=0)
    for step in range(3):
        at = 1000.0 * step
        script.step(step, at, at + 1000)
        script.span(LOADER, at + 10, at + 310)
        script.kernel(at + 410, at + 900, script.launch(at + 400, at + 405))
        script.sync(at + 420, at + 905)
    return replayed(script)


RUN = _run()


def _edges(kind: EdgeKind) -> np.ndarray:
    return np.flatnonzero(RUN.graph.edges.kind == kind)


def test_the_recorded_graph_is_never_altered() -> None:
    before = RUN.graph.edges.length_ns.tolist()
    draft = RUN.draft()

    draft.set_length(_edges(EdgeKind.DURATION), np.zeros(3, np.int64))
    draft.drop(_edges(EdgeKind.LAUNCH))
    draft.finish()

    assert RUN.graph.edges.length_ns.tolist() == before


def test_no_length_is_below_nothing() -> None:
    draft = RUN.draft()

    draft.set_length(_edges(EdgeKind.DURATION)[:1], np.array([-5]))

    assert draft.length_ns[_edges(EdgeKind.DURATION)[0]] == 0
    assert draft.touched.sum() == 1


def test_a_point_without_an_edge_left_starts_with_the_replay() -> None:
    """Never at its recorded time: else a graph that lost its edges would replay perfectly (DESIGN 3.7)."""
    draft = RUN.draft()
    starts = RUN.graph.edges.dst[_edges(EdgeKind.LAUNCH)]
    into = np.flatnonzero(np.isin(RUN.graph.edges.dst, starts))
    draft.drop(into)

    times = draft.finish().replay()

    assert (times[starts] == RUN.graph.time_ns.min()).all()
    assert (RUN.graph.time_ns[starts] > RUN.graph.time_ns.min()).all()


def test_points_and_edges_that_are_added_hold_others_up() -> None:
    draft = RUN.draft()
    last = int(RUN.graph.completion[-1])
    first = draft.add_point(0, 7_000_000)
    second = draft.add_point(0)
    draft.add_edge(EdgeKind.WORKER, first, second, 1000)
    draft.add_edge(EdgeKind.WORKER, second, last, 2000)

    changed = draft.finish()
    times = changed.replay()

    assert (first, second) == (RUN.graph.n_points, RUN.graph.n_points + 1)
    assert times[first] == 7_000_000
    assert times[second] == 7_001_000
    assert times[last] == 7_003_000
    assert changed.floor_ns[second] == NEVER_NS


def test_where_edges_came_from_is_known_after_sorting() -> None:
    draft = RUN.draft()
    draft.drop(_edges(EdgeKind.STREAM))
    point = draft.add_point(5)
    draft.add_edge(EdgeKind.WORKER, int(RUN.graph.completion[0]), point, 3)

    changed = draft.finish()
    kept = changed.origin >= 0

    assert (~kept).sum() == 1
    assert (changed.edges.src[kept] == RUN.graph.edges.src[changed.origin[kept]]).all()
    assert (changed.edges.dst[kept] == RUN.graph.edges.dst[changed.origin[kept]]).all()
    assert not np.isin(_edges(EdgeKind.STREAM), changed.origin).any()


def test_a_change_that_lets_something_wait_for_itself_is_an_error_of_ours() -> None:
    draft = RUN.draft()
    edge = _edges(EdgeKind.DURATION)[0]
    draft.add_edge(EdgeKind.WORKER, int(RUN.graph.edges.dst[edge]), int(RUN.graph.edges.src[edge]), 0)

    with pytest.raises(InvariantError, match="circle"):
        draft.finish()
