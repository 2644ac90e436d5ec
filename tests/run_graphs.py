"""Graphs and replays of scripts: what `longpole whatif` makes of traces, made of a few spans."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longpole.digest.across import bring_together
from longpole.digest.digest import Selection, digest_with_graph
from longpole.digest.steady import find_steady
from longpole.digest.transfer_costs import transfer_costs
from longpole.graph.kinds import EdgeKind
from longpole.graph.store import write_graph
from longpole.pipeline.replays import join_run
from longpole.records.ledger import Unknown
from longpole.settings import Settings
from longpole.whatif.change import parse_change
from longpole.whatif.draft import Draft
from longpole.whatif.predict import Ground, Prediction, predict
from longpole.whatif.replay import Replayed, replay
from tests.build import VOCABULARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.digest.across import Across
    from longpole.digest.rank_digest import RankDigest
    from longpole.graph.path import Pieces
    from longpole.graph.rank_graph import RankGraph
    from longpole.graph.run_graph import RunGraph
    from longpole.records.instances import Instances
    from longpole.whatif.change import Change
    from tests.build import Script


@dataclass(frozen=True, slots=True)
class Run:
    """A run of scripts, one a rank, with its graph and its unchanged replay."""

    digests: list[RankDigest]
    across: Across | None
    graph: RunGraph
    replayed: Replayed
    settings: Settings

    @property
    def instances(self) -> dict[int, Instances]:
        """Return the collectives by rank."""
        if self.across is not None:
            return dict(self.across.instances)
        return {digest.rank: digest.instances for digest in self.digests}

    def draft(self) -> Draft:
        """Return an editable copy of the graph."""
        return Draft.of(self.graph, self.instances, self._cost(), self.settings)

    def _cost(self) -> Callable[[int, int], int | None]:
        return transfer_costs(self.across, {d.rank: d.rows[0].device_name for d in self.digests}, self.settings)

    def predict(self, *changes: str | Change | Callable[[Draft], None]) -> Prediction:
        """Predict what the changes bring; texts are written as on a command line."""
        made = [parse_change(change) if isinstance(change, str) else change for change in changes]
        ground = Ground(self.graph, self.replayed, self.instances, self._cost(), self.settings)
        return predict(ground, made)

    def saving_us(self, *changes: str | Change | Callable[[Draft], None]) -> float:
        """Return by how much the changes shorten the median period; a refusal is an error."""
        found = self.predict(*changes)
        assert found.refused == ""
        return (self.replayed_us - found.predicted_ns / 1000) or 0.0

    @property
    def replayed_us(self) -> float:
        """Return the median replayed period."""
        from longpole.whatif.replay import median_ns

        return median_ns(self.replayed.replayed_ns) / 1000

    @property
    def path(self) -> Pieces:
        """Return the observed path of all steady units."""
        return self.replayed.observed


def graph_of(script: Script, settings: Settings | None = None) -> RankGraph:
    """Return the graph of one rank."""
    return digest_with_graph(script.timeline(), VOCABULARY, settings or Settings(), Selection())[1]


def joined(*scripts: Script, settings: Settings | None = None) -> RunGraph | Unknown:
    """Return the graph of a run of scripts, or why there is none."""
    return _join(scripts, settings or Settings())[2]


def replayed(*scripts: Script, settings: Settings | None = None) -> Run:
    """Replay a run of scripts; where there is no replay, the test is wrong."""
    found = attempted(*scripts, settings=settings)
    assert not isinstance(found, Unknown), found
    return found


def attempted(*scripts: Script, settings: Settings | None = None) -> Run | Unknown:
    """Replay a run of scripts, or say why there is no replay."""
    settings = settings or Settings()
    digests, across, graph = _join(scripts, settings)
    if isinstance(graph, Unknown):
        return graph
    steady = find_steady(digests, settings, across.clocks if across is not None else None)
    found = replay(graph, list(steady.periods), settings)
    return found if isinstance(found, Unknown) else Run(digests, across, graph, found, settings)


def _join(
    scripts: tuple[Script, ...], settings: Settings
) -> tuple[list[RankDigest], Across | None, RunGraph | Unknown]:
    digests = []
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts:
            measured, graph = digest_with_graph(script.timeline(), VOCABULARY, settings, Selection())
            write_graph(Path(folder) / f"{script.rank}.graph", graph)
            digests.append(msgspec.structs.replace(measured, graph=f"{script.rank}.graph"))
        across = bring_together(digests, settings)
        steady = find_steady(digests, settings, across.clocks if across is not None else None)
        return digests, across, join_run(digests, steady, across, Path(folder))


def edge_lines(graph: RankGraph, *kinds: EdgeKind) -> list[tuple[float, float, str, float]]:
    """Return edges of some kinds, all where none is given, as (source µs, target µs, kind, length µs), in time."""
    edges = graph.edges
    rows = [
        (graph.time_ns[src] / 1000, graph.time_ns[dst] / 1000, EdgeKind(kind).name, length / 1000)
        for src, dst, kind, length in zip(
            edges.src.tolist(), edges.dst.tolist(), edges.kind.tolist(), edges.length_ns.tolist(), strict=True
        )
        if not kinds or kind in kinds
    ]
    return sorted(rows)
