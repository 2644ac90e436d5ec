"""What `replay` and `predict` say of a run, rank by rank: the same figures, with one rank's graph at a time.

recorded ─► its path ──────┐
replay   ─► its path ──────┴► how far it may be believed
changes  ─► their path ─────► prediction
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from longpole.graph.kinds import EdgeKind
from longpole.graph.merge import finish
from longpole.records.ledger import Unknown
from longpole.whatif.answer import Facts, answer_of, constant_entries, not_sought
from longpole.whatif.in_parts import ACROSS_RANKS, predict_in_parts, reaches_in_parts, replay_in_parts
from longpole.whatif.path_in_parts import observed_in_parts, replayed_in_parts
from longpole.whatif.predict import Outcome, effect_of, told, why_too_small, why_unreached
from longpole.whatif.replay import judge, judged_error, median_ns, without_effect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from longpole.graph.merge import Finished
    from longpole.graph.path import Pieces
    from longpole.graph.rank_graph import RankGraph
    from longpole.records.critical_path import ConstantEntry, PathAnswer
    from longpole.records.replay import Replay
    from longpole.whatif.change import Change
    from longpole.whatif.composition import Composition
    from longpole.whatif.draft import Draft
    from longpole.whatif.in_parts import Recorded, Source
    from longpole.whatif.predict import Effect, Prediction

    Ints: TypeAlias = NDArray[np.int64]
    Changes: TypeAlias = Sequence[Change | Callable[[Draft], None]]


NOT_JOINED: Final = (
    "a change that looks at several ranks at once needs their graphs joined, and these are too large (setting"
    " join_max_bytes)"
)


class Labels(NamedTuple):
    """What the codes of one rank stand for; empty for ranks that the path does not visit."""

    rank: int
    names: tuple[str, ...]
    lane_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PartsReplay:
    """The unchanged replay of a run whose graphs are not joined.

    Attributes:
        source: Where its ranks come from.
        recorded: Their contracted graphs, merged.
        names: Steady units that have a period.
        measured_ns: `[N]` int64 ns: recorded periods.
        replayed_ns: `[N]` int64 ns: replayed periods.
        observed: The observed path; its ranks are places in `source.ranks`.
        path: What the replayed path is made of, likewise.
        labels: What codes of the observed path stand for, by place.
        constants: Lengths of edges that were set.
        judgement: How far the replay may be believed.
        why_refused: Empty where it is not.
    """

    source: Source
    recorded: Recorded
    names: tuple[str, ...]
    measured_ns: Ints
    replayed_ns: Ints
    observed: Pieces
    path: Composition
    labels: list[Labels]
    constants: list[ConstantEntry]
    judgement: Replay
    why_refused: str

    @property
    def error_ns(self) -> int:
        """Return by how much the median replayed period misses the median measured one, without sign."""
        return abs(median_ns(self.replayed_ns) - median_ns(self.measured_ns))

    def effect(self, changes: Changes) -> Effect:
        """Make changes rank by rank, replay, and return what becomes of the periods, as `measure_effect` does."""
        if any(isinstance(change, ACROSS_RANKS) for change in changes):
            return effect_of(self.replayed_ns, self.replayed_ns, self.why_refused or NOT_JOINED)
        found = predict_in_parts(self.source, self.recorded, changes)
        refused = why_unreached(self.why_refused, found.refusals, found.rows)
        return effect_of(self.replayed_ns, found.finished.periods_ns(self.names)[1], refused)


def replay_parts(source: Source, steady: Sequence[str]) -> PartsReplay | Unknown:
    """Replay a run rank by rank, and compare it with what was recorded.

    Args:
        source: The run.
        steady: Names of its steady units.

    Returns:
        The replay, or why there is none.
    """
    seen = _Seen()
    recorded = replay_in_parts(replace(source, load=seen.noting(source.load)))
    names = tuple(name for name in steady if name in recorded.finished.units)
    if not names:
        return Unknown("no steady unit has a period", ["two units of work that all ranks recorded"])
    if recorded.finished.units.index(names[0]) == 0:
        return Unknown(
            "the run is a single unit, too large to be joined (setting join_max_bytes); rank by rank only runs of"
            " several units are replayed",
            ["a second unit"],
        )
    measured_ns, replayed_ns = recorded.finished.periods_ns(names)
    labels = {}

    def named(rank: int) -> RankGraph:
        graph = source.load(rank)
        labels[rank] = Labels(rank, graph.names, graph.lane_names)
        return graph

    observed = observed_in_parts(replace(source, load=named), recorded, names)
    observed = replace(observed, rank=_places(source, observed.rank))
    path = _composition(source, recorded, recorded.finished, [], names)
    judgement, why = judge(measured_ns, replayed_ns, observed, path, seen.orphans, source.settings)
    without = without_effect(
        observed, abs(judged_error(measured_ns, replayed_ns)), _Control(source, recorded, names, measured_ns).error
    )
    return PartsReplay(
        source=source,
        recorded=recorded,
        names=names,
        measured_ns=measured_ns,
        replayed_ns=replayed_ns,
        observed=observed,
        path=path,
        labels=[labels.get(rank, Labels(rank, (), ())) for rank in source.ranks],
        constants=[entry for rank in source.ranks for entry in seen.constants[rank]],
        judgement=msgspec.structs.replace(judgement, without_effect=without),
        why_refused=why,
    )


class _Seen:
    """What is kept of each rank's full graph when it is loaded first."""

    def __init__(self) -> None:
        self.orphans = 0
        self.constants: dict[int, list[ConstantEntry]] = {}

    def noting(self, load: Callable[[int], RankGraph]) -> Callable[[int], RankGraph]:
        """Return a function that loads a rank and notes what is kept of it."""

        def noted(rank: int) -> RankGraph:
            graph = load(rank)
            self.orphans += graph.orphans
            self.constants[rank] = constant_entries(graph)
            return graph

        return noted


class _Control(NamedTuple):
    """The control law, rank by rank (DESIGN 3.7)."""

    source: Source
    recorded: Recorded
    names: tuple[str, ...]
    measured_ns: Ints

    def error(self, kinds: tuple[EdgeKind, ...]) -> float:
        """Return the error of the median period once all edges of some kinds are deleted."""
        recorded = self.recorded
        if EdgeKind.ARRIVAL in kinds:
            finished = finish(recorded.merged, recorded.members, recorded.transfer_ns, waited_for=False)
        else:

            def without(draft: Draft) -> None:
                draft.drop(np.flatnonzero(np.isin(draft.graph.edges.kind, kinds)))

            finished = predict_in_parts(self.source, recorded, [without]).finished
        return abs(judged_error(self.measured_ns, finished.periods_ns(self.names)[1]))


def predict_parts(run: PartsReplay, changes: Changes) -> Prediction:
    """Make changes rank by rank, replay, and compare with the unchanged replay, as `predict` does.

    A change that looks at several ranks at once is refused, and has no rows.

    Args:
        run: The run and its replay.
        changes: Made in order and replayed together.
    """
    if any(isinstance(change, ACROSS_RANKS) for change in changes):
        outcome = Outcome(run.replayed_ns, run.replayed_ns, [], run.why_refused or NOT_JOINED)
        return told(outcome, run.path, run.path, run.source.ranks, None)
    found = predict_in_parts(run.source, run.recorded, changes)
    periods_ns = found.finished.periods_ns(run.names)[1]
    refused = why_unreached(run.why_refused, found.refusals, found.rows) or why_too_small(
        run.replayed_ns, periods_ns, run.error_ns, lambda: reaches_in_parts(run.source, run.recorded, changes)
    )
    return told(
        Outcome(run.replayed_ns, periods_ns, found.rows, refused),
        run.path,
        _composition(run.source, run.recorded, found.finished, changes, run.names),
        run.source.ranks,
        found.overlapping_ns / found.altered_ns if found.altered_ns else None,
    )


def answer_parts(run: PartsReplay, unit: str | None) -> PathAnswer:
    """Describe the observed path of a run.

    Args:
        run: The run and its replay.
        unit: Name of the unit to show in full; the steady one with the longest period where None.
    """
    place = np.array([run.recorded.finished.units.index(name) for name in run.names], np.int64)
    facts = Facts(
        ranks=run.labels,
        units=run.names,
        place=place,
        measured_ns=run.measured_ns,
        anchor=[_anchor(run, name) for name in run.names],
        observed=run.observed,
        judgement=run.judgement,
        constants=run.constants,
    )
    near = [] if run.why_refused else not_sought(run.path, run.source.settings)
    return answer_of(facts, unit, lambda: near)


def _anchor(run: PartsReplay, unit: str) -> int:
    parts = run.recorded.merged.parts
    done_ns = [int(part.time_ns[part.completion[part.units.index(unit)]]) for part in parts]
    return parts[int(np.argmax(done_ns))].rank


def _places(source: Source, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the places of ranks in `source.ranks`, -1 for none."""
    place = np.searchsorted(np.array(source.ranks), ranks)
    return np.where(ranks >= 0, place, -1).astype(np.int32)


def _composition(
    source: Source, recorded: Recorded, finished: Finished, changes: Changes, names: tuple[str, ...]
) -> Composition:
    """Return what the path of a replay is made of; its ranks are places in `source.ranks`."""
    found = replayed_in_parts(source, recorded, finished, changes, names)
    return replace(found, rank=_places(source, found.rank))
