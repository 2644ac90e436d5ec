"""How wrong predictions of a kind of change were where reality was measured too: shipped pairs of recordings."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from longpole.whatif.change import Add, Equalise, Fuse, IssueEarly, OffPath, Prefetch, Scale, Split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.whatif.change import Change
    from longpole.whatif.selector import Selector


class Pair(msgspec.Struct, frozen=True):
    """One change, predicted from the recording before it and measured after it.

    Attributes:
        name: The change and its size.
        kind: Of what-if, and what it was done to.
        device: Class of device.
        before_ns: Median period before.
        predicted_ns: Predicted median period.
        measured_ns: Median period after.
    """

    name: str
    kind: str
    device: str
    before_ns: int
    predicted_ns: int
    measured_ns: int


class Spread(msgspec.Struct, frozen=True):
    """Errors of the predicted period over the pairs of a kind, as shares of the measured one.

    Attributes:
        kind: Of change.
        pairs: How many.
        median_share: Median size of the error.
        p90_share: Nine in ten were no further off.
        bias_share: Median signed error; negative where predictions were too fast.
        source: Where the pairs come from.
    """

    kind: str
    pairs: int
    median_share: float
    p90_share: float
    bias_share: float
    source: str


def kind_of(changes: Sequence[Change]) -> str:
    """Return the kind of a set of changes as pairs name it: `scale:input`, `prefetch:input`, `several`."""
    if len(changes) != 1:
        return "several"
    change = changes[0]
    tag = str(change.__struct_config__.tag)
    match change:
        case Scale() | Add():
            tag, subject = "scale", _subject(change.selector)
        case Prefetch():
            subject = change.object
        case Fuse() | Split():
            subject = change.kind
        case Equalise():
            subject = change.by
        case IssueEarly() | OffPath():
            subject = _subject(change.selector)
        case _:
            return tag
    return f"{tag}:{subject}"


def _subject(selector: Selector) -> str:
    return selector.object or selector.kind or ("name" if selector.name_regex else "rows")


def spread_of(kind: str, device: str) -> Spread | None:
    """Return how far predictions of a kind of change were off on a class of device, None where it was never tried.

    Args:
        kind: As `kind_of` says; where that very kind was tried too seldom, all kinds of the same sort count.
        device: Class of device.
    """
    mine = [pair for pair in shipped_pairs() if pair.device == device]
    alike = [pair for pair in mine if pair.kind == kind]
    if len(alike) < _FEWEST:
        alike = [pair for pair in mine if pair.kind.partition(":")[0] == kind.partition(":")[0]]
        kind = f"{kind.partition(':')[0]} (all)"
    if len(alike) < _FEWEST:
        return None
    errors = np.array([pair.predicted_ns / pair.measured_ns - 1 for pair in alike])
    sizes = np.sort(np.abs(errors))
    p90 = float(sizes[-(-9 * len(sizes) // 10) - 1])
    source = f"recorded on {device}, see docs/concepts/how-good-are-predictions.md"
    return Spread(kind, len(alike), float(np.median(sizes)), p90, float(np.median(errors)), source)


_FEWEST = 3  # our choice: a spread of two says nothing


@cache
def shipped_pairs() -> tuple[Pair, ...]:
    """Return the pairs that the package ships."""
    text = (files("longpole.whatif") / "pairs.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(row, Pair) for row in tomllib.loads(text).get("pair", []))
