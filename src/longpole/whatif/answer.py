"""From a run's graph and its replay to what reports say of the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

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
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longpole.graph.path import Pieces
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.records.replay import Replay
    from longpole.settings import Settings
    from longpole.whatif.composition import Composition
    from longpole.whatif.predict import Ground
    from longpole.whatif.sentence import Labelled

_NOTHING: Final = "nothing recorded says what was waited for"
_WAITS: Final = {"confirmed": EdgeKind.EVENT_CONFIRMED, "untested": EdgeKind.EVENT_UNTESTED}


class Facts(NamedTuple):
    """What an answer tells of a run, joined or replayed rank by rank.

    Attributes:
        ranks: The ranks, by the places that the pieces name.
        units: Steady units that have a period.
        place: `[N]` int64: what the pieces call each of them.
        measured_ns: `[N]` int64 ns: their recorded periods.
        anchor: The rank that completes each of them last, the lowest where several do.
        observed: The observed path.
        judgement: How far the replay may be believed.
        constants: Lengths of edges that were set.
    """

    ranks: Sequence[Labelled]
    units: tuple[str, ...]
    place: NDArray[np.int64]
    measured_ns: NDArray[np.int64]
    anchor: list[int]
    observed: Pieces
    judgement: Replay
    constants: list[ConstantEntry]


def path_answer(ground: Ground, unit: str | None) -> PathAnswer:
    """Describe the observed path of a run.

    Args:
        ground: The run and its replay.
        unit: Name of the unit to show in full; the steady one with the longest period where None.
    """
    graph, replayed = ground.graph, ground.replayed
    window = replayed.window
    facts = Facts(
        ranks=graph.ranks,
        units=window.names,
        place=window.place,
        measured_ns=replayed.measured_ns,
        anchor=[_anchor(graph, place) for place in window.place.tolist()],
        observed=replayed.observed,
        judgement=replayed.judgement,
        constants=[entry for rank in graph.ranks for entry in constant_entries(rank)],
    )
    return answer_of(facts, unit, lambda: _near_critical(ground))


def constant_entries(rank: RankGraph) -> list[ConstantEntry]:
    """Return the lengths of edges that were set on one rank."""
    return [
        ConstantEntry(rank.rank, c.kind, _stream(rank.lane_names, c.lane), c.length_ns, c.samples, c.fitted)
        for c in rank.constants.values()
    ]


def answer_of(facts: Facts, unit: str | None, near_critical: Callable[[], list[NearCritical]]) -> PathAnswer:
    """Describe the observed path of a run.

    Args:
        facts: What is known of it.
        unit: Name of the unit to show in full; the steady one with the longest period where None.
        near_critical: Finds objects with their slack.
    """
    path = _path(facts, unit, near_critical)
    if isinstance(path, Unknown):
        return PathAnswer(ANSWER_VERSION, None, facts.judgement, path, facts.constants)
    return PathAnswer(ANSWER_VERSION, path, facts.judgement, None, facts.constants)


def _stream(lane_names: tuple[str, ...], lane: int) -> str:
    return lane_names[lane] if lane >= 0 else ""


def _path(facts: Facts, unit: str | None, near_critical: Callable[[], list[NearCritical]]) -> CriticalPath | Unknown:
    names = facts.units
    if unit is not None and unit not in names:
        return Unknown(f"{unit!r} is no steady unit with a period; there are {', '.join(names[:8])}", [])
    shown = names.index(unit) if unit is not None else int(facts.measured_ns.argmax())
    pieces = facts.observed
    mine = pieces.take(pieces.unit == facts.place[shown])
    listed = [_piece(facts.ranks, mine, row) for row in range(len(mine))]
    by_rank = {
        str(rank.rank): {
            name: int(pieces.dur_ns[(pieces.rank == place) & (pieces.object == code)].sum())
            for code, name in enumerate(OBJECTS)
        }
        for place, rank in enumerate(facts.ranks)
    }
    by_rank = {rank: {name: ns for name, ns in objects.items() if ns} for rank, objects in by_rank.items()}
    total_ns = max(int(pieces.dur_ns.sum()), 1)
    explained = pieces.kind != UNEXPLAINED
    grades = {
        name: float(pieces.dur_ns[explained & (pieces.grade == code)].sum() / total_ns)
        for code, name in enumerate(GRADES)
    }
    return CriticalPath(
        says=path_sentence(facts.ranks, mine, names[shown]),
        by_object_ns={
            name: int(pieces.dur_ns[pieces.object == code].sum())
            for code, name in enumerate(OBJECTS)
            if (pieces.object == code).any()
        },
        by_rank_ns={rank: sum(objects.values()) for rank, objects in by_rank.items() if objects},
        by_rank_object_ns={rank: objects for rank, objects in by_rank.items() if objects},
        ranks_visited=[facts.ranks[place].rank for place in np.unique(pieces.rank[pieces.rank >= 0]).tolist()],
        by_grade_share=grades | {"unexplained": float(pieces.dur_ns[~explained].sum() / total_ns)},
        waits_share={name: float(pieces.dur_ns[pieces.kind == kind].sum() / total_ns) for name, kind in _WAITS.items()},
        units=list(names),
        unit=names[shown],
        period_ns=int(facts.measured_ns[shown]),
        anchor_rank=facts.anchor[shown],
        pieces=listed,
        near_critical=near_critical(),
    )


def _near_critical(ground: Ground) -> list[NearCritical]:
    """Return the slack of objects, or why it was not sought."""
    if ground.replayed.why_refused:
        return []
    if len(ground.graph.edges) > ground.settings.slack_max_edges:
        return not_sought(ground.replayed.path, ground.settings)
    return [
        NearCritical(slack.object, _UNLIMITED if slack.slack_ns is None else slack.slack_ns)
        for slack in find_slack(ground)
    ]


def not_sought(path: Composition, settings: Settings) -> list[NearCritical]:
    """Return the objects that the replayed path leaves out, with the reason why their slack is not known.

    Args:
        path: What the replayed path is made of.
        settings: `slack_max_edges`.
    """
    limit = settings.slack_max_edges
    why = Unknown(f"slack is sought in graphs of up to {limit:,} edges (setting slack_max_edges)", [])
    on_path = path.by_object_ns()
    return [NearCritical(name, why) for code, name in enumerate(OBJECTS) if name != "unknown" and on_path[code] < 1]


_UNLIMITED: Final = Unknown("64 times as long would not be felt", [])


def _anchor(graph: RunGraph, place: int) -> int:
    """Return the rank that completes a unit last, the lowest where several do."""
    done_ns = graph.time_ns[graph.completion_of_rank[:, place]]
    return graph.ranks[int(done_ns.argmax())].rank


def _piece(ranks: Sequence[Labelled], pieces: Pieces, row: int) -> PathPiece:
    place, kind = int(pieces.rank[row]), int(pieces.kind[row])
    rank = ranks[place] if place >= 0 else None
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
