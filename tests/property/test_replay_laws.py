"""Laws of the replay (DESIGN 3.7), on records drawn at random."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from longpole.graph.kinds import EdgeKind
from longpole.graph.walk import walk_back
from tests.examples import examples
from tests.graph_strategies import jobs, teams
from tests.run_graphs import Run, graph_of, replayed

if TYPE_CHECKING:
    from longpole.whatif.draft import Draft
    from tests.build import Script

NODES = (EdgeKind.SECTION, EdgeKind.FLOOR, EdgeKind.DURATION, EdgeKind.TRANSFER)


def _nodes(run: Run) -> np.ndarray:
    return np.flatnonzero(np.isin(run.graph.edges.kind, NODES) & (run.graph.edges.length_ns > 0))


def _with_length(run: Run, edges: np.ndarray, length_ns: np.ndarray) -> np.ndarray:
    draft = run.draft()
    draft.set_length(edges, length_ns)
    return draft.finish().replay()


@examples(20)
@given(jobs(), st.data())
def test_shortening_any_node_never_lengthens_the_replay(script: Script, data: st.DataObject) -> None:
    run = replayed(script)
    nodes = _nodes(run)
    chosen = nodes[data.draw(st.lists(st.integers(0, len(nodes) - 1), min_size=1, max_size=8))]
    factor = data.draw(st.floats(0, 1))

    shorter = _with_length(run, chosen, (run.graph.edges.length_ns[chosen] * factor).astype(np.int64))

    assert (shorter <= run.replayed.time_ns).all()


@examples(15)
@given(teams(), st.data())
def test_shortening_any_node_of_a_team_never_lengthens_the_replay(team: list[Script], data: st.DataObject) -> None:
    run = replayed(*team)
    nodes = _nodes(run)
    chosen = nodes[data.draw(st.lists(st.integers(0, len(nodes) - 1), min_size=1, max_size=8))]

    shorter = _with_length(run, chosen, run.graph.edges.length_ns[chosen] // 2)

    assert (shorter <= run.replayed.time_ns).all()


@examples(15)
@given(teams())
def test_halving_what_is_not_on_the_path_shortens_nothing(team: list[Script]) -> None:
    run = replayed(*team)
    last, time_ns = int(run.graph.completion[-1]), run.replayed.time_ns
    walked = set(walk_back(run.graph.n_points, run.graph.edges, time_ns, [(0, last, int(time_ns.min()))]).edge.tolist())
    off_path = np.array([e for e in _nodes(run).tolist() if e not in walked], np.intp)

    shorter = _with_length(run, off_path, run.graph.edges.length_ns[off_path] // 2)

    assert shorter[last] == time_ns[last]


@examples(10)
@given(teams())
def test_a_hidden_transfer_doubled_until_it_shows_lengthens_the_replay(team: list[Script]) -> None:
    run = replayed(*team)
    edges = run.graph.edges
    transfer = np.flatnonzero((edges.kind == EdgeKind.TRANSFER) & (edges.length_ns > 0))[:1]
    assume(len(transfer))
    last = int(run.graph.completion[-1])
    times = [
        int(_with_length(run, transfer, edges.length_ns[transfer] * 2**doublings)[last]) for doublings in range(24)
    ]

    assert times == sorted(times)
    assert times[-1] > times[0] == run.replayed.time_ns[last]


@examples(15)
@given(jobs())
def test_a_draft_without_changes_replays_the_same(script: Script) -> None:
    run = replayed(script)

    assert run.draft().finish().replay().tolist() == run.replayed.time_ns.tolist()


@examples(15)
@given(jobs(), st.integers(-(10**12), 10**15))
def test_the_clock_that_is_shown_changes_nothing(script: Script, by_ns: int) -> None:
    run, other = replayed(script), replayed(script.shifted(by_ns))

    assert other.replayed.replayed_ns.tolist() == run.replayed.replayed_ns.tolist()
    assert other.path.dur_ns.tolist() == run.path.dur_ns.tolist()
    assert other.path.kind.tolist() == run.path.kind.tolist()


@examples(10)
@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_in_which_rows_are_written_changes_nothing(script: Script, random: object) -> None:
    order: dict[int, float] = {}
    other = script.permuted(lambda place: order.setdefault(place, random.random()))  # type: ignore[attr-defined]

    assert replayed(other).replayed.replayed_ns.tolist() == replayed(script).replayed.replayed_ns.tolist()


@examples(15)
@given(jobs())
def test_kept_lengths_are_those_of_the_record_and_no_edge_goes_back_in_time(script: Script) -> None:
    graph = graph_of(script)
    edges = graph.edges
    lag_ns = graph.time_ns[edges.dst] - graph.time_ns[edges.src]

    kept = np.isin(edges.kind, (EdgeKind.SECTION, EdgeKind.DURATION))
    assert edges.length_ns[kept].tolist() == lag_ns[kept].tolist()
    floors = edges.kind == EdgeKind.FLOOR
    assert (edges.length_ns[floors] <= lag_ns[floors]).all()
    assert (lag_ns >= -10_000).all()


@examples(15)
@given(jobs(), st.sampled_from(("input", "compute", "host")), st.floats(0, 1))
def test_less_of_an_object_is_never_slower_than_more_of_it(script: Script, name: str, factor: float) -> None:
    run = replayed(script)
    last = run.graph.completion

    def with_factor(share: float) -> np.ndarray:
        from longpole.whatif.apply import apply
        from longpole.whatif.change import Scale
        from longpole.whatif.selector import Selector

        draft: Draft = run.draft()
        apply(draft, Scale(Selector(object=name), share))
        return draft.finish().replay()[last]

    assert (with_factor(0) <= with_factor(factor)).all()
    assert (with_factor(factor) <= run.replayed.time_ns[last]).all()


@examples(10)
@given(teams())
def test_the_replay_of_a_team_on_clocks_that_are_known_is_the_same(team: list[Script]) -> None:
    run = replayed(*team)
    # Rank 1 counts from another base; base times say by how much.
    first, second = team
    shifted = second.shifted(5_000_000)
    assume(shifted.base_ns == -5_000_000)
    other = replayed(replace(first, base_ns=10_000_000), replace(shifted, base_ns=5_000_000))

    assert other.replayed.replayed_ns.tolist() == run.replayed.replayed_ns.tolist()
