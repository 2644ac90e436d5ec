"""From what somebody types to the symptoms and causes that it may mean.

A name is taken as it stands. Anything else is compared with the phrases of every symptom and with the name and title of
every cause, word by word: words that say nothing are left out, words that mean the same are one, and a slip of the pen
is forgiven. Rare words count more than frequent ones. Where a page holds all that was asked for, it is offered too.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.advice.cause_pages import CausePage
    from longpole.advice.symptoms import Language, Symptoms

_WORD: Final = re.compile(r"[a-z0-9%+()/.]*[a-z0-9%)]")
_SLIP: Final = 0.75  # words that are less alike are different words
_SLIP_CHARS: Final = 4  # a slip in a shorter word makes another word of it
_ASKED: Final = 0.65  # how much it counts that all of the question is answered; the rest, that the phrase says no more
_IN_TEXT: Final = 0.5  # a page that holds all words somewhere is no more than a hint
_LEAST: Final = 0.42
_SURE: Final = 0.8
_AHEAD: Final = 0.12
_SHOWN: Final = 6
_NEAR: Final = 0.75


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that can be explained.

    Attributes:
        kind: `symptom` or `cause`.
        id: Its name.
        says: It in a sentence.
    """

    kind: str
    id: str
    says: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a text may mean.

    Attributes:
        topics: The likeliest first; empty where nothing is like it.
        is_sure: The first one is meant.
    """

    topics: tuple[Topic, ...]
    is_sure: bool


def all_topics(symptoms: Symptoms, pages: Mapping[str, CausePage]) -> list[Topic]:
    """Return all symptoms and all causes, each in its order."""
    return [
        *(Topic("symptom", row.id, row.says) for row in symptoms.rows),
        *(Topic("cause", page.cause, page.says) for page in pages.values()),
    ]


def find_topics(asked: str, symptoms: Symptoms, pages: Mapping[str, CausePage]) -> Found:
    """Find what a text may mean.

    Args:
        asked: A name, or words such as "gpu idle".
        symptoms: All symptoms.
        pages: Cause -> its page.
    """
    topics = all_topics(symptoms, pages)
    name = re.sub(r"[\s_-]+", "_", asked.strip().lower())
    for topic in topics:
        if topic.id.replace("-", "_") == name:
            return Found((topic,), is_sure=True)
    phrases = _phrases(symptoms, pages)
    weight = _weights([phrase for _, phrase in phrases])
    words = _without_slips(split_words(asked, symptoms.language), weight, symptoms.language)
    best = {topic.id: 0.0 for topic in topics}
    for owner, phrase in phrases:
        best[owner] = max(best[owner], _score(words, phrase, weight))
    for page in pages.values():
        if words and set(words) <= _words_of(page, symptoms.language):
            best[page.cause] = max(best[page.cause], _IN_TEXT)
    ranked = sorted((topic for topic in topics if best[topic.id] >= _LEAST), key=lambda topic: -best[topic.id])
    if not ranked:
        return Found((), is_sure=False)
    first = best[ranked[0].id]
    second = best[ranked[1].id] if len(ranked) > 1 else 0.0
    if first >= _SURE and first - second >= _AHEAD:
        return Found((ranked[0],), is_sure=True)
    near = tuple(topic for topic in ranked if best[topic.id] >= _NEAR * first)[:_SHOWN]
    return Found(near, is_sure=len(near) == 1)


def split_words(text: str, language: Language) -> list[str]:
    """Return the words of a text that say something, each as the word that stands for it.

    >>> from longpole.advice.symptoms import load_symptoms
    >>> split_words("My GPUs are idling", load_symptoms().language)
    ['device', 'idle']
    """
    words: list[str] = []
    for word in _WORD.findall(text.lower().replace("-", " ").replace("_", " ")):
        same = language.same.get(word, word)
        if same not in language.ignore and same not in words:
            words.append(same)
    return words


def _phrases(symptoms: Symptoms, pages: Mapping[str, CausePage]) -> list[tuple[str, list[str]]]:
    """Return (id, words) of every phrase that leads to a symptom or a cause."""
    texts: list[tuple[str, str]] = []
    for row in symptoms.rows:
        texts += [(row.id, text) for text in (row.id, row.says, *row.words)]
    for page in pages.values():
        texts += [(page.cause, text) for text in (page.cause, page.says)]
    return [(owner, split_words(text, symptoms.language)) for owner, text in texts]


def _weights(phrases: Sequence[Iterable[str]]) -> dict[str, float]:
    """Return word -> how much it tells: 1 for one that is in every phrase, more for rarer ones."""
    counts: dict[str, int] = {}
    for phrase in phrases:
        for word in set(phrase):
            counts[word] = counts.get(word, 0) + 1
    return {word: 1 + math.log(len(phrases) / count) for word, count in counts.items()}


def _without_slips(words: Sequence[str], weight: Mapping[str, float], language: Language) -> list[str]:
    """Return words with those that nobody uses here replaced by the one that is most like them."""
    known = [*weight, *language.same]
    kept: list[str] = []
    for word in words:
        like = [word]
        if word not in weight and len(word) >= _SLIP_CHARS:
            like = difflib.get_close_matches(word, known, 1, _SLIP) or [word]
        kept.append(language.same.get(like[0], like[0]))
    return list(dict.fromkeys(kept))


def _words_of(page: CausePage, language: Language) -> set[str]:
    text = " ".join(section.text for section in page.sections[:-1])
    return set(split_words(text, language))


def _score(asked: Sequence[str], phrase: Sequence[str], weight: Mapping[str, float]) -> float:
    """Return how much two texts say the same, from 0 to 1."""
    if not asked or not phrase:
        return 0.0
    return _ASKED * _covered(asked, phrase, weight) + (1 - _ASKED) * _covered(phrase, asked, weight)


def _covered(words: Sequence[str], others: Sequence[str], weight: Mapping[str, float]) -> float:
    """Return the weighted share of words that are among others; a word that nobody uses here counts little."""
    of = {word: weight.get(word, 1.0) for word in words}
    return sum(one for word, one in of.items() if word in others) / sum(of.values())
