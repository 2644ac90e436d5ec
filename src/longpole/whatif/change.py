"""The changes that a what-if may make, as data, and how they are written on a command line.

A change says what is different; how that alters the graph stands with the engine. `to_text` and `parse_change` are
inverse to each other, so that a report, a candidate and a shell history all name a change in the same words.
"""

from __future__ import annotations

import math
import re
from typing import Final, NoReturn, TypeAlias

import msgspec

from longpole.errors import UsageError
from longpole.units import format_bytes, format_ns, parse_bytes, parse_ns, write_bytes_exactly, write_ns_exactly
from longpole.whatif.selector import SELECTABLE_KINDS, Selector, parse_selector

FACTOR_MAX: Final = 1000.0  # our choice: nothing measured stretches so far
DELTA_MAX_NS: Final = 3600 * 10**9  # our choice: an hour for each occurrence
SIZE_MAX_BYTES: Final = 10**15  # our choice: beyond any buffer
EQUALISE_BY: Final = ("work", "speed")
PREFETCHABLE: Final = ("input",)
WRITTEN_OBJECTS: Final = ("output", "state", "artifact")
_VALUES: Final = "0.5x (a factor), 0, +2ms or -2ms (added to each occurrence)"
_FACTOR: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3}))?\s*[x×]", re.ASCII)


class Scale(msgspec.Struct, frozen=True, tag="scale"):
    """Each selected row takes `factor` times as long; 0 removes it.

    Raises:
        UsageError: The factor is negative, not finite or above `FACTOR_MAX`.
    """

    selector: Selector
    factor: float

    def __post_init__(self) -> None:
        """Refuse a factor that means nothing."""
        if not (math.isfinite(self.factor) and 0 <= self.factor <= FACTOR_MAX):
            _refuse(f"a factor from 0 to {FACTOR_MAX:g}", f"{self.factor!r}")

    def says(self) -> str:
        """Return the change for a person."""
        if self.factor == 0:
            return f"{self.selector.says()} takes no time"
        return f"{self.selector.says()} takes {self.factor:g} times as long"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--set {self.selector.to_text()}={'0' if self.factor == 0 else f'{self.factor!r}x'}"


class Add(msgspec.Struct, frozen=True, tag="add"):
    """Each selected row takes `delta_ns` longer, or shorter where it is negative, but never less than no time.

    Raises:
        UsageError: The time is 0, or more than an hour.
    """

    selector: Selector
    delta_ns: int

    def __post_init__(self) -> None:
        """Refuse a time that changes nothing, or that nothing measured could take."""
        if not 0 < abs(self.delta_ns) <= DELTA_MAX_NS:
            _refuse("a time to add that is not 0 and at most an hour", f"{self.delta_ns} ns")

    def says(self) -> str:
        """Return the change for a person."""
        way = "longer" if self.delta_ns > 0 else "shorter"
        return f"each occurrence of {self.selector.says()} is {format_ns(abs(self.delta_ns))} {way}"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        sign = "+" if self.delta_ns > 0 else "-"
        return f"--set {self.selector.to_text()}={sign}{write_ns_exactly(abs(self.delta_ns))}"


class Prefetch(msgspec.Struct, frozen=True, tag="prefetch"):
    """The next unit's `object` is prepared while this unit runs.

    Raises:
        UsageError: It is not an object that can be prefetched.
    """

    object: str = "input"

    def __post_init__(self) -> None:
        """Refuse what cannot be prefetched."""
        if self.object not in PREFETCHABLE:
            _refuse(" or ".join(PREFETCHABLE), repr(self.object))

    def says(self) -> str:
        """Return the change for a person."""
        return f"{self.object} is prefetched: the next batch is prepared while this one is worked on"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--prefetch {self.object}"


class AsyncCopy(msgspec.Struct, frozen=True, tag="async_copy"):
    """Copies that the host waits for no longer hold it up."""

    def says(self) -> str:
        """Return the change for a person."""
        return "copies that the host waits for become asynchronous"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return "--async-copy"


class Fuse(msgspec.Struct, frozen=True, tag="fuse"):
    """Successive collectives of one kind are joined until their buffers reach `size_bytes`.

    Raises:
        UsageError: No collective is of that kind, or the size is not one.
    """

    kind: str
    size_bytes: int

    def __post_init__(self) -> None:
        """Refuse an unknown kind and a size out of range."""
        _check_kind_and_size(self.kind, self.size_bytes)

    def says(self) -> str:
        """Return the change for a person."""
        return f"successive {self.kind} are fused up to {format_bytes(self.size_bytes)}"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--fuse {self.kind}={write_bytes_exactly(self.size_bytes)}"


class Split(msgspec.Struct, frozen=True, tag="split"):
    """Collectives of one kind are cut into parts of at most `size_bytes`.

    Raises:
        UsageError: No collective is of that kind, or the size is not one.
    """

    kind: str
    size_bytes: int

    def __post_init__(self) -> None:
        """Refuse an unknown kind and a size out of range."""
        _check_kind_and_size(self.kind, self.size_bytes)

    def says(self) -> str:
        """Return the change for a person."""
        return f"{self.kind} larger than {format_bytes(self.size_bytes)} are split into parts of that size"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--split {self.kind}={write_bytes_exactly(self.size_bytes)}"


class Equalise(msgspec.Struct, frozen=True, tag="equalise"):
    """Ranks are made equal: `work` spreads the same work evenly, `speed` gives all the others' median pace.

    Raises:
        UsageError: It is neither.
    """

    by: str

    def __post_init__(self) -> None:
        """Refuse what ranks cannot be made equal by."""
        if self.by not in EQUALISE_BY:
            _refuse(" or ".join(EQUALISE_BY), repr(self.by))

    def says(self) -> str:
        """Return the change for a person."""
        if self.by == "work":
            return "the same work is spread evenly over the ranks"
        return "every rank does its own work at the others' median pace"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--equalise {self.by}"


class IssueEarly(msgspec.Struct, frozen=True, tag="issue_early"):
    """Selected collectives and copies start as soon as what they need is there.

    Raises:
        UsageError: The selector names neither collectives nor rows by name.
    """

    selector: Selector

    def __post_init__(self) -> None:
        """Refuse rows that are not issued."""
        if not (self.selector.object == "collective" or self.selector.kind or self.selector.name_regex):
            _refuse("collective, kind:all_reduce or name:REGEX", repr(self.selector.to_text()))

    def says(self) -> str:
        """Return the change for a person."""
        return f"{self.selector.says()} is issued as early as its inputs allow"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--issue-early {self.selector.to_text()}"


class GraphLaunches(msgspec.Struct, frozen=True, tag="graph_launches"):
    """Launches are captured once and replayed as a graph; gaps inside an already captured graph stay."""

    def says(self) -> str:
        """Return the change for a person."""
        return "launches are captured in a graph, so that the host no longer paces them"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return "--graph-launches"


class OffPath(msgspec.Struct, frozen=True, tag="off_path"):
    """Selected writes go on beside the work that now waits for them.

    Raises:
        UsageError: The selector names neither a moved object nor rows by name.
    """

    selector: Selector

    def __post_init__(self) -> None:
        """Refuse rows that are not written."""
        if not (self.selector.object in WRITTEN_OBJECTS or self.selector.name_regex):
            _refuse(f"{', '.join(WRITTEN_OBJECTS)} or name:REGEX", repr(self.selector.to_text()))

    def says(self) -> str:
        """Return the change for a person."""
        return f"{self.selector.says()} is moved off the path: nothing waits for it any more"

    def to_text(self) -> str:
        """Return the change as it is written on a command line."""
        return f"--off-path {self.selector.to_text()}"


Change: TypeAlias = Scale | Add | Prefetch | AsyncCopy | Fuse | Split | Equalise | IssueEarly | GraphLaunches | OffPath
"""One change; a what-if makes several in order, and replays them together."""

FLAGS: Final = ("--async-copy", "--graph-launches")
OPTIONS: Final = (
    "--set",
    "--remove",
    "--prefetch",
    "--async-copy",
    "--fuse",
    "--split",
    "--equalise",
    "--issue-early",
    "--graph-launches",
    "--off-path",
)
"""Every option that is a change, in the order of the help; `FLAGS` take no value."""


def parse_change(text: str) -> Change:
    """Read a change as `to_text` writes it: an option and its value.

    Raises:
        UsageError: It is none; the message names the option, what it takes, and what it was given.

    >>> parse_change("--set rank:2&compute=0.5x").says()
    'compute on rank 2 takes 0.5 times as long'
    """
    option, _, value = text.lstrip(" ").partition(" ")
    return parse_option(option, value.lstrip(" "))


def parse_option(option: str, value: str) -> Change:
    """Read the value of one option of `OPTIONS`; flags have none.

    Raises:
        UsageError: There is no such option, or its value is not what it takes.
    """
    if option not in OPTIONS:
        _refuse(f"one of {', '.join(OPTIONS)}", repr(option))
    try:
        return _parse(option, value)
    except UsageError as error:
        shown = f" {value}" if value else ""
        msg = f"{option}{shown}: {error}"
        raise UsageError(msg) from None


def _parse(option: str, value: str) -> Change:  # noqa: PLR0911 - one branch an option
    match option:
        case "--set":
            return _parse_set(value)
        case "--remove":
            return Scale(parse_selector(value), 0.0)
        case "--prefetch":
            return Prefetch(value.strip())
        case "--fuse":
            return Fuse(*_kind_and_size(value))
        case "--split":
            return Split(*_kind_and_size(value))
        case "--equalise":
            return Equalise(value.strip())
        case "--issue-early":
            return IssueEarly(parse_selector(value))
        case "--off-path":
            return OffPath(parse_selector(value))
        case _:
            if value:
                _refuse("no value", repr(value))
            return AsyncCopy() if option == "--async-copy" else GraphLaunches()


def _parse_set(text: str) -> Scale | Add:
    selector_text, equals, value = text.rpartition("=")
    if not equals:
        _refuse(f"SELECTOR=VALUE, where VALUE is {_VALUES}", repr(text))
    selector = parse_selector(selector_text)
    value = value.strip()
    if value[:1] in ("+", "-", "−"):
        delta_ns = parse_ns(value[1:])
        if delta_ns is None:
            _refuse(f"a time with its unit after {value[:1]}, such as +2ms, -500us or +0.1s", repr(value))
        return Add(selector, delta_ns if value[0] == "+" else -delta_ns)
    factor = _FACTOR.fullmatch(value)
    if value == "0" or factor:
        return Scale(selector, float(value.rstrip("x× ")))
    return _refuse(_VALUES, repr(value))


def _kind_and_size(text: str) -> tuple[str, int]:
    kind, equals, size = text.rpartition("=")
    size_bytes = parse_bytes(size) if equals else None
    if size_bytes is None:
        _refuse("KIND=SIZE, such as all_reduce=25MB (or 25MiB)", repr(text))
    return kind.strip(), size_bytes


def _check_kind_and_size(kind: str, size_bytes: int) -> None:
    if kind not in SELECTABLE_KINDS:
        _refuse(f"a kind of collective ({', '.join(SELECTABLE_KINDS)})", repr(kind))
    if not 0 < size_bytes <= SIZE_MAX_BYTES:
        _refuse("a size above 0 and at most 1,000 TB", f"{size_bytes:,} B")


def _refuse(expected: str, found: str) -> NoReturn:
    msg = f"expected {expected}; found {found}"
    raise UsageError(msg)
