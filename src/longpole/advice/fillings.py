"""What the placeholders in a row's change stand for, filled from a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.advice.work_figures import SMALL_BYTES, costliest, small_count
from longpole.records.ledger import Unknown
from longpole.units import write_bytes_exactly

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.advice.figures import RunView
    from longpole.records.collectives import CollectiveEntry

BUCKET_BYTES: Final = 25 * 10**6
"""What small collectives are fused into: PyTorch's `bucket_cap_mb` is 25 by default."""

_NAMES_MAX_CHARS: Final = 480  # a selector's expression holds 500

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


class Placeholder(NamedTuple):
    """What a placeholder stands for, and what it may be filled with."""

    says: str
    example: str


PLACEHOLDERS: Final[Mapping[str, Placeholder]] = {
    "kind": Placeholder("the kind of collective with the most exposed time", "all_reduce"),
    "small_kind": Placeholder("the kind of collective with the most small operations in a unit", "all_reduce"),
    "bucket": Placeholder("25 MB, or the largest size of the small kind where that is larger", "25MB"),
    "half": Placeholder("half of the largest size of the costliest kind", "8MB"),
    "eighth": Placeholder("an eighth of the largest size of the costliest kind", "1MB"),
    "compiling": Placeholder(
        "the names of what compiles, captures or searches in the run (class `compile` of the vocabulary), those with"
        " most time first, as far as a selector holds them",
        "^(?:cudaStreamBeginCapture)$",
    ),
    "link_factor": Placeholder("the slowest pair's time brought to the median pair's, as a factor below 1", "0.5"),
}


def placeholders_of(text: str) -> set[str]:
    """Return the placeholders of a text; braces of a regular expression are none (`{2}`)."""
    return set(_PLACEHOLDER.findall(text))


def fill(text: str, fillings: Mapping[str, str | Unknown]) -> str | Unknown:
    """Return a change with its placeholders filled, or why one cannot be.

    Args:
        text: The change.
        fillings: Placeholder -> what it stands for in the run.
    """
    for name in sorted(placeholders_of(text)):
        value = fillings[name]
        if isinstance(value, Unknown):
            return value
        text = text.replace(f"{{{name}}}", value)
    return text


def fillings_of(view: RunView) -> dict[str, str | Unknown]:
    """Return what every placeholder stands for in a run.

    Args:
        view: The run.
    """
    none = Unknown("the run has no collectives of a known kind")
    top, small = costliest(view.collectives), _smallest(view.collectives)
    no_sizes = Unknown("the sizes of collectives were not recorded", ["sizes of collectives"])
    largest = max((row.bytes for row in top.by_size), default=0) if top is not None else 0
    factor = view.slow_link_factor
    return {
        "kind": top.kind if top is not None else none,
        "small_kind": small.kind if small is not None else none,
        "bucket": write_bytes_exactly(max(BUCKET_BYTES, _largest(small))) if small is not None else none,
        "half": write_bytes_exactly(max(largest // 2, 1)) if largest > 1 else no_sizes,
        "eighth": write_bytes_exactly(max(largest // 8, 1)) if largest > 1 else no_sizes,
        "compiling": _any_of(view.compiling)
        or Unknown("nothing that was recorded compiles, captures or searches", ["spans of compilation"]),
        "link_factor": f"{1 / factor:.3g}"
        if factor is not None and factor > 1
        else Unknown(
            "no rate of another link to compare with was recorded", ["a bandwidth test of each pair (nccl-tests)"]
        ),
    }


def _any_of(names: Sequence[str]) -> str:
    """Return the expression for whole names, as many as a selector holds; empty for none."""
    some: list[str] = []
    for name in names:
        escaped = re.escape(name)  # its ampersands too, as selectors want them
        if sum(len(one) + 1 for one in some) + len(escaped) > _NAMES_MAX_CHARS:
            break
        some.append(escaped)
    return f"^(?:{'|'.join(some)})$" if some else ""


def _smallest(entries: object) -> CollectiveEntry | None:
    known: list[CollectiveEntry] = [entry for entry in entries if entry.kind]  # type: ignore[attr-defined]
    return max(known, key=lambda entry: (small_count(entry), entry.count), default=None)


def _largest(entry: CollectiveEntry) -> int:
    return max((row.bytes for row in entry.by_size if row.bytes > SMALL_BYTES), default=0)
