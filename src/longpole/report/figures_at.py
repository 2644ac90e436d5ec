"""Read a figure from a report by its JSON Pointer, in which `*` stands for every entry of a list or a map."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from longpole.records.ledger import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_THIRDS_FROM: Final = 6  # a trend compares two values of each third at least
_NOTHING: Final = Unknown("this run has no such figure")


@dataclass(frozen=True, slots=True)
class Place:
    """A value, and where it stands.

    Attributes:
        pointer: JSON Pointer without `*`.
        names: What each `*` stood for.
        value: The value.
    """

    pointer: str
    names: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Reading:
    """What was taken of the values that a pointer leads to.

    Attributes:
        value: A number or a text, or why there is none.
        share: It as a share of another figure; None where none was asked for.
        parts: Entry -> share of all, or name -> how often; None for what is one value.
        found_at: Pointer to the entry that was taken; empty where that is no single one.
    """

    value: float | str | Unknown
    share: float | Unknown | None = None
    parts: dict[str, float] | None = None
    found_at: str = ""


def resolve(document: msgspec.Struct, pointer: str) -> list[Place]:
    """Return all values that a pointer leads to, in the document's order; what is not there is left out.

    Args:
        document: Any document of ours.
        pointer: JSON Pointer; `*` stands for every entry.
    """
    places = [Place("", (), document)]
    for step in pointer.split("/")[1:]:
        places = [inner for place in places for inner in _step(place, step)]
    return places


def read_figure(document: msgspec.Struct, at: str, of: str, take: str) -> Reading:
    """Return what a figure of a symptom is in a document.

    Args:
        document: The report.
        at: Pointer to the values.
        of: Pointer to what it is a share of; empty for none. With as many `*` as `at` it is summed likewise.
        take: One of `advice.symptoms.TAKES`.
    """
    places = resolve(document, at)
    if take in _MAPS:
        return _MAPS[take](places)
    if take == "sum" and of.count("*") == at.count("*") > 0:
        return _sums(places, resolve(document, of))
    reading = _number(places, take)
    if not of:
        return reading
    whole = _number(resolve(document, of), "value").value
    share = _share(reading.value, whole)
    return Reading(reading.value, share, None, reading.found_at)


def _step(place: Place, step: str) -> Iterator[Place]:
    for name, value in _entries(place.value, step):
        names = (*place.names, name) if step == "*" else place.names
        yield Place(f"{place.pointer}/{_escaped(name)}", names, value)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _entries(value: Any, step: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a value that a step names; nothing of what has no entries, an unknown figure included."""
    if isinstance(value, Unknown):
        return
    if isinstance(value, msgspec.Struct):
        pairs = {name: getattr(value, name) for name in value.__struct_fields__}
    elif isinstance(value, dict):
        pairs = {str(name): inner for name, inner in value.items()}
    elif isinstance(value, list):
        pairs = {str(place): inner for place, inner in enumerate(value)}
    else:
        return
    wanted = pairs if step == "*" else [step]
    yield from ((name, pairs[name]) for name in wanted if name in pairs and pairs[name] is not UNSET)


def _known(places: Sequence[Place]) -> list[Place]:
    """Return the places with a number."""
    return [place for place in places if isinstance(place.value, int | float) and not isinstance(place.value, bool)]


def _why_not(places: Sequence[Place]) -> Unknown:
    """Return why no figure is there: the first reason that the document gives."""
    return next((place.value for place in places if isinstance(place.value, Unknown)), _NOTHING)


def _number(places: Sequence[Place], take: str) -> Reading:
    """Take one value of several."""
    if take == "count":
        return Reading(float(sum(bool(place.value) for place in places if not isinstance(place.value, Unknown))))
    if take == "value":
        value = places[0].value if places else _NOTHING
        return Reading(value if isinstance(value, int | float | str | Unknown) else _NOTHING)
    known = _known(places)
    if not known:
        return Reading(_why_not(places))
    if take in ("max", "min"):
        pick: Callable[..., Place] = max if take == "max" else min
        best = pick(known, key=lambda place: place.value)
        return Reading(best.value, found_at=best.pointer)
    if take == "sum":
        return Reading(sum(place.value for place in known))
    return _spread(known) if take == "spread" else _trend(known)


def _spread(known: Sequence[Place]) -> Reading:
    """Return the largest value over the median, of the group in which that is largest."""
    ratios = [
        (max(group, key=lambda place: place.value), median(place.value for place in group)) for group in _groups(known)
    ]
    usable = [(place.value / middle, place.pointer) for place, middle in ratios if middle > 0]
    if not usable:
        return Reading(_NOTHING)
    ratio, pointer = max(usable)
    return Reading(ratio, found_at=pointer)


def _trend(known: Sequence[Place]) -> Reading:
    """Return the last third's median over the first third's, of the group in which that is largest."""
    ratios = []
    for group in _groups(known):
        third = len(group) // 3
        first = median(place.value for place in group[:third]) if third else 0
        if len(group) >= _THIRDS_FROM and first > 0:
            ratios.append(median(place.value for place in group[-third:]) / first)
    return Reading(max(ratios)) if ratios else Reading(Unknown(f"fewer than {_THIRDS_FROM} units", ["more units"]))


def _groups(known: Sequence[Place]) -> list[list[Place]]:
    """Return the values by all that the pointer's `*` stood for but the last."""
    groups: dict[tuple[str, ...], list[Place]] = {}
    for place in known:
        groups.setdefault(place.names[:-1], []).append(place)
    return list(groups.values())


def _sums(places: Sequence[Place], wholes: Sequence[Place]) -> Reading:
    """Return a sum, and its share of another sum over the same entries: those in which both are known."""
    whole_of = {place.names: place.value for place in _known(wholes)}
    known = [place for place in _known(places) if place.names in whole_of]
    if not known:
        why = _why_not([*places, *wholes])
        return Reading(why, why)
    total = sum(place.value for place in known)
    return Reading(total, _share(total, sum(whole_of[place.names] for place in known)))


def _share(part: float | str | Unknown, whole: float | str | Unknown) -> float | Unknown:
    if isinstance(part, Unknown):
        return part
    if isinstance(whole, Unknown):
        return whole
    if isinstance(part, str) or isinstance(whole, str) or whole <= 0:
        return _NOTHING
    return part / whole


def _largest(places: Sequence[Place]) -> Reading:
    """Return the entries of a map, each as a share of their sum, the largest first."""
    if len(places) == 1 and isinstance(places[0].value, dict):
        entries = [Place("", (name,), value) for name, value in places[0].value.items()]
    else:
        entries = [Place("", place.names[-1:], place.value) for place in places]
    known = [place for place in _known(entries) if place.value > 0]
    total = sum(place.value for place in known)
    if not known:
        return Reading(_why_not(places))
    ranked = sorted(known, key=lambda place: -place.value)
    return Reading(total, parts={place.names[0]: place.value / total for place in ranked})


def _names(places: Sequence[Place]) -> Reading:
    """Return the texts that occur, with how often, the most frequent first."""
    counts: dict[str, float] = {}
    for place in places:
        if isinstance(place.value, str):
            counts[place.value] = counts.get(place.value, 0) + 1
    ranked = dict(sorted(counts.items(), key=lambda item: -item[1]))
    return Reading(float(sum(counts.values())), parts=ranked)


_MAPS: Final = {"largest": _largest, "names": _names}
