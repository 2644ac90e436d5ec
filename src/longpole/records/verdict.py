"""What was found of a change, as it is stored: the verdict, and each figure that it rests on (DESIGN 3.11, 3.12)."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from longpole.records.ledger import Unknown

Share: TypeAlias = float | Unknown
Amount: TypeAlias = float | Unknown
Time: TypeAlias = int | Unknown

VERDICTS: Final = ("accepted", "rejected", "mixed", "inconclusive", "not verifiable")
REASONS: Final = {
    "faster": "accepted: the item takes less time, the part shrank, contract and limits hold",
    "moved": "rejected: the part shrank, the item did not get faster",
    "no_effect": "rejected: the item takes as long as before",
    "worse": "rejected: the item takes longer",
    "contract": "rejected: correctness, quality or the batch did not hold",
    "limit": "rejected: a limit is broken",
    "limits": "mixed: some limits are better, some worse",
    "part": "mixed: the item is faster, and not because of the part",
    "few_samples": "inconclusive: too few units or runs for an interval",
    "spread": "inconclusive: the runs differ too much to tell",
    "quality": "inconclusive: quality was measured too few times to tell",
    "not_comparable": "not verifiable: what must match does not",
    "items_unknown": "not verifiable: the batch changed, or may have, and the items are not known",
    "fields_missing": "not verifiable: a figure that is asked for was not recorded",
}
"""Why a verdict is what it is; the word before the colon is the verdict."""


class Difference(msgspec.Struct, frozen=True):
    """Something that tells the two sides apart, or is not known of one of them.

    Attributes:
        what: `batch`, `items`, `ranks`, `layout`, `devices`, `versions`, `environment`, `shapes`, `units`, `record`.
        severity: `note`, `warn`, or `void`: time per item cannot be compared.
        key: The field, empty where it is several.
        before, after: Its values as text; empty where it is not known.
        says: One sentence.
    """

    what: str
    severity: str
    key: str
    before: str
    after: str
    says: str


class RunSpread(msgspec.Struct):
    """How much the units of a side differ: over the units of all its runs.

    Attributes:
        median_ns: Of the period.
        p95_ns: Nearest rank, from 20 units on.
        p95_over_median: The same as a ratio.
        cv: Standard deviation over mean.
        n: Units.
    """

    median_ns: Time
    p95_ns: Time
    p95_over_median: Share
    cv: Share
    n: int


class RunEntry(msgspec.Struct):
    """One run of a side.

    Attributes:
        label: What it is called.
        path: As it was given.
        run_id: Its id.
        blake2b: Of the record file; empty where the run was read from traces.
        sources: The files it was made from, with their hashes.
        units: Units that count.
        period_ns: Median period.
        time_per_item_ns: What enters the comparison; a period where items are not known.
        items_per_unit: Items of all ranks together.
        processes: Processes of a benchmark, each a run of its own in the comparison; 0 for a run that is one.
    """

    label: str
    path: str
    run_id: str
    blake2b: str
    sources: list[dict[str, str]]
    units: int
    period_ns: Time
    time_per_item_ns: Amount
    items_per_unit: Amount
    processes: int = 0


class Sides(msgspec.Struct, frozen=True):
    """A number of each side."""

    before: int
    after: int


class Effect(msgspec.Struct):
    """How much less or more time an item takes.

    Attributes:
        estimate: Change as a share: -0.2 is a fifth less time.
        interval: Where it may lie, 90 %: each end is missed in one case of twenty.
        statistic: What is compared.
        method: How the interval was found.
        runs: A side.
        units: A side.
        single_run: One run on a side: the interval holds the spread between runs that is assumed.
        run_spread: That spread, 0 where runs were compared.
        threshold: What a change must exceed.
        smallest_seen: The smallest change that would have been told from the threshold in four of five cases.
        answer: `faster`, `slower`, `same` or `unsettled`.
        per_item: Time per item is compared; false where items are taken to be the same and periods are.
        before_ns: Median over the runs, for as many items as a unit has before.
        after_ns: The same.
        mean_estimate: The change of the mean in place of the median, or the other way round.
        says: One sentence.
    """

    estimate: Share
    interval: list[float] | Unknown
    statistic: str
    method: str
    runs: Sides
    units: Sides
    single_run: bool
    run_spread: float
    threshold: float
    smallest_seen: Share
    answer: str
    per_item: bool
    before_ns: Amount
    after_ns: Amount
    mean_estimate: Share
    says: str


class PartChange(msgspec.Struct):
    """What one part of a unit took before and after, for as many items as a unit has before.

    Attributes:
        part: An object, `stage:NAME`, `idle:REASON`, `collective:KIND` or `waiting:KIND`.
        before_ns, after_ns, change_ns: Means over the units.
    """

    part: str
    before_ns: int
    after_ns: int
    change_ns: int


class Part(msgspec.Struct):
    """What must shrink.

    Attributes:
        part: An object, `stage:NAME` or `idle:REASON`.
        chosen: `given`, `candidate`, or `fell most`.
        before_ns, after_ns, change_ns: Means over the units, for as many items as a unit has before.
        interval_ns: Where the change may lie.
        shrank: `yes`, `no` or `unsettled`.
        says: One sentence.
    """

    part: str
    chosen: str
    before_ns: Time
    after_ns: Time
    change_ns: Time
    interval_ns: list[int] | Unknown
    shrank: str
    says: str


class Moved(msgspec.Struct):
    """Where time went, and where it came from.

    Attributes:
        fell, grew: Parts that changed by more than the threshold of the period, the largest change first.
        to: The part that took most of what the part in question gave up; empty where nothing did.
        says: One sentence; empty where nothing moved.
    """

    fell: list[PartChange]
    grew: list[PartChange]
    to: str
    says: str


class Limit(msgspec.Struct):
    """A limit on the after side.

    Attributes:
        text: As it was given.
        figure: What is limited.
        relation: `<=`, `<`, `>=` or `>`.
        value: The limit.
        before, after: The figure on each side.
        status: `met`, `broken` or `unknown`.
        trend: `better`, `worse`, `same`, or `unknown` where the before side lacks the figure.
        says: One sentence.
    """

    text: str
    figure: str
    relation: str
    value: float
    before: Amount
    after: Amount
    status: str
    trend: str
    says: str


class ContractItem(msgspec.Struct):
    """One thing that must hold.

    Attributes:
        kind: `check`, `metric`, `output` or `batch`.
        name: Which.
        status: `held`, `broken`, `unsettled` or `unknown`.
        before, after: As text.
        says: One sentence.
    """

    kind: str
    name: str
    status: str
    before: str
    after: str
    says: str


class Predicted(msgspec.Struct):
    """What the replay said beforehand, beside what came.

    Attributes:
        changes: As options of `longpole whatif`.
        predicted: Change of the period as a share.
        measured: The same, measured.
        miss: Measured less predicted; positive where it brought less than was predicted.
        error_share: How far such predictions were off where pairs of recordings exist.
        missed: The miss exceeds what prediction and measurement leave open.
        says: One sentence.
    """

    changes: list[str]
    predicted: Share
    measured: Share
    miss: Share
    error_share: Share
    missed: bool
    says: str


class Needs(msgspec.Struct, frozen=True):
    """What would settle it.

    Attributes:
        runs: More runs a side, 0 where none are needed.
        fields: Figures and facts that have to be recorded or declared.
        says: One sentence; empty where nothing is needed.
    """

    runs: int | Unknown
    fields: list[str]
    says: str


class SideFigure(msgspec.Struct):
    """A figure that a change may cost, whether or not it is limited.

    Attributes:
        figure: `p95_over_median`, `cv`, `peak_bytes`, `gpu_s_per_item`.
        before, after: Its values.
        says: One sentence where it grew by more than the threshold; else empty.
    """

    figure: str
    before: Amount
    after: Amount
    says: str
