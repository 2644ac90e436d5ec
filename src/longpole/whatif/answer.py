"""From a run's graph and its replay to what reports say of the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from longpole.graph.kinds import EDGES, GRADES, EdgeKind
from longpole.graph.path import UNEXPLAINED
from longpole.records.critical_path import (
    ANSWER_VERSION,
    ConstantEntry,
    CriticalPath,
    NearCritical,
    PathAnswer,
    PathPiece,
)
from longpole.records.ledger import Unknown
from longpole.vocabulary.objects import OBJECTS
from longpole.whatif.sentence import path_sentence
from longpole.whatif.slack import find_slack

if TYPE_CHECKING:
    from longpole.graph.path import Pieces
    from longpole.graph.run_graph import RunGraph
    from longpole.whatif.predict import Ground
    from longpole.whatif.replay import Replayed

_NOTHING: Final = "nothing recorded says what was waited for"
_WAITS: Final = {"confirmed": EdgeKind.EVENT_CONFIRMED, "untested": EdgeKind.EVENT_UNTESTED}


def path_answer(ground: Ground, unit: str | None) -> PathAnswer:
    """Describe the observed path of a run.

    Args:
        ground: The run and its replay.
        unit: Name of the unit to show in full; the steady one with the longest period where None.
    """
    graph, replayed = ground.graph, ground.replayed
    constants = [
        ConstantEntry(rank.rank, c.kind, _stream(rank.lane_names, c.lane), c.length_ns, c.samples, c.fitted)
        for rank in graph.ranks
        for c in rank.constants.values()
    ]
    path = _path(ground, unit)
    if isinstance(path, Unknown):
        return PathAnswer(ANSWER_VERSION, None, replayed.judgement, path, constants)
    return PathAnswer(ANSWER_VERSION, path, replayed.judgement, None, constants)


def _stream(lane_names: tuple[str, ...], lane: int) -> str:
    return lane_names[lane] if lane >= 0 else ""


def _path(ground: Ground, unit: str | None) -> CriticalPath | Unknown:
    graph, replayed = ground.graph, ground.replayed
    names = replayed.window.names
    if unit is not None and unit not in names:
        return Unknown(f"{unit!r} is no steady unit with a period; there are {', '.join(names[:8])}", [])
    shown = names.index(unit) if unit is not None else int(replayed.measured_ns.argmax())
    pieces = replayed.observed
    mine = pieces.take(pieces.unit == replayed.window.place[shown])
    listed = [_piece(graph, mine, row) for row in range(len(mine))]
    by_rank = {
        str(rank.rank): {
            name: int(pieces.dur_ns[(pieces.rank == place) & (pieces.object == code)].sum())
            for code, name in enumerate(OBJECTS)
        }
        for place, rank in enumerate(graph.ranks)
    }
    by_rank = {rank: {name: ns for name, ns in objects.items() if ns} for rank, objects in by_rank.items()}
    total_ns = max(int(pieces.dur_ns.sum()), 1)
    explained = pieces.kind != UNEXPLAINED
    grades = {
        name: float(pieces.dur_ns[explained & (pieces.grade == code)].sum() / total_ns)
        for code, name in enumerate(GRADES)
    }
    return CriticalPath(
        says=path_sentence(graph, mine, names[shown]),
        by_object_ns={
            name: int(pieces.dur_ns[pieces.object == code].sum())
            for code, name in enumerate(OBJECTS)
            if (pieces.object == code).any()
        },
        by_rank_ns={rank: sum(objects.values()) for rank, objects in by_rank.items() if objects},
        by_rank_object_ns={rank: objects for rank, objects in by_rank.items() if objects},
        ranks_visited=[graph.ranks[place].rank for place in np.unique(pieces.rank[pieces.rank >= 0]).tolist()],
        by_grade_share=grades | {"unexplained": float(pieces.dur_ns[~explained].sum() / total_ns)},
        waits_share={name: float(pieces.dur_ns[pieces.kind == kind].sum() / total_ns) for name, kind in _WAITS.items()},
        units=list(names),
        unit=names[shown],
        period_ns=int(replayed.measured_ns[shown]),
        anchor_rank=_anchor(graph, replayed, shown),
        pieces=listed,
        near_critical=_near_critical(ground),
    )


def _near_critical(ground: Ground) -> list[NearCritical]:
    """Return the slack of objects, or why it was not sought."""
    if ground.replayed.why_refused:
        return []
    limit = ground.settings.slack_max_edges
    if len(ground.graph.edges) > limit:
        why = Unknown(f"slack is sought in graphs of up to {limit:,} edges (setting slack_max_edges)", [])
        on_path = ground.replayed.path.by_object_ns()
        return [NearCritical(name, why) for code, name in enumerate(OBJECTS) if name != "unknown" and on_path[code] < 1]
    return [
        NearCritical(slack.object, _UNLIMITED if slack.slack_ns is None else slack.slack_ns)
        for slack in find_slack(ground)
    ]


_UNLIMITED: Final = Unknown("64 times as long would not be felt", [])


def _anchor(graph: RunGraph, replayed: Replayed, shown: int) -> int:
    """Return the rank that completes a unit last, the lowest where several do."""
    place = int(replayed.window.place[shown])
    done_ns = graph.time_ns[graph.completion_of_rank[:, place]]
    return graph.ranks[int(done_ns.argmax())].rank


def _piece(graph: RunGraph, pieces: Pieces, row: int) -> PathPiece:
    place, kind = int(pieces.rank[row]), int(pieces.kind[row])
    rank = graph.ranks[place] if place >= 0 else None
    lane, name = int(pieces.lane[row]), int(pieces.name[row])
    return PathPiece(
        rank=rank.rank if rank is not None else None,
        track=rank.lane_names[lane] if rank is not None and lane >= 0 else "",
        name=rank.names[name] if rank is not None and name >= 0 else "",
        object=OBJECTS[int(pieces.object[row])],
        start_ns=int(pieces.start_ns[row]),
        dur_ns=int(pieces.end_ns[row] - pieces.start_ns[row]),
        grade=GRADES[int(pieces.grade[row])],
        reason=_NOTHING if kind == UNEXPLAINED else EDGES[EdgeKind(kind)].reason,
    )
