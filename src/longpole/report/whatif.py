"""The answer of a what-if as one value; the page and the JSON document pour it out (`longpole.whatif/1`)."""

from __future__ import annotations

from typing import Final

import msgspec

from longpole.records.collectives import CostModel
from longpole.records.ledger import Unknown
from longpole.records.replay import Replay
from longpole.report.document import RunSummary, UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.whatif/1"


class ChangeEntry(msgspec.Struct, frozen=True):
    """One change of several.

    Attributes:
        text: As it is written on a command line; empty for a Python function.
        says: For a person.
        rows: Recorded rows of steady units that it alters, where that is known.
    """

    text: str
    says: str
    rows: int | Unknown = Unknown("the change was not made")


class WhatIfError(msgspec.Struct, frozen=True):
    """How wrong predictions of this kind of change were where reality was measured too (DESIGN 3.7).

    Attributes:
        kind_of_change: What kind it is.
        pairs: Pairs of recordings, before and after the change.
        median_share: Median size of the error of the predicted period, as a share of the measured one.
        p90_share: Nine in ten pairs were no further off.
        bias_share: Median signed error; negative where predictions are too fast.
        source: Where the pairs come from.
    """

    kind_of_change: str
    pairs: int
    median_share: float
    p90_share: float
    bias_share: float
    source: str


class Refused(msgspec.Struct, frozen=True):
    """Why no prediction is given.

    Attributes:
        why: One sentence.
        missing: What would have to be recorded for there to be one.
    """

    why: str
    missing: list[str] = []


class NextLongPole(msgspec.Struct, frozen=True):
    """What holds the changed run up.

    Attributes:
        object: The object with the most path time other than useful compute; `compute` where nothing waits.
        ranks: The ranks that it lies on.
        says: For a person, its share included.
        share: Its share of the predicted path.
    """

    object: str
    ranks: list[int]
    says: str
    share: float


class PricedBy(msgspec.Struct, frozen=True):
    """The cost model by which operations of another size were priced.

    Attributes:
        kind: Of the collectives.
        ranks: How many take part.
        model: It, with where it comes from: `fit` to this run's sizes, the user's `record`, or a `shipped` fit.
        doubt: Why it may not hold for this run; empty where nothing is known against it.
    """

    kind: str
    ranks: int
    model: CostModel
    doubt: str = ""


class WhatIf(msgspec.Struct):
    """The answer of a what-if.

    Attributes:
        schema: `longpole.whatif/1`.
        longpole: Version of the package.
        run: Who ran.
        unit_kind: What a unit of work is: step, request, iteration.
        changes: What was changed, in order; all are replayed together.
        measured_period_ns: Median measured period of the steady units.
        replayed_period_ns: Median period of the unchanged replay.
        predicted_period_ns: Median period of the replay with the changes.
        saving_ns: `replayed_period_ns` less `predicted_period_ns`: both of one replay, so its error cancels in part.
        mean_saving_ns: The same of means over the units; of a stall in fewer than half of them a median shows nothing.
        by_object_ns: Where the saving came from: path time before less path time after, by object; a mean over
            steady units, so it adds up to the mean saving rather than to the median one.
        path_before_ns: Mean path of a unit by object, unchanged.
        path_after_ns: The same with the changes.
        replay: How far the replay may be believed.
        what_if_error: How far this kind of change may be believed.
        refused: Why there is no prediction; None where there is one.
        next_long_pole: What holds the changed run up.
        priced_by: Cost models that collectives of another size were priced by.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    run: RunSummary
    unit_kind: str
    changes: list[ChangeEntry]
    measured_period_ns: int | Unknown
    replayed_period_ns: int | Unknown
    predicted_period_ns: int | Unknown
    saving_ns: int | Unknown
    mean_saving_ns: int | Unknown
    by_object_ns: dict[str, int]
    path_before_ns: dict[str, int]
    path_after_ns: dict[str, int]
    replay: Replay
    what_if_error: WhatIfError | Unknown
    refused: Refused | None
    next_long_pole: NextLongPole | Unknown
    priced_by: list[PricedBy] = []
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def whatif_schema() -> bytes:
    """Return the JSON Schema of `longpole whatif --json`."""
    return document_schema(WhatIf, SCHEMA)
