"""What `longpole bench compare` found: benchmarks side by side, stage by stage (`longpole.compare/1`)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.ledger import Unknown
from longpole.records.verdict import Difference

SCHEMA: Final = "longpole.compare/1"


class ComparedSide(msgspec.Struct, frozen=True):
    """One side of one benchmark.

    Attributes:
        value_ns: The middle of its processes' medians, of an item or a unit; of one process, of its samples.
        interval_ns: 90 % interval of it.
        processes, units: How many count.
    """

    value_ns: float
    interval_ns: list[float] | Unknown
    processes: int
    units: int


class ComparedRow(msgspec.Struct, frozen=True):
    """A benchmark, or one stage of it.

    Attributes:
        name: Of the benchmark; of the stage.
        base_ns, new_ns: Typical times.
        change_share: Change as a share of the base.
        interval_share: 90 % interval of the change.
        change_ns: Change of the time.
        share_of_change: Of a stage: of the benchmark's change, as far as that can be told from none.
        answer: `slower`, `faster`, `~` (no difference that these runs can tell) or `?` (no interval).
    """

    name: str
    base_ns: float | Unknown
    new_ns: float | Unknown
    change_share: float | Unknown
    interval_share: list[float] | Unknown
    change_ns: float | Unknown
    share_of_change: float | Unknown
    answer: str


class ComparedBenchmark(msgspec.Struct):
    """One benchmark on both sides.

    Attributes:
        per: What the times are of.
        base, new: The sides.
        row: The whole.
        stages: The largest change first.
        design: `paired`, `unpaired` or `single run`.
        method: How the interval was found.
        n: Pairs, or processes of the smaller side; of a single run, units.
        differences: What tells the sides apart, the gravest first.
        notes: What limits the comparison.
    """

    per: str
    base: ComparedSide
    new: ComparedSide
    row: ComparedRow
    stages: list[ComparedRow]
    design: str
    method: str
    n: int
    differences: list[Difference]
    notes: list[str]


class Compare(msgspec.Struct):
    """Two sides.

    Attributes:
        schema: `longpole.compare/1`.
        longpole: Version.
        base, new: The files of either side.
        benchmarks: Those that both sides have, in the order of the base.
        only_base, only_new: Benchmarks of one side.
        geomean_share: Geometric mean of the changes; unknown with one benchmark.
        refused: What could not be used, each with its reason.
    """

    schema: str
    longpole: str
    base: list[str]
    new: list[str]
    benchmarks: list[ComparedBenchmark]
    only_base: list[str]
    only_new: list[str]
    geomean_share: float | Unknown
    refused: list[str]
