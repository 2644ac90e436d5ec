"""Changes of a job of timed operations: which operations, and what becomes of them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import msgspec
import numpy as np

from longpole.errors import UsageError
from longpole.records.operations import OperationKind
from longpole.units import format_ns, parse_ns
from longpole.whatif.change import FACTOR_MAX
from longpole.whatif.operations import equalised_ns
from longpole.whatif.selector import REGEX_MAX_CHARS, compile_quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longpole.graph.operations.build import OperationGraph
    from longpole.records.operations import OperationTable

    Ints: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]

_NUMBERED: Final = ("stage", "rank", "dp", "tp", "step")
_OBJECTS: Final = ("compute", "collective")
_FORMS: Final = (
    "name:REGEX, stage:N, rank:N, dp:N, tp:N, step:N, compute or collective, or several of them with & between"
)
_VALUES: Final = "0.5x (a factor), 0, +2ms or -2ms (added to each), mean or median (of its type)"
_FACTOR: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*[x×]", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)
_SEPARATOR: Final = re.compile(r"(?<!\\)&")


class OperationChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The operations that have all of the given properties, and what they take afterwards.

    What an operation takes is its own work: of communication the transfer, not the waiting for others.

    Attributes:
        text: As it is written on a command line, without the option.
        name_regex: Found somewhere in the type's name; empty for any.
        object: `compute`, `collective` (all communication), or empty for any.
        at: `stage`, `rank`, `dp`, `tp` or `step`, and the number.
        factor: Each takes so many times as long, then
        delta_ns: so much longer, but never less than no time.
        to: `mean` or `median` of all operations of its type (before anything else changes); `ideal`, the one or the
            other as nobody straggles; `speed`: its worker's mean becomes the median of its peers'; empty to keep.
    """

    text: str
    name_regex: str = ""
    object: str = ""
    at: dict[str, int] = {}
    factor: float = 1.0
    delta_ns: int = 0
    to: str = ""

    def says(self) -> str:
        """Return the change for a person."""
        who = self.text.rpartition("=")[0] or "every operation"
        if self.to == "ideal":
            return "nobody straggles: each computation takes the mean of its type, each transfer the median"
        if self.to == "speed":
            return "every rank works at the median pace of its stage's other ranks"
        if self.to:
            return f"{who}: each takes the {self.to} of its type"
        if self.delta_ns:
            return f"{who}: each takes {format_ns(abs(self.delta_ns))} {'longer' if self.delta_ns > 0 else 'less'}"
        return f"{who}: no time" if self.factor == 0 else f"{who}: {self.factor:g} times as long"

    def rows(self, table: OperationTable) -> Flags:
        """Return `[N]` bool: the operations that are meant."""
        chosen = np.ones(len(table), bool)
        if self.name_regex:
            pattern = compile_quietly(self.name_regex)
            chosen &= np.array([bool(pattern.search(kind.name)) for kind in table.types], bool)[table.optype]
        if self.object:
            chosen &= (table.kind == OperationKind.COMPUTE) == (self.object == "compute")
        for word, number in self.at.items():
            own = {"dp": "dp_rank", "tp": "tp_rank"}.get(word, word)
            of_row = getattr(table, own) if own in ("rank", "step") else table.of_worker(own)
            chosen &= of_row == number
        return chosen


def parse_operation_change(option: str, value: str) -> OperationChange:
    """Read `--set SELECTOR=VALUE`, `--remove SELECTOR` or `--equalise work|speed`.

    Raises:
        UsageError: It is none of them; the message says what was expected.

    >>> parse_operation_change("--set", "rank:2&name:forward=0.5x").factor
    0.5
    """
    try:
        if option == "--set":
            return _parse_set(value)
        if option == "--remove":
            return _parse_set(f"{value}=0")
        if option == "--equalise":
            return _parse_equalise(value.strip())
    except UsageError as error:
        msg = f"{option} {value}: {error}"
        raise UsageError(msg) from None
    return _refuse(
        "--set, --remove or --equalise; an operation table holds nothing that another change could act on", option
    )


def changed_work_ns(graph: OperationGraph, changes: list[OperationChange]) -> tuple[Ints, list[int]]:
    """Return what every operation takes after all changes, in order, and how many operations each one is about.

    Args:
        graph: The job.
        changes: At least one.

    Returns:
        `[N]` int64 ns, and a count for each change.
    """
    table, work_ns = graph.table, graph.work_ns.copy()
    counts = []
    for change in changes:
        rows = change.rows(table)
        counts.append(int(rows.sum()))
        new_ns = _target_ns(change.to, graph)
        own = work_ns[rows] if new_ns is None else new_ns[rows]
        work_ns[rows] = np.maximum(np.rint(own * change.factor).astype(np.int64) + change.delta_ns, 0)
    return work_ns, counts


def _target_ns(to: str, graph: OperationGraph) -> Ints | None:
    if not to:
        return None
    table, work_ns = graph.table, graph.work_ns
    if to == "mean":
        cell = table.optype.astype(np.int64)
        return np.rint(np.bincount(cell, weights=work_ns) / np.maximum(np.bincount(cell), 1))[cell].astype(np.int64)
    if to == "median":
        median = {code: np.median(work_ns[table.optype == code]) for code in np.unique(table.optype).tolist()}
        return np.rint(np.array([median.get(code, 0.0) for code in range(len(table.types))]))[table.optype].astype(
            np.int64
        )
    return equalised_ns(table, work_ns) if to == "ideal" else _at_peers_pace(table, work_ns)


def _at_peers_pace(table: OperationTable, work_ns: Ints) -> Ints:
    """Return what computations take where each worker's mean is the median of those of its stage, of the same type."""
    n_types = len(table.types)
    cell = table.worker.astype(np.int64) * n_types + table.optype
    size = len(table.workers) * n_types
    count = np.bincount(cell, minlength=size)
    mean = np.bincount(cell, weights=work_ns, minlength=size) / np.maximum(count, 1)
    mean, present = mean.reshape(-1, n_types), count.reshape(-1, n_types) > 0
    stage = np.array([worker.stage for worker in table.workers])
    factor = np.ones_like(mean)
    for number in np.unique(stage):
        peers = np.flatnonzero(stage == number)
        for code in range(n_types):
            own = peers[present[peers, code] & (mean[peers, code] > 0)]
            if len(own) > 1:
                factor[own, code] = np.median(mean[own, code]) / mean[own, code]
    compute = table.kind == OperationKind.COMPUTE
    scaled = np.rint(work_ns * factor[table.worker, table.optype]).astype(np.int64)
    return np.where(compute, scaled, work_ns)


def _parse_equalise(by: str) -> OperationChange:
    if by == "work":
        return OperationChange(f"--equalise {by}", object="compute", to="mean")
    if by == "speed":
        return OperationChange(f"--equalise {by}", to="speed")
    if by == "all":
        return OperationChange(f"--equalise {by}", to="ideal")
    return _refuse("work, speed or all (nobody straggles)", repr(by))


def _parse_set(text: str) -> OperationChange:
    selector, equals, value = text.rpartition("=")
    if not equals:
        _refuse(f"SELECTOR=VALUE, where VALUE is {_VALUES}", repr(text))
    fields = _parse_selector(selector)
    value = value.strip()
    if value in ("mean", "median"):
        return OperationChange(text, to=value, **fields)
    if value[:1] in ("+", "-"):
        delta_ns = parse_ns(value[1:])
        if not delta_ns:
            _refuse("a time with its unit, such as +2ms or -500us", repr(value))
        return OperationChange(text, delta_ns=delta_ns if value[0] == "+" else -delta_ns, **fields)
    factor = _FACTOR.fullmatch(value)
    if value != "0" and factor is None:
        _refuse(_VALUES, repr(value))
    number = float(factor[1]) if factor else 0.0
    if not (math.isfinite(number) and number <= FACTOR_MAX):
        _refuse(f"a factor from 0 to {FACTOR_MAX:g}", repr(value))
    return OperationChange(text, factor=number, **fields)


def _parse_selector(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"at": {}}
    for term in _SEPARATOR.split(text):
        word, colon, value = (part.strip() for part in term.partition(":"))
        if not colon and word in _OBJECTS:
            fields["object"] = word
        elif word == "name" and value:
            fields["name_regex"] = _checked_regex(value.replace(r"\&", "&"))
        elif word in _NUMBERED and _NUMBER.fullmatch(value):
            fields["at"][word] = int(value)
        else:
            _refuse(_FORMS, repr(term))
    return fields


def _checked_regex(pattern: str) -> str:
    if len(pattern) > REGEX_MAX_CHARS:
        _refuse(f"a regular expression of at most {REGEX_MAX_CHARS} characters", f"{len(pattern):,}")
    try:
        compile_quietly(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        _refuse("a regular expression", f"{pattern!r} ({error})")
    return pattern


def _refuse(expected: str, found: str) -> NoReturn:
    msg = f"expected {expected}; found {found}"
    raise UsageError(msg)
