"""How a benchmark went over many records, as one value; the page, the picture and the JSON pour it out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longpole.records.ledger import Unknown

SCHEMA: Final = "longpole.history/1"
VERDICTS: Final = ("slower", "faster", "steady", "unknown")
"""Of a series, the gravest first."""


class HistoryRun(msgspec.Struct, frozen=True):
    """One record of a series.

    Attributes:
        run_id, label, path: Of the record.
        started: When it was made, as it says itself; empty where it does not.
        value_ns: Median over its processes of their median time of an item; of a unit where items are not known.
        spread_share: Standard deviation between its processes, as a share; unknown with one process.
        processes, units: How many count.
        failed: Why the record is not counted; empty where it is.
    """

    run_id: str
    label: str
    path: str
    started: str
    value_ns: float | Unknown
    spread_share: float | Unknown
    processes: int
    units: int
    failed: str = ""


class HistoryBaseline(msgspec.Struct, frozen=True):
    """What the later runs are held against.

    Attributes:
        first: Its first run, as an index into `runs`.
        count: How many runs it has.
        value_ns: Their middle.
        spread_share: Their standard deviation, as a share.
        because: Why it begins there; empty where it is simply the beginning.
        smallest_share: The smallest lasting change that ten runs behind it would show.
    """

    first: int
    count: int
    value_ns: float
    spread_share: float
    because: str = ""
    smallest_share: float = 0.0


class HistoryDrift(msgspec.Struct, frozen=True):
    """The series left its baseline.

    Attributes:
        direction: `slower` or `faster`.
        began: First run of the drift, as an index into `runs`.
        alarm: The run at which the evidence sufficed.
        share: By how much, over the last runs at the alarm.
        now_share: By how much at the end of the series.
    """

    direction: str
    began: int
    alarm: int
    share: float
    now_share: float


class HistoryStep(msgspec.Struct, frozen=True):
    """A step in the series.

    Attributes:
        run: First run behind it, as an index into `runs`.
        share: Median behind it against the median before it.
        chance: How likely so large a step is where nothing changed.
        changed: What the records say that changed between the two runs: settings, versions, revision.
    """

    run: int
    share: float
    chance: float
    changed: list[str]


class HistoryStage(msgspec.Struct, frozen=True):
    """What a stage contributes to a drift: medians over the baseline's runs and over the last runs."""

    stage: str
    before_ns: float
    after_ns: float
    share_of_change: float


class HistorySeries(msgspec.Struct):
    """One benchmark on one machine.

    Attributes:
        benchmark: Its name; empty for records that say none.
        semantic_id: Hash of what was run.
        environment: What must match, which all runs of the series share.
        per: What the time is of: an item (`token`, `call`) or a unit.
        runs: In order of time.
        baseline: Unknown where there are too few runs.
        drift: None where it stayed.
        steps: In order of time.
        stages: The stages behind a drift, the largest change first.
        verdict: One of `VERDICTS`.
        says: The same for a person.
    """

    benchmark: str
    semantic_id: str
    environment: dict[str, Any]
    per: str
    runs: list[HistoryRun]
    baseline: HistoryBaseline | Unknown
    drift: HistoryDrift | None
    steps: list[HistoryStep]
    stages: list[HistoryStage]
    verdict: str
    says: str


class History(msgspec.Struct):
    """Everything that was found in a folder of records.

    Attributes:
        schema: `longpole.history/1`.
        longpole: Version.
        folder: As it was given.
        threshold: A change of this share is worth an alarm.
        series: One for each benchmark and machine.
        refused: Files and benchmarks that could not be used, each with its reason.
        verdict: The gravest of the series.
    """

    schema: str
    longpole: str
    folder: str
    threshold: float
    series: list[HistorySeries]
    refused: list[str]
    verdict: str
