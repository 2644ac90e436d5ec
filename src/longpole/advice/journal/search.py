"""Have we tried this? Entries that match words, the best first."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import msgspec

from longpole.records.journal import Entry, Expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD: Final = re.compile(r"[^\W_]+(?:\.[0-9]+)?")
# Words of a question, which every entry has or none.
_EMPTY_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "any", "are", "been", "can", "did", "do", "does", "ever", "for", "have", "how", "i", "in"),
        *("is", "it", "of", "on", "or", "our", "that", "the", "these", "this", "those", "to", "tried", "try", "used"),
        *("was", "we", "what", "when", "who", "with"),
    )
)
_EXACT, _BEGINNING, _INSIDE = 1.0, 0.7, 0.4
_SHORTEST_PART: Final = 4
UNCHANGED: Final = "configuration"
"""Where a word stands that an entry ran with, and that its change was not about."""
_WEIGHTS: Final = {
    "title": 4.0,
    "candidate": 4.0,
    "changed configuration": 3.0,
    "tags": 3.0,
    "expected from": 2.0,
    "part": 1.5,
    "notes": 1.5,
    "side effects": 1.0,
    "reason": 1.0,
    "job": 1.0,
    "who": 1.0,
    "records": 0.5,
    UNCHANGED: 0.5,
}
"""How much a word counts by the place where it stands; a key that changed says more than one that stayed."""


class Hit(msgspec.Struct, frozen=True):
    """An entry that matches.

    Attributes:
        id: The entry.
        place: Its place among the entries that were searched, from 0.
        score: Above 0; comparable within one search only.
        words: The words of the question that it has.
        matched: Where they stand: `title`, `candidate`, `changed configuration`, …
    """

    id: str
    place: int
    score: float
    words: list[str]
    matched: list[str]


def search(entries: Sequence[Entry], text: str) -> list[Hit]:
    """Return the entries that have words of a text, the best first; equally good ones the latest first.

    An entry with more of the words comes before one with fewer. A word counts more the fewer entries have it, and by
    where it stands. Words match in full, where one begins with the other (`prefetch`, `prefetching`), or where one has
    the other inside (`fetch` in `prefetch`); from four letters on. What an entry merely ran with counts only where no
    entry has a word anywhere else.
    """
    words = list(dict.fromkeys(split_words(text)))
    words = [word for word in words if word not in _EMPTY_WORDS] or words
    found = [{word: match for word in words if (match := _best(word, fields))} for fields in map(_fields, entries)]
    rarity = {word: math.log(1 + len(entries) / (1 + sum(word in one for one in found))) for word in words}
    ranked = [
        (len(one), sum(rarity[word] * match[0] for word, match in one.items()), place)
        for place, one in enumerate(found)
        if one
    ]
    hits = [
        Hit(entries[place].id, place, score, list(found[place]), _places(found[place]))
        for _, score, place in sorted(ranked, reverse=True)
    ]
    return [hit for hit in hits if hit.matched != [UNCHANGED]] or hits


def _places(found: dict[str, tuple[float, str]]) -> list[str]:
    return list(dict.fromkeys(name for _, name in found.values()))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; an underscore, a hyphen or a dot between letters parts two.

    >>> split_words("bucket_cap_mb=25, fp8-training input.prefetch 1.5")
    ['bucket', 'cap', 'mb', '25', 'fp8', 'training', 'input', 'prefetch', '1.5']
    """
    return _WORD.findall(text.casefold())


def _best(word: str, fields: list[tuple[str, frozenset[str]]]) -> tuple[float, str] | None:
    """Return the weight and the place of a word's best match."""
    matches = [
        (_WEIGHTS[name] * quality, name)
        for name, words in fields
        if (quality := max((_quality(word, other) for other in words), default=0.0))
    ]
    return max(matches, default=None)


def _quality(word: str, other: str) -> float:
    if word == other:
        return _EXACT
    short, long = sorted((word, other), key=len)
    if len(short) < _SHORTEST_PART or short.isdecimal():
        return 0.0
    if long.startswith(short):
        return _BEGINNING
    return _INSIDE if short == word and short in long else 0.0


def _fields(entry: Entry) -> list[tuple[str, frozenset[str]]]:
    return [(name, frozenset(split_words(text))) for name, text in _texts(entry)]


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "title", f"{entry.title} {entry.id[11:]}"
    if isinstance(entry.expected, Expected):
        yield "candidate", entry.expected.candidate
        yield "expected from", entry.expected.source
    changed = {change.key for change in entry.diff}
    yield (
        "changed configuration",
        " ".join(f"{change.key} {change.before} {change.after}" for change in entry.diff).replace("UNSET", ""),
    )
    yield "tags", " ".join(entry.tags)
    yield "part", entry.part
    yield "notes", entry.notes
    yield "side effects", " ".join(entry.side_effects)
    yield "reason", f"{entry.reason} {entry.says}"
    yield "job", entry.job
    yield "who", entry.who
    yield "records", " ".join(f"{link.path} {link.run}" for link in entry.records)
    yield UNCHANGED, " ".join(f"{key} {value}" for key, value in entry.config.items() if key not in changed)
