"""What `longpole explain` answers, as one value: topics, a symptom or a cause, in a run where one is given."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from longpole.records.findings import CandidateEntry, CauseFinding
from longpole.records.ledger import Unknown
from longpole.report.document import RunSummary, UnknownEntry
from longpole.report.pointers import unknown_values
from longpole.report.schema_of import document_schema

SCHEMA: Final = "longpole.explain/1"


class TopicEntry(msgspec.Struct, frozen=True):
    """Something that can be explained: a `symptom` or a `cause`, its name, and it in a sentence."""

    kind: str
    id: str
    says: str


class FigureEntry(msgspec.Struct, omit_defaults=True):
    """A figure that decides, and in a run its value.

    Attributes:
        what: What it is.
        at: JSON Pointer into a report; `*` stands for every entry.
        take: What is taken of the values there: `value`, `largest`, `max`, `min`, `sum`, `spread`, `trend`, `count` or
            `names`.
        reads: How to read it.
        of: Pointer to what it is a share of; empty for none.
        notable_from: From here on it points at its causes; null where it orders others.
        points_to: Causes that it points at, by the run's figures where there is a run.
        value: In a run: the value, or the sum where a share is taken of sums.
        share: In a run: the value as a share of `of`.
        parts: In a run, for `largest`: entry -> its share of all; for `names`: name -> how often.
        found_at: In a run, for `max` and `min`: pointer to the entry.
        is_notable: In a run: whether it points at its causes; left out where that is not known, or it points at none.
    """

    what: str
    at: str
    take: str
    reads: str
    of: str = ""
    notable_from: float | None = None
    points_to: list[str] = []
    value: float | str | Unknown | UnsetType = UNSET
    share: float | Unknown | UnsetType = UNSET
    parts: dict[str, float] | UnsetType = UNSET
    found_at: str = ""
    is_notable: bool | UnsetType = UNSET


class CauseEntry(msgspec.Struct, omit_defaults=True):
    """A cause that a symptom may have.

    Attributes:
        cause: Its name.
        object: What it is charged to.
        says: It in half a sentence.
        findings: In a run: what was found of it; empty where it was not.
        needs: What no trace holds and it needs; empty where a trace may do.
    """

    cause: str
    object: str
    says: str
    findings: list[CauseFinding] | UnsetType = UNSET
    needs: str = ""


class SymptomEntry(msgspec.Struct):
    """A symptom: what decides, what follows.

    Attributes:
        id: Its name.
        says: It in a sentence.
        means: What is behind it, and how to tell.
        figures: What decides, in the order in which to look.
        causes: What it may be; in a run those that were found come first.
        candidates: Ids of the catalogue of changes; in a run those that answer what was found, if anything was.
        candidates_here: In a run: those of them that apply to it, as its report has them.
        record: What to record where it cannot be decided.
        next: Commands; PATH stands for the run where none was given. In a run the first ones replay it without what
            was found.
    """

    id: str
    says: str
    means: str
    figures: list[FigureEntry]
    causes: list[CauseEntry]
    candidates: list[str]
    candidates_here: list[CandidateEntry]
    record: list[str]
    next: list[str]


class SectionEntry(msgspec.Struct, frozen=True):
    """One section of a cause's page, in Markdown."""

    title: str
    text: str


class PageEntry(msgspec.Struct):
    """The page of a cause.

    Attributes:
        cause: The cause, and in a run what was found of it.
        sections: The page.
        page: Where it is in the documentation.
    """

    cause: CauseEntry
    sections: list[SectionEntry]
    page: str


class Explain(msgspec.Struct):
    """An answer of `longpole explain`.

    Attributes:
        schema: `longpole.explain/1`.
        longpole: Version of the program.
        asked: What was asked for; empty for the list.
        answer: `list` of all topics, `several` that may be meant, a `symptom` or a `cause`.
        topics: All topics, or those that may be meant; empty where one is answered.
        symptom: The symptom; null for other answers.
        cause: The page of a cause; null for other answers.
        run: Who ran; null without a run.
        headline: What the run's report says first; empty without a run.
        long_pole: The cause that is the run's long pole; null where no verdict is given, and without a run.
        unknown: Everything not known, in one place; collected when the value is made.
    """

    schema: str
    longpole: str
    asked: str
    answer: Literal["list", "several", "symptom", "cause"]
    topics: list[TopicEntry]
    symptom: SymptomEntry | None = None
    cause: PageEntry | None = None
    run: RunSummary | None = None
    headline: str = ""
    long_pole: str | None = None
    unknown: list[UnknownEntry] = []

    def __post_init__(self) -> None:
        """Collect what is not known, unless a reader brought it along."""
        if not self.unknown:
            self.unknown = unknown_values(self)


def explain_schema() -> bytes:
    """Return the JSON Schema of `longpole explain --json`."""
    return document_schema(Explain, SCHEMA)
