"""Which rows a change is about: its data, its grammar, and how people are told."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from longpole.errors import UsageError
from longpole.vocabulary.objects import COLLECTIVE_KINDS, OBJECTS, POSTTRAINING_STAGES, SERVING_STAGES, STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

SELECTABLE_OBJECTS: Final = tuple(name for name in OBJECTS if name != "unknown")
SELECTABLE_KINDS: Final = tuple(name for name in COLLECTIVE_KINDS if name)
ALL_STAGES: Final = tuple(dict.fromkeys((*STAGES, *SERVING_STAGES, *POSTTRAINING_STAGES)))
REGEX_MAX_CHARS: Final = 500  # our choice: long enough for any list of names a person writes
NUMBER_MAX: Final = 10**9  # larger ranks and streams than any recorder writes
_FORMS: Final = (
    f"an object ({', '.join(SELECTABLE_OBJECTS)}), name:REGEX, stage:NAME, rank:N, stream:N or kind:all_reduce,"
    " or several of them with & between"
)
# What a bare word may have been meant to be, as it has to be written.
_AS_WRITTEN: Final = (*SELECTABLE_OBJECTS, *(f"kind:{kind}" for kind in SELECTABLE_KINDS))
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)
# An ampersand of a regular expression is written \&; a bare one separates terms.
_SEPARATOR: Final = re.compile(r"(?<!\\)&")


class Selector(msgspec.Struct, frozen=True, omit_defaults=True):
    r"""The rows that have all of the given properties; at least one is given.

    Attributes:
        object: What their time is spent on, one of `SELECTABLE_OBJECTS`; empty for any.
        name_regex: Found somewhere in their name (`re.search`); empty for any.
        stage: One of `ALL_STAGES`; empty for any.
        rank: Global rank; None for any.
        stream: Stream number as recorded; None for any.
        kind: Kind of collective, one of `SELECTABLE_KINDS`; empty for any.

    Raises:
        UsageError: Nothing is given, or a property has a value that none can have.

    >>> Selector(object="compute", rank=2).to_text(), Selector(name_regex="a&b").to_text()
    ('compute&rank:2', 'name:a\\&b')
    """

    object: str = ""
    name_regex: str = ""
    stage: str = ""
    rank: int | None = None
    stream: int | None = None
    kind: str = ""

    def __post_init__(self) -> None:
        """Refuse what selects nothing."""
        if not any((self.object, self.name_regex, self.stage, self.kind)) and (self.rank, self.stream) == (None, None):
            _refuse(_FORMS, "nothing")
        for value, known, what in (
            (self.object, SELECTABLE_OBJECTS, "object"),
            (self.stage, ALL_STAGES, "stage"),
            (self.kind, SELECTABLE_KINDS, "kind of collective"),
        ):
            if value and value not in known:
                _refuse(f"a known {what} ({', '.join(known)})", repr(value), hint=_nearest(value, known))
        for number, what in ((self.rank, "rank"), (self.stream, "stream")):
            if number is not None and not 0 <= number < NUMBER_MAX:
                _refuse(f"a {what} from 0 on", f"{what}:{number}")
        if self.name_regex:
            _compile(self.name_regex)

    def name_pattern(self) -> re.Pattern[str] | None:
        """Return the compiled `name_regex`, None where any name will do."""
        return _compile(self.name_regex) if self.name_regex else None

    def to_text(self) -> str:
        """Return what `parse_selector` reads."""
        terms = [self.object] if self.object else []
        terms += [f"kind:{self.kind}"] if self.kind else []
        terms += [f"stage:{self.stage}"] if self.stage else []
        terms += [f"rank:{self.rank}"] if self.rank is not None else []
        terms += [f"stream:{self.stream}"] if self.stream is not None else []
        terms += ["name:" + self.name_regex.replace("&", r"\&")] if self.name_regex else []
        return "&".join(terms)

    def says(self) -> str:
        """Return what is selected, for a person.

        >>> Selector(object="compute", stage="backward", rank=2).says()
        'compute in backward on rank 2'
        >>> Selector(name_regex="^fsdp").says()
        'what is named like ^fsdp'
        """
        subject = self.kind or self.object
        words = [subject] if subject else []
        words += [f"named like {self.name_regex}"] if self.name_regex else []
        words += [f"in {self.stage}"] if self.stage else []
        words += [f"on stream {self.stream}"] if self.stream is not None else []
        words += [f"on rank {self.rank}"] if self.rank is not None else []
        if subject:
            return " ".join(words)
        only_where = not self.name_regex
        return ("everything " if only_where else "what is ") + " ".join(words)


def parse_selector(text: str) -> Selector:
    r"""Read a selector.

    Args:
        text: Terms with `&` between; an ampersand inside a regular expression is written `\&`.

    Raises:
        UsageError: A term is none of the known ones, comes twice, or has a value that none can have.

    >>> parse_selector("rank:2&compute") == Selector(object="compute", rank=2)
    True
    """
    given: dict[str, str | int] = {}
    for term in _SEPARATOR.split(text):
        field, value = _term(term)
        if field in given:
            _refuse(f"each property once; {field.removesuffix('_regex')} comes twice", repr(text))
        given[field] = value
    return Selector(**given)  # type: ignore[arg-type]  # `_term` pairs each field with its own type


def _term(term: str) -> tuple[str, str | int]:
    word, colon, value = term.partition(":")
    word = word.strip()
    if not colon:
        if word not in SELECTABLE_OBJECTS:
            _refuse(_FORMS, repr(word), hint=_nearest(word, _AS_WRITTEN))
        return "object", word
    if word == "name":
        if not value:
            _refuse("a regular expression after name:", "nothing")
        return "name_regex", value.replace(r"\&", "&")
    if word in ("stage", "kind"):
        return word, value.strip() or _refuse(f"a name after {word}:", "nothing")
    if word in ("rank", "stream"):
        if not _NUMBER.fullmatch(value.strip()):
            _refuse(f"a number after {word}:", repr(value))
        return word, int(value)
    return _refuse(_FORMS, repr(term))


def compile_quietly(pattern: str) -> re.Pattern[str]:
    """Compile a user's regular expression; what Python warns of for its own future is none of the user's business.

    Raises:
        re.error: It is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern)


def _compile(pattern: str) -> re.Pattern[str]:
    if len(pattern) > REGEX_MAX_CHARS:
        _refuse(f"a regular expression of at most {REGEX_MAX_CHARS} characters", f"{len(pattern):,}")
    try:
        return compile_quietly(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        _refuse("a regular expression", f"{pattern!r} ({error})")


def _nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint at the known word that was probably meant."""
    near = get_close_matches(word.lower(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _refuse(expected: str, found: str, *, hint: str = "") -> NoReturn:
    msg = f"expected {expected}; found {found}{hint}"
    raise UsageError(msg)
