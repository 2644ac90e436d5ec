"""From the digests and graphs of one run to its joined graph and its replay."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from longpole.advice.diagnose import diagnose
from longpole.advice.propose import candidates_of
from longpole.advice.scene import Scene, Tables
from longpole.digest.across import bring_together
from longpole.digest.jobs import choose_run
from longpole.digest.steady import find_steady
from longpole.digest.transfer_costs import TransferCosts, transfer_costs
from longpole.graph.run_graph import Meeting, join_ranks
from longpole.pipeline.collective_record import with_models
from longpole.pipeline.parts import CannotFollowError, loader_of, read_rank, replay_large, too_large
from longpole.pipeline.reading import choose_ranks, graph_folder, read_digests
from longpole.records.critical_path import ANSWER_VERSION, PathAnswer
from longpole.records.ledger import Unknown
from longpole.report.cross_rank import cross_rank
from longpole.settings import read_settings
from longpole.vocabulary.matcher import Vocabulary
from longpole.whatif.answer import path_answer
from longpole.whatif.in_parts import Source
from longpole.whatif.parts_replay import PartsReplay, answer_parts
from longpole.whatif.predict import Ground
from longpole.whatif.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from longpole.digest.across import Across
    from longpole.digest.jobs import Run
    from longpole.digest.rank_digest import RankDigest
    from longpole.digest.steady import Steady
    from longpole.graph.run_graph import RunGraph
    from longpole.pipeline.reading import ReportOptions
    from longpole.records.findings import CandidateEntry, CauseFinding
    from longpole.records.instances import Instances
    from longpole.settings import Settings
    from longpole.timeline.integrity import Finding
    from longpole.whatif.replay import Replayed


@dataclass(frozen=True, slots=True)
class RunReplay:
    """A run with its graph.

    Attributes:
        run: Its digests.
        refused: Findings about files that could not be used.
        steady: Its units.
        across: Its collectives, None where a rank is alone and holds none.
        graph: Its graph, or why there is none.
        replayed: The unchanged replay, or why there is none.
        settings: Thresholds.
        parts: The unchanged replay of a run whose graphs are too large to be joined; None where they are not.
    """

    run: Run
    refused: list[Finding]
    steady: Steady
    across: Across | None
    graph: RunGraph | Unknown
    replayed: Replayed | Unknown
    settings: Settings
    parts: PartsReplay | None = None


def replay_run(
    paths: Sequence[str], options: ReportOptions, progress: Callable[[str, int, int], None] | None = None
) -> RunReplay:
    """Read a run, join the graphs of its ranks, and replay it unchanged.

    Args:
        paths: Files, folders and patterns; together they are one run.
        options: What to read, and how.
        progress: Hears (what is being read, bytes done, bytes in all) now and then.

    Raises:
        UsageError: A path, an option or the choice of a run is wrong.
        InputError: No file could be used.
    """
    settings = read_settings(options.settings)
    with ExitStack() as held:
        folder = graph_folder(options, held)
        digests, refused = read_digests(paths, options, settings, progress, folder, graphs_needed=True)
        run = choose_run(choose_ranks(digests, options), options.job, settings)
        run, findings = with_models(run, options)
        replayed = _replay_digests(run, [*refused, *findings], folder, settings)
        if replayed.parts is not None:
            weakref.finalize(replayed.parts, held.pop_all().close)  # changes are made to the graphs on disk
        return replayed


def _replay_digests(run: Run, refused: list[Finding], folder: Path, settings: Settings) -> RunReplay:
    """Bring the ranks together, join their graphs, and replay the run unchanged."""
    across = bring_together(run.digests, settings, run.recorded)
    steady = find_steady(run.digests, settings, across.clocks if across is not None else None)
    large = too_large(run.digests, folder, settings)
    if large is not None:
        found = _replay_large(run, across, steady, folder, settings)
        if isinstance(found, Unknown):
            return RunReplay(run, refused, steady, across, found, found, settings)
        return RunReplay(run, refused, steady, across, large, large, settings, found)
    graph = join_run(run.digests, steady, across, folder)
    replayed = graph if isinstance(graph, Unknown) else replay(graph, list(steady.periods), settings)
    return RunReplay(run, refused, steady, across, graph, replayed, settings)


def _replay_large(
    run: Run, across: Across | None, steady: Steady, folder: Path, settings: Settings
) -> PartsReplay | Unknown:
    """Replay a run rank by rank, whose graphs are too large to be joined."""
    why = _not_followed(run.digests, steady)
    if why is not None:
        return why
    instances, cost = _priced(run, across, settings)
    source = Source(
        ranks=tuple(sorted(digest.rank for digest in run.digests)),
        load=loader_of(run.digests, folder),
        clocks=_clocks(run.digests, steady),
        meeting=_meeting(across),
        instances=instances,
        cost=cost,
        settings=settings,
    )
    return replay_large(source, list(steady.periods))


def answer_run(run: Run, folder: Path, settings: Settings, unit: str | None, rules: Path | None = None) -> PathAnswer:
    """Return what a run's graph says of its critical path, and what holds the run up.

    Args:
        run: The digests, by rank.
        folder: Where their graphs are.
        settings: Thresholds.
        unit: Name of the unit to show in full; the one with the longest period where None.
        rules: The user's own naming rules.
    """
    replayed = _replay_digests(run, [], folder, settings)
    scene = scene_of(replayed, rules)
    if replayed.parts is not None:
        answer = answer_parts(replayed.parts, unit)
    elif scene.ground is None:
        why = replayed.graph if isinstance(replayed.graph, Unknown) else replayed.replayed
        answer = PathAnswer(ANSWER_VERSION, why_not=why if isinstance(why, Unknown) else None)
    else:
        answer = path_answer(scene.ground, unit)
    found = diagnose(scene)
    return msgspec.structs.replace(
        answer,
        findings=found.findings,
        long_pole=found.long_pole,
        why_no_pole=found.why_none,
        candidates=None if replayed.parts else _candidates(scene, found.findings, _no_ground(replayed)),
    )


def _no_ground(run: RunReplay) -> Unknown | None:
    """Return why there is no joined graph with a replay, None where there is."""
    return next((part for part in (run.graph, run.replayed) if isinstance(part, Unknown)), None)


def _candidates(scene: Scene, findings: list[CauseFinding], why_not: Unknown | None) -> list[CandidateEntry] | None:
    """Return the changes worth trying, None where the graph is too large to replay each of them for a report."""
    if scene.graph is not None and len(scene.graph.edges) > scene.settings.candidates_max_edges:
        return None
    paths = list(dict.fromkeys(digest.path for digest in scene.digests))
    return candidates_of(scene, findings, why_not or Unknown("there is no replay", []), paths)


def scene_of(run: RunReplay, rules: Path | None = None) -> Scene:
    """Return what rules look at.

    Args:
        run: The run with its graph and replay, or why there are none.
        rules: The user's own naming rules.
    """
    ground = None
    if not isinstance(run.graph, Unknown) and not isinstance(run.replayed, Unknown):
        ground = ground_of(run.run, run.across, run.graph, run.replayed, run.settings)
    together = cross_rank(run.run.digests, run.across, replace(run.steady), run.settings)
    tables = Tables(together.collectives, together.stragglers, together.links, together.pipeline, together.overlap)
    vocabulary = Vocabulary.load(rules)
    return Scene(run.run.digests, run.steady, run.across, tables, ground, run.settings, vocabulary)


def ground_of(run: Run, across: Across | None, graph: RunGraph, replayed: Replayed, settings: Settings) -> Ground:
    """Return what predictions of a run stand on.

    Args:
        run: Its digests.
        across: Its collectives.
        graph: Its graph.
        replayed: The unchanged replay.
        settings: Thresholds.
    """
    instances, cost = _priced(run, across, settings)
    return Ground(graph, replayed, instances, cost, settings)


def _priced(run: Run, across: Across | None, settings: Settings) -> tuple[Mapping[int, Instances], TransferCosts]:
    """Return the ranks' collectives, and what those of other sizes would take."""
    instances = across.instances if across is not None else {d.rank: d.instances for d in run.digests}
    return instances, transfer_costs(across, {d.rank: d.rows[0].device_name for d in run.digests}, settings)


def join_run(digests: list[RankDigest], steady: Steady, across: Across | None, folder: Path) -> RunGraph | Unknown:
    """Join the graphs of a run's ranks, or say why they cannot be.

    Args:
        digests: The ranks.
        steady: Their units, with their clocks.
        across: Their collectives.
        folder: Where the graphs are.
    """
    why = _not_followed(digests, steady)
    if why is not None:
        return why
    try:
        graphs = [read_rank(digest, folder) for digest in digests]
    except CannotFollowError as error:
        return error.why
    return join_ranks(graphs, _clocks(digests, steady), _meeting(across))


def _not_followed(digests: list[RankDigest], steady: Steady) -> Unknown | None:
    """Return why nothing can be followed through a run, whatever its graphs are; None where it can."""
    if not steady.aligned:
        return Unknown(
            "the ranks' clocks have no common base, so nothing can be followed from one rank to another",
            ["base times, or collectives of all ranks"],
        )
    withheld = [digest for digest in digests if digest.withheld]
    if withheld:
        return Unknown(f"rank {withheld[0].rank}: {withheld[0].withheld}", ["a complete record of the devices"])
    return None


def _clocks(digests: list[RankDigest], steady: Steady) -> dict[int, tuple[int, float, int]]:
    """Return rank -> (offset, drift, reference), as in `join_ranks`."""
    clocks = {rank: (clock.offset_ns, clock.drift, clock.reference_ns) for rank, clock in steady.clocks.items()}
    for digest in digests:
        clocks.setdefault(digest.rank, (steady.offset_ns[digest.rank], 0.0, 0))
    return clocks


def _meeting(across: Across | None) -> Meeting:
    if across is None:
        none = np.empty(0, np.int32)
        return Meeting(np.zeros(1, np.int64), none, none, np.empty(0, np.uint8))
    matched = across.matched
    return Meeting(matched.first, matched.rank, matched.instance, across.split.how)
