"""How a job scales over its runs, as one value; the page and the JSON document pour it out (`longpole.scaling/1`)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.ledger import Unknown
from longpole.report.document import UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.scaling/1"

PARTS: Final = (
    "transfer",
    "skew",
    "bubble",
    "collective",
    "input",
    "artifact",
    "state",
    "output",
    "host",
    "compute",
    "unknown",
    "lag",
)
"""What the time of a unit is split into, in the order of pages.

`transfer`, `skew` and `bubble` are exposed communication: bytes moving, waiting for the last rank, waiting for a
pipeline neighbour; `collective` is exposed communication that could not be split into them. `lag` is the
part of the period that lies outside the ranks' own units: it appears where units complete ever later, as devices fall
behind the host, or one rank behind the others.
The others are the objects of the ledger.
"""

SEVERITIES: Final = ("void", "warn", "note")
"""Of differences between runs, the gravest first."""


class Part(msgspec.Struct, frozen=True):
    """One part of a unit's time, and of its loss against the smallest run.

    Attributes:
        part: One of `PARTS`.
        object: The object of the ledger that it belongs to; empty for `lag`.
        ideal_ns: What it would take at the smallest run's pace.
        taken_ns: What it takes.
        loss_ns: `taken_ns` less `ideal_ns`.
        loss_share: `loss_ns` as a share of the period.
    """

    part: str
    object: str
    ideal_ns: int | Unknown
    taken_ns: int | Unknown
    loss_ns: int | Unknown
    loss_share: float | Unknown


class ScalingItems(msgspec.Struct, frozen=True):
    """How many items a rank processes in a unit.

    Attributes:
        basis: `declared`, `assumed weak` (the same items per rank in every run) or `assumed strong` (the same items
            in every run, spread over its ranks).
        says: The same for a person.
    """

    basis: str
    says: str


class ScalingRun(msgspec.Struct):
    """One run of the job.

    Attributes:
        label: What the run is called on pages: its path, as short as tells it from the others.
        sources: The files that it was read from.
        ranks: How many ranks the job has, whether recorded or not.
        ranks_present: Ranks with a record.
        unit_kind: What a unit of work is.
        units: How many periods the means are over.
        period_ns: Mean period of the steady units; a mean, because its parts must add up.
        median_period_ns: Their median.
        items_per_rank: Items that a rank processes in a unit.
        items_per_s: Items of all ranks together in a second.
        efficiency: Items per rank and time, as a share of what the smallest run reaches.
        median_efficiency: The same from median periods.
        speedup: Items of all ranks and time over those of the smallest run.
        ideal_ns: The period at the smallest run's pace per item.
        loss_ns: `period_ns` less `ideal_ns`.
        parts: What the loss is made of; the integers among `loss_ns` add up to it exactly. A part that is not known
            is within `collective`.
        by_object_ns: The loss by object, and `lag`; adds up to it exactly.
        split_range_ns: How far `transfer` and `skew` may be off, where communication was partly hidden under compute.
        says: What the loss is mostly made of.
    """

    label: str
    sources: list[str]
    ranks: int
    ranks_present: list[int]
    unit_kind: str
    units: int
    period_ns: int | Unknown
    median_period_ns: int | Unknown
    items_per_rank: int | Unknown
    items_per_s: float | Unknown
    efficiency: float | Unknown
    median_efficiency: float | Unknown
    speedup: float | Unknown
    ideal_ns: int | Unknown
    loss_ns: int | Unknown
    parts: list[Part]
    by_object_ns: dict[str, int]
    split_range_ns: int
    says: str


class Difference(msgspec.Struct, frozen=True):
    """Something about the runs that a comparison must know.

    Attributes:
        what: `kernels`, `compute`, `units`, `devices`, `versions`, `ranks`, `items`, `record` or `refused`.
        severity: `note`, `warn`, or `void`: they are not runs of one job, or not comparable ones.
        runs: Labels of the runs.
        says: For a person.
    """

    what: str
    severity: str
    runs: list[str]
    says: str


class Scaling(msgspec.Struct):
    """The document of `longpole scaling --json`.

    Attributes:
        schema: `longpole.scaling/1`.
        longpole: Version of the package.
        base: Label of the smallest run, which all others are compared with.
        items: How many items a rank processes, and how that is known.
        comparable: No difference voids the comparison.
        says: The result in a sentence.
        runs: By number of ranks, the smallest first.
        differences: What tells the runs apart beside their size.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    base: str
    items: ScalingItems
    comparable: bool
    says: str
    runs: list[ScalingRun]
    differences: list[Difference]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def scaling_schema() -> bytes:
    """Return the JSON Schema of `longpole scaling --json`."""
    return document_schema(Scaling, SCHEMA)
