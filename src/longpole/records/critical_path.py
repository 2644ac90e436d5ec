"""The critical path of a run as reports and the cache store it (DESIGN 3.6)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay

ANSWER_VERSION: Final = 4
GRAPH_VERSION: Final = 3  # of the ranks' graphs on disk


class PathPiece(msgspec.Struct, frozen=True):
    """One stretch of the path.

    Attributes:
        rank: The rank it lies on, None for time that no rank's record shows.
        track: Thread or stream.
        name: The span or activity that runs, or that is waited for; empty where nothing is recorded.
        object: What the time is spent on.
        start_ns: In ns since the run's base.
        dur_ns: How long.
        grade: How sure: recorded, ordered, inferred or guess.
        reason: Why the path runs here.
    """

    rank: int | None
    track: str
    name: str
    object: str
    start_ns: int
    dur_ns: int
    grade: str
    reason: str


class NearCritical(msgspec.Struct, frozen=True):
    """How much longer all operations of an object could take, in each unit, before the period grows."""

    object: str
    slack_ns: int | Unknown


class CriticalPath(msgspec.Struct, frozen=True):
    """The observed path over all steady units, and one unit of it in full.

    Attributes:
        says: The path of the unit shown, in a sentence.
        by_object_ns: Sums over the units walked.
        by_rank_ns: The same by rank; time that no rank's record shows is left out.
        by_rank_object_ns: Rank -> object -> time.
        ranks_visited: Ranks that the path comes by.
        by_grade_share: Shares of the path by grade; `unexplained` stands apart.
        waits_share: Shares by how a wait was inferred: confirmed and untested event waits.
        units: Units walked.
        unit: The unit shown: the steady one with the longest period, unless another was asked for.
        period_ns: Its period; the pieces add up to it.
        anchor_rank: The rank that completes it.
        pieces: The path of the unit shown, ascending in time.
        near_critical: Objects with their slack, those with the least first.
    """

    says: str
    by_object_ns: dict[str, int]
    by_rank_ns: dict[str, int]
    by_rank_object_ns: dict[str, dict[str, int]]
    ranks_visited: list[int]
    by_grade_share: dict[str, float]
    waits_share: dict[str, float]
    units: list[str]
    unit: str
    period_ns: int
    anchor_rank: int
    pieces: list[PathPiece]
    near_critical: list[NearCritical]


class ConstantEntry(msgspec.Struct, frozen=True):
    """A constant of a rank's graph.

    Attributes:
        rank: The rank.
        kind: Kind of edge.
        stream: The stream it was fitted for, empty for all that have none of their own.
        length_ns: What is used.
        samples: Clean samples.
        fitted: The samples set it; else the default stands.
    """

    rank: int
    kind: str
    stream: str
    length_ns: int
    samples: int
    fitted: bool


class PathAnswer(msgspec.Struct, frozen=True):
    """What a run's graph says: stored, so that a second look costs neither reading nor replaying.

    Attributes:
        version: Of this form.
        path: The critical path, None where it is not known.
        replay: How far the replay may be believed, None where there is none.
        why_not: Why the one or the other is not known.
        constants: Of the ranks' graphs.
        findings: The diagnosis, the most costly first.
        long_pole: Id of the finding that is the long pole, None where no verdict can be given.
        why_no_pole: Why there is none.
        candidates: Changes worth trying, None where the graph is too large for a report to replay them all.
    """

    version: int
    path: CriticalPath | None = None
    replay: Replay | None = None
    why_not: Unknown | None = None
    constants: list[ConstantEntry] = []
    findings: list[CauseFinding] = []
    long_pole: str | None = None
    why_no_pole: Unknown | None = None
    candidates: list[CandidateEntry] | None = None
