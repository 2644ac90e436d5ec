"""The texts of options as values; an error names the option, what it takes, and what it was given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = TypeVar("Value")

_UNITS: Final = re.compile(r"(\d{0,18})\.\.(\d{0,18})|(\d{1,18})", re.ASCII)
_RANKS: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_COUNT: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_ITEMS: Final = re.compile(r"[1-9]\d{0,17}", re.ASCII)
_AMOUNT: Final = re.compile(r"\d{1,18}(\.\d{0,18})?(e\+?\d{1,2})?", re.ASCII)
_KIND: Final = re.compile(r"[a-z][a-z_-]{0,31}", re.ASCII)
_KEY: Final = re.compile(r"[a-z][a-z_]{0,40}(\.[a-z][a-z_]{0,40}){0,2}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_MOST_RANKS: Final = 1_000_000


def parse_units(text: str) -> tuple[int | None, int | None]:
    """Read a range of unit numbers, both ends included.

    >>> parse_units("3..7"), parse_units("3.."), parse_units("5")
    ((3, 7), (3, None), (5, 5))

    Raises:
        UsageError: It is no range, or its end lies before its beginning.
    """
    match = _UNITS.fullmatch(text.strip())
    if match is None or text.strip() == "..":
        _refuse("--units", "a range such as 3..7, 3.. or ..7, or one number", text)
    if match[3]:
        return int(match[3]), int(match[3])
    first, last = (int(end) if end else None for end in match.group(1, 2))
    if first is not None and last is not None and last < first:
        _refuse("--units", "a range whose end is not before its beginning", text)
    return first, last


def parse_ranks(text: str) -> frozenset[int]:
    """Read a set of ranks: numbers and ranges with commas between them.

    >>> sorted(parse_ranks("0,3-5"))
    [0, 3, 4, 5]

    Raises:
        UsageError: A part is neither a number nor a range, or there are more than a million.
    """
    ranks: set[int] = set()
    for part in text.split(","):
        match = _RANKS.fullmatch(part.strip())
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if last < first or last - first >= _MOST_RANKS:
            _refuse("--rank", "ranks and ranges such as 0,3-5", text)
        ranks.update(range(first, last + 1))
    return frozenset(ranks)


def parse_if_given(parse: Callable[[str], Value], text: str | None) -> Value | None:
    """Read the text of an option that may not have been given."""
    return None if text is None else parse(text)


def parse_count(option: str, text: str | None) -> int | None:
    """Read a whole number of at least 1; None where the option was not given.

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return None
    if not _COUNT.fullmatch(text.strip()):
        _refuse(option, "a whole number of at least 1", text)
    return int(text)


def parse_amount(option: str, text: str | None) -> float | None:
    """Read a number above 0, a whole one as an integer; None where the option was not given.

    >>> parse_amount("--units-per-run", "1000"), parse_amount("--units-per-run", "2.5")
    (1000, 2.5)

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return None
    if not _AMOUNT.fullmatch(text.strip()) or not float(text) > 0:
        _refuse(option, "a number above 0", text)
    return int(text) if _ITEMS.fullmatch(text.strip()) else float(text)


def parse_items(option: str, text: str) -> tuple[int, str]:
    """Read how many items a unit processes, and of what kind where that is said.

    >>> parse_items("--items", "16384:token"), parse_items("--items", "32")
    ((16384, 'token'), (32, ''))

    Raises:
        UsageError: It is not of the form N or N:KIND.
    """
    count, colon, kind = text.partition(":")
    if not _ITEMS.fullmatch(count.strip()) or (colon and not _KIND.fullmatch(kind.strip())):
        _refuse(option, "N or N:KIND, such as 16384:token, where N is a whole number of at least 1", text)
    return int(count), kind.strip()


def parse_items_of(texts: Sequence[str]) -> dict[str, int]:
    """Read the items of single runs, each as RUN=N; a run's name may hold an equals sign.

    >>> parse_items_of(["n1=256", "runs/n8=32"])
    {'n1': 256, 'runs/n8': 32}

    Raises:
        UsageError: One is not of that form, or a run is named twice.
    """
    items: dict[str, int] = {}
    for text in texts:
        run, equals, count = text.rpartition("=")
        if not (equals and run and _COUNT.fullmatch(count.strip())):
            _refuse("--items-of", "RUN=N, where N is a whole number of at least 1", text)
        if run in items:
            _refuse("--items-of", "each run once", text)
        items[run] = int(count)
    return items


def parse_choice(option: str, text: str, choices: Sequence[str]) -> str:
    """Read one of several words.

    Raises:
        UsageError: It is none of them.
    """
    if text not in choices:
        _refuse(option, f"one of {', '.join(choices)}", text)
    return text


def parse_assignments(option: str, texts: Sequence[str]) -> list[tuple[str, object]]:
    """Read values by key, each as KEY=VALUE with a value as TOML has it; a bare word is a text.

    >>> parse_assignments("--set", ["layout.tp=8", "training.recompute=full", "search.zero=[1, 3]"])
    [('layout.tp', 8), ('training.recompute', 'full'), ('search.zero', [1, 3])]

    Raises:
        UsageError: One is not of that form.
    """
    return [_assignment(option, text) for text in texts]


def _assignment(option: str, text: str) -> tuple[str, object]:
    import tomllib

    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key) or not value.strip():
        _refuse(option, "KEY=VALUE, such as layout.tp=4", text)
    if _WORD.fullmatch(value.strip()) and value.strip() not in ("true", "false", "inf", "nan"):
        return key, value.strip()
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value.strip()


def _refuse(option: str, expected: str, found: str) -> NoReturn:
    msg = f"{option}: expected {expected}; found {found!r}"
    raise UsageError(msg)
