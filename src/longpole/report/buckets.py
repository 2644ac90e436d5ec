"""Bucket caps of data-parallel gradients as one value; the page and the document pour it out (`longpole.buckets/1`)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.collectives import CostModel
from longpole.records.ledger import Unknown
from longpole.report.document import RunSummary, UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.buckets/1"
VERDICTS: Final = ("change", "keep", "cannot tell", "not known")
SIZES: Final = ("recorded", "shapes", "within buckets")


class GradientsEntry(msgspec.Struct):
    """The gradients of a backward pass.

    Attributes:
        count: How many are reduced.
        bytes: Of all of them.
        sizes: One of `SIZES`: `recorded` are shapes that add up to the buckets' bytes, `shapes` are shapes alone, and
            with `within buckets` each bucket's bytes are spread over its gradients.
        skipped: Gradients of a unit that come before those that are reduced.
        backward_ns: From the first operator of the backward pass to the last gradient, the median.
    """

    count: int
    bytes: int | Unknown
    sizes: str | Unknown
    skipped: int
    backward_ns: int


class CapRange(msgspec.Struct):
    """Between which caps those of the trace were: above the one, up to the other; None for no end.

    Attributes:
        above_bytes, up_to_bytes: Of all buckets but the first.
        first_above_bytes, first_up_to_bytes: Of the first bucket.
        torch_default: Torch's own caps are among them.
    """

    above_bytes: int
    up_to_bytes: int | None
    first_above_bytes: int
    first_up_to_bytes: int | None
    torch_default: bool


class RecordedBuckets(msgspec.Struct):
    """The buckets that the trace ran with.

    Attributes:
        sizes_bytes: In order of issue.
        cap: What they say of the cap.
        exposed_ns: From the last gradient to the end of the last bucket, as recorded; the median.
        waiting_ns: Of that, waiting for other ranks, which no cap changes.
        communication_ns: What the buckets took as recorded, waiting for other ranks included; the median.
        overlapping: Some ran at the same time as another one.
    """

    sizes_bytes: list[int] | Unknown
    cap: CapRange | Unknown
    exposed_ns: int
    waiting_ns: int | Unknown
    communication_ns: int
    overlapping: bool


class BucketCost(msgspec.Struct):
    """What an all-reduce is taken to cost.

    Attributes:
        model: alpha + gamma * sqrt(S) + S / rate, of source `fit`, `record`, `shipped`, `stated` (by the user),
            `nccl_model`, or `buckets` (a rate from the recorded buckets, with a latency that is assumed).
        ranks: How many take part.
        recorded_over_model: What the recorded buckets took over what the model says, the median.
        recorded_as: `transfer` where waiting could be taken off, else the shortest `duration`, waiting included.
        factor: What the model is multiplied by to meet what was recorded; 1 where that holds waiting.
    """

    model: CostModel
    ranks: int
    recorded_over_model: float | Unknown
    recorded_as: str
    factor: float


class CapPoint(msgspec.Struct):
    """What one cap comes to: medians over the passes.

    Attributes:
        cap_bytes: From which a bucket closes; 0 for the buckets as recorded.
        buckets: How many there are.
        exposed_ns: From the last gradient to the end of the last bucket.
        hidden_ns: The rest of what the buckets take.
        communication_ns: What all of them take.
        assumed: Smaller than recorded buckets whose inside is not known.
    """

    cap_bytes: int
    buckets: int
    exposed_ns: int
    hidden_ns: int
    communication_ns: int
    assumed: bool


class BestCap(msgspec.Struct):
    """Where the curve is lowest.

    Attributes:
        cap_bytes: The cap.
        exposed_ns: What is left exposed.
        least_ns: What no cap goes below: every gradient sent when it is ready, for one latency in all.
        late_bytes: Of gradients that become ready in the last `least_ns` of the pass: nothing is left to hide them.
        saving_ns: Against the recorded buckets under the same cost; negative where they are better.
        saving_share: Of the median period of a unit.
        low_bytes, high_bytes: The best caps if latency were a quarter to four times what the cost says, and the rate
            three to five quarters.
        formula_bytes: G * sqrt(alpha / T), where communication takes longer than the backward pass.
        formula: The same with its values.
    """

    cap_bytes: int
    exposed_ns: int
    least_ns: int
    late_bytes: int
    saving_ns: int
    saving_share: float
    low_bytes: int
    high_bytes: int
    formula_bytes: int | Unknown
    formula: str


class BucketCheck(msgspec.Struct):
    """The recorded buckets simulated, beside what was recorded less waiting for other ranks, where that is known."""

    predicted_exposed_ns: int
    recorded_exposed_ns: int
    error_ns: int


class Buckets(msgspec.Struct):
    """The document of `longpole buckets --json`.

    Attributes:
        schema: `longpole.buckets/1`.
        longpole: Version of the package.
        run: Who ran.
        rank: Whose gradients these are.
        device: Of that rank.
        unit_kind: What a unit of work is.
        units: How many units' passes were swept.
        period_ns: The median period of a unit.
        verdict: One of `VERDICTS`.
        says: Why, in a sentence.
        gradients: What is reduced.
        recorded: How it was reduced.
        cost: What an all-reduce is taken to cost.
        check: How good that is.
        curve: Ascending by cap; the last is one bucket for everything.
        best: Where it is lowest.
        cannot_know: What no sweep of this trace can tell.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    run: RunSummary
    rank: int
    device: str
    unit_kind: str
    units: int
    period_ns: int | Unknown
    verdict: str
    says: str
    gradients: GradientsEntry
    recorded: RecordedBuckets
    cost: BucketCost | Unknown
    check: BucketCheck | Unknown
    curve: list[CapPoint]
    best: BestCap | Unknown
    cannot_know: list[str]
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def buckets_schema() -> bytes:
    """Return the JSON Schema of `longpole buckets --json`."""
    return document_schema(Buckets, SCHEMA)
