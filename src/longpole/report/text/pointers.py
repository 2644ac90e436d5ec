"""JSON Pointers into a report, said in words: `/ranks/3/ledger/objects/input/hidden_ns` is input's hidden part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.records.collectives import CollectiveEntry
from longpole.report.document import ClockEntry, RankEntry, UnitEntry
from longpole.report.escape import escape
from longpole.report.text.words import unit_noun, with_article

if TYPE_CHECKING:
    from longpole.report.document import Report

_WORDS: Final = {
    "service_ns": "time in all",
    "hidden_ns": "hidden part",
    "waiting_ns": "waiting part",
    "exposed_ns": "exposed time",
    "busy_ns": "busy time",
    "idle_ns": "idle time",
    "period_ns": "period",
    "p95": "P95",
    "offset_ns": "offset",
    "device_span": "time on the device",
    "world_size": "number of ranks",
    "long_pole": "cause of the long pole",
    "memory": "peak memory",
    "gb_per_s": "rate",
    "algbw_gb_per_s": "rate",
    "busbw_gb_per_s": "bus rate",
    # All of these are known where operations could be split, and none of them elsewhere.
    **dict.fromkeys(("skew_ns", "transfer_ns", "waiting_ns_by_rank", "by_size"), "waiting and transfer"),
    **dict.fromkeys(("culprit_rank", "culprit_share", "culprit_by_unit"), "who was last"),
}
# Levels of the document that say nothing to a reader of the page.
_SILENT: Final = frozenset({"ledger", "objects", "ranks", "units", "run", "top"})
# Levels whose figures are known or not known together.
_WHOLE: Final = frozenset({"device_span", "items", "by_size", "waiting_ns_by_rank", "slowdown"})


@dataclass(frozen=True, slots=True)
class Place:
    """A figure in words.

    Attributes:
        rank: The rank that it belongs to, None for the run.
        owner: What it is a figure of, or what it is.
        part: Which one of the owner's, empty where the owner says it.
    """

    rank: int | None
    owner: str
    part: str = ""


def say_pointer(pointer: str, report: Report) -> Place:
    """Say which figure a pointer points at; one that does not resolve is said as well as it can be."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    rank = None
    words: list[str] = []
    parent: Any = None
    value: Any = report
    for token in tokens:
        parent, value = value, _inside(value, token)
        if isinstance(value, RankEntry | ClockEntry):
            rank = value.rank
        elif isinstance(value, CollectiveEntry):
            words = [f"{value.kind} {value.role or value.group}".strip()]
        elif isinstance(value, UnitEntry):
            words.append(value.name)
        elif isinstance(parent, list):
            words.append(f"no. {token}")
        elif token not in _SILENT:
            words.append(_WORDS.get(token, token.removesuffix("_ns").replace("_", " ")))
        if token in _WHOLE:
            break
    if tokens[:1] == ["unit"] and words[1:]:
        noun = escape(unit_noun(report.unit.kind))
        return Place(None, f"{escape(words[1])} of {with_article(noun)}", escape(", ".join(words[2:])))
    if not words:
        return Place(rank, "ranks" if rank is None else "all figures")
    return Place(rank, escape(words[0]), escape(", ".join(words[1:])))


def _inside(value: Any, token: str) -> Any:
    """Return what a token leads to, None where it leads nowhere."""
    if isinstance(value, list):
        return value[int(token)] if token.isdecimal() and int(token) < len(value) else None
    if isinstance(value, dict):
        return value.get(token)
    return getattr(value, token, None)
