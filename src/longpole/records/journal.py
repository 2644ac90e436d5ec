"""The journal of changes as it is stored: one JSON object a line, one line an entry; no logic.

The order of the fields is the order in which a line shows them, so that a reviewer meets the title, the decision and
the verdict first. docs/reference/journal.md describes each of them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

FILE_NAME: Final = "longpole-journal.jsonl"
VERSION: Final = 1

DECISIONS: Final = ("kept", "reverted")
BETTER: Final = ("higher", "lower")
SCOPES: Final = ("total", "per_device")

ConfigValue: TypeAlias = bool | int | float | str | None


class ConfigChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key of the configuration that changed; a side on which the key is absent is left out.

    Attributes:
        key: Its name, with dots between levels.
        before: Its value before the change.
        after: Its value after the change.
    """

    key: str
    before: ConfigValue | UnsetType = UNSET
    after: ConfigValue | UnsetType = UNSET


class Expected(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the change was expected to bring, and who said so.

    Attributes:
        speedup: Time per item before over time per item after; 1.25 is a quarter more items in the same time.
        candidate: Id of the candidate, such as `input.prefetch`.
        source: The what-if command, or whatever else the figure comes from.
        error_share: How far such predictions were off, as a share of the predicted time per item.
    """

    speedup: float
    candidate: str = ""
    source: str = ""
    error_share: float | UnsetType = UNSET


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the change brought.

    Attributes:
        speedup: Time per item before over time per item after: above 1 is faster, whatever the unit is.
        low: Lower end of the interval of `speedup`.
        high: Upper end of it.
        level: How sure the interval is, such as 0.9.
        statistic: What the figures are, such as `median of 5 pairs`.
        before: The figure before the change, in `unit`.
        after: The figure after it.
        unit: `tokens/s`, `ms/step`, …
        better: `higher` or `lower`: whether a larger figure is better.
        scope: `total` or `per_device`, of a throughput; left out where nobody said so.
        runs: How many runs a side the figures rest on.
        single_run: Whether one recorded run a side is all there is.
    """

    speedup: float
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    level: float | UnsetType = UNSET
    statistic: str = ""
    before: float | UnsetType = UNSET
    after: float | UnsetType = UNSET
    unit: str = ""
    better: str = ""
    scope: str = ""
    runs: list[int] = []
    single_run: bool = False


class RecordLink(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that an entry rests on.

    Attributes:
        path: Where it lies, seen from the journal's folder, with `/` between folders.
        sha256: Hash of its bytes; of a folder, of the list of its files with theirs.
        side: `before`, `after`, `verdict` (what `longpole verify --json` wrote) or `other`.
        kind: Its schema, such as `longpole.record/1`; `file` or `folder` where it names none.
        run: Id of the run, of a run record.
    """

    path: str
    sha256: str
    side: str = "other"
    kind: str = "file"
    run: str = ""


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure that somebody stated, and that no record of this entry carries.

    Attributes:
        what: What is stated, such as `mfu`.
        stated: The figure as it was stated, rounding included: `35 %`.
        of: `before` or `after` the change, or `both`.
    """

    what: str
    stated: str
    of: str = "after"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: what was expected, what was measured, and what was decided.

    Attributes:
        v: Version of this form.
        id: The day and the title, such as `2026-11-30-prefetch-input`.
        date: When it was written, in UTC: `2026-11-30T12:00:00Z`, or a day.
        title: The change in a few words.
        decision: `kept` or `reverted`.
        verdict: One of `records.verdict.VERDICTS`.
        reason: One of `records.verdict.REASONS`, or a sentence, or empty.
        says: The verdict in a sentence, where a document of `longpole verify` gives one.
        job: Which job it is about, where the journal holds several.
        who: Who made it.
        measured: What it brought; absent where that was not measured.
        expected: What it was expected to bring; absent where nobody said.
        diff: What changed in the configuration.
        diff_against: What `diff` compares with: `record`, `file`, or the id of an entry; empty where with nothing.
        part: What became of the part that was to shrink, in a sentence.
        side_effects: What else changed: memory, tails, limits.
        reverts: Id of an earlier entry whose change this one takes back.
        records: Files that it rests on.
        no_record: Why there is none.
        claims: Figures that somebody stated.
        notes: Anything else.
        tags: Words to find it by.
        config: The whole configuration after the change, with dots between levels.
    """

    v: int
    id: str
    date: str
    title: str
    decision: str
    verdict: str
    reason: str = ""
    says: str = ""
    job: str = ""
    who: str = ""
    measured: Measured | UnsetType = UNSET
    expected: Expected | UnsetType = UNSET
    diff: list[ConfigChange] = []
    diff_against: str = ""
    part: str = ""
    side_effects: list[str] = []
    reverts: str = ""
    records: list[RecordLink] = []
    no_record: str = ""
    claims: list[Claim] = []
    notes: str = ""
    tags: list[str] = []
    config: dict[str, ConfigValue] = {}


class DamagedLine(msgspec.Struct, frozen=True):
    """A line of a journal that is no entry.

    Attributes:
        line: Its number, from 1.
        why: What is wrong with it, and what to do.
    """

    line: int
    why: str
