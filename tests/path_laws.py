"""The laws of a critical path (DESIGN 3.6), for whatever run a test has at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longpole.graph.kinds import GRADES, EdgeKind
from longpole.graph.path import UNEXPLAINED
from longpole.vocabulary.objects import OBJECTS, STAGES

if TYPE_CHECKING:
    from longpole.graph.path import Pieces
    from longpole.graph.run_graph import RunGraph
    from longpole.whatif.replay import Replayed


def check_path(graph: RunGraph, replayed: Replayed) -> None:
    """Check that the pieces of every steady unit touch, fill its period to the nanosecond and name what exists."""
    pieces, window = replayed.observed, replayed.window
    done_ns = graph.time_ns[graph.completion]
    assert sorted(set(pieces.unit.tolist())) == [
        u for u, p in zip(window.place, replayed.measured_ns, strict=True) if p
    ]
    for unit, before, begin_ns, period_ns in zip(
        window.place.tolist(), window.before.tolist(), window.begin_ns.tolist(), replayed.measured_ns, strict=True
    ):
        mine = pieces.take(pieces.unit == unit)
        from_ns = int(graph.time_ns[before]) if before >= 0 else begin_ns
        assert mine.dur_ns.sum() == period_ns == done_ns[unit] - from_ns
        if not period_ns:
            continue
        assert (mine.start_ns[0], mine.end_ns[-1]) == (from_ns, done_ns[unit])
        assert (mine.end_ns[:-1] == mine.start_ns[1:]).all()
        assert (mine.dur_ns > 0).all()
    _check_names(graph, pieces)


def _check_names(graph: RunGraph, pieces: Pieces) -> None:
    assert ((pieces.object >= 0) & (pieces.object < len(OBJECTS))).all()
    assert ((pieces.stage >= 0) & (pieces.stage < len(STAGES))).all()
    assert (pieces.grade < len(GRADES)).all()
    assert np.isin(pieces.kind, [*(int(kind) for kind in EdgeKind), UNEXPLAINED]).all()
    assert not (pieces.named & ~pieces.kept).any()
    for place in np.unique(pieces.rank[pieces.rank >= 0]).tolist():
        rank = graph.ranks[place]
        mine = pieces.take(pieces.rank == place)
        on_device = mine.lane >= rank.n_tracks
        assert (mine.name < len(rank.names)).all()
        assert (mine.lane < len(rank.lane_names)).all()
        assert (mine.row[on_device] >= 0).all()
        assert (mine.row[on_device] < len(rank.spans.point)).all()
        assert (mine.row[(mine.lane >= 0) & ~on_device] < len(rank.host.name)).all()
        runs = on_device & np.isin(mine.kind, (EdgeKind.DURATION, EdgeKind.TRANSFER, EdgeKind.MEMBER))
        assert (mine.name[runs] == rank.spans.name[mine.row[runs]]).all()
