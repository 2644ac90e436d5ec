"""Logs of nccl-tests as a record of collectives: the kind, the number of ranks and the setting of each test found out.

A test names its program in its first lines from nccl-tests 2.15 on. Before that the command line or the file's name may
tell, and else the rates: busbw / algbw is 2(n-1)/n for an all-reduce, (n-1)/n for its halves and all-to-all, 1 for the
rest, and only what reduces has an operator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.bench.collectives.plan import setting_name
from longpole.bench.collectives.points import Where, logged_point
from longpole.errors import InputError
from longpole.ranks.cost_model import bus_factor
from longpole.readers.container import open_stream
from longpole.readers.nccl_tests.json_file import looks_like_nccl_json, read_nccl_json
from longpole.readers.nccl_tests.text import looks_like_nccl_text, read_nccl_text
from longpole.records.bench_collectives import CollectivesSetting, CollectivesSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.records.bench_collectives import CollectivesPoint, Correctness, Placement
    from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest
    from longpole.settings import Settings

KIND_OF_PROGRAM: Final = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "send_recv",
}
_DTYPES: Final = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "char": "int8"}
_IN_NAME: Final = (  # longer words before those that they hold
    ("allreduce", "all_reduce"),
    ("reducescatter", "reduce_scatter"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("sendrecv", "send_recv"),
    ("reduce", "reduce"),
)
_UNEQUAL: Final = ("alltoallv", "hypercube")
_REDUCING: Final = ("all_reduce", "reduce_scatter", "reduce")
_TELLING_GB_PER_S: Final = 1.0  # rates are printed with two decimals: from here on a ratio is good to a per cent
_RATIO_TOLERANCE: Final = 0.03
_MOST_RANKS: Final = 1 << 20
_NS_PER_US: Final = 1000


@dataclass(slots=True)
class Logs:
    """What logs hold, as points.

    Attributes:
        points: Of all logs; repeated ones joined.
        settings: Under which they were measured.
        sources: The files, with what could not be used of each.
        tests: All tests, for what is said of where they ran.
    """

    points: list[CollectivesPoint]
    settings: list[CollectivesSetting]
    sources: list[CollectivesSource]
    tests: list[LoggedTest]


@dataclass(slots=True)
class _Joined:
    """Rows of one point, from one log or several."""

    times_ns: list[int] = field(default_factory=list)
    repeats: int | None = None
    wrong: int | None = None
    said: list[Correctness] = field(default_factory=list)


def read_logs(paths: Sequence[Path], settings: Settings, kind: str | None = None) -> Logs:
    """Read logs of nccl-tests, text or JSON.

    Args:
        paths: Files.
        settings: The bound on what an archive may expand to.
        kind: Of tests that nothing names.

    Raises:
        InputError: A file is none, or holds no row.
    """
    joined: dict[Where, _Joined] = {}
    variables: dict[str, dict[str, str]] = {}
    sources, all_tests = [], []
    for path in paths:
        tests, written = _tests_of(path, settings)
        source = CollectivesSource(str(path), written, len(tests))
        for test in tests:
            source.complaints += test.complaints
            name = setting_name(test.variables, None)
            variables[name] = test.variables
            _take(test, _kind(test, path, kind, source), name, joined, source)
        sources.append(source)
        all_tests += tests
    points = [_point(where, rows) for where, rows in joined.items()]
    if not points:
        why = next((complaint for source in sources for complaint in source.complaints), "no row of a size")
        raise InputError.at(paths[0], None, f"nothing of it can be used: {why}", "Give the whole output of a test")
    kept = [CollectivesSetting(name, found) for name, found in variables.items()]
    return Logs(points, kept, sources, all_tests)


def _tests_of(path: Path, settings: Settings) -> tuple[list[LoggedTest], str]:
    with open_stream(path, settings) as stream:
        data = b"".join(stream.blocks())
    text = data.decode("utf-8", "replace")
    if looks_like_nccl_json(data):
        test = read_nccl_json(text)
        return ([test] if test is not None else []), "json"
    if looks_like_nccl_text(text):
        return read_nccl_text(text.splitlines()), "text"
    found = "neither a table of nccl-tests (`# size count type …`) nor its JSON file nor a record of ours"
    raise InputError.at(path, None, found, "Give what all_reduce_perf and the like print, or wrote with -J")


def _kind(test: LoggedTest, path: Path, given: str | None, source: CollectivesSource) -> str | None:
    """Return the kind of a test, None where it cannot be told; what it rests on is said where it is a guess."""
    base = test.program.removesuffix(".exe").removesuffix("_perf").removesuffix("_mpi")
    if base in _UNEQUAL:
        source.complaints.append(f"{test.program}: not a kind with one size; left out")
        return None
    named = KIND_OF_PROGRAM.get(base)
    of_file = _in_file_name(path)
    kind = named or given or of_file or _by_rates(test)
    if kind is None:
        source.complaints.append("a test that does not say its kind, and whose rates fit several; say it: --kinds NAME")
        return None
    if named is None and given is None:
        how = "the file's name" if of_file else "the rates and columns"
        source.complaints.append(f"the kind of a test is not written; {kind} by {how}")
    return kind


def _in_file_name(path: Path) -> str | None:
    letters = re.sub(r"[^a-z]", "", path.name.lower())
    return next((kind for word, kind in _IN_NAME if word in letters), None)


def _by_rates(test: LoggedTest) -> str | None:
    ratio = _ratio(test)
    if ratio is None or test.ranks is None or not test.rows:
        return None
    reduces = test.rows[-1].redop not in ("", "none")
    has_root = (test.rows[-1].root or -1) >= 0 or test.rows[-1].root == 0
    fits = [
        kind
        for kind in dict(_IN_NAME).values()
        if (kind in _REDUCING) == reduces
        and (not has_root or kind in ("broadcast", "reduce"))
        and abs(ratio - (bus_factor(kind, test.ranks) or 0.0)) <= _RATIO_TOLERANCE * ratio
    ]
    return fits[0] if len(fits) == 1 else None


def _ratio(test: LoggedTest) -> float | None:
    """Return busbw over algbw of the fastest row, None where all are too slow to tell from two decimals."""
    sides = [side for row in test.rows for side in (row.out_of_place, row.in_place) if side is not None]
    best = max(sides, key=lambda side: side.algbw, default=None)
    return best.busbw / best.algbw if best is not None and best.algbw >= _TELLING_GB_PER_S else None


def _take(
    test: LoggedTest, kind: str | None, setting: str, joined: dict[Where, _Joined], source: CollectivesSource
) -> None:
    """Add the rows of a test."""
    ranks = test.ranks or (_ranks_by_rates(test, kind) if kind is not None else None)
    if kind is None or ranks is None:
        if kind is not None:
            source.complaints.append(f"{kind}: how many ranks took part is not written, and the rates do not tell it")
        return
    test.ranks = ranks
    _compare_rates(test, kind, ranks, source)
    empty = 0
    for row in test.rows:
        if row.size_bytes == 0:
            empty += 1
            continue
        for placement, side in (("out_of_place", row.out_of_place), ("in_place", row.in_place)):
            if side is not None:
                where = _where(kind, ranks, row, setting, "in_place" if placement == "in_place" else "out_of_place")
                _add(joined.setdefault(where, _Joined()), test, side)
    if empty:
        source.complaints.append(f"{kind}: {empty} rows of no bytes left out: too small for so many ranks")


def _where(kind: str, ranks: int, row: LoggedRow, setting: str, placement: Placement) -> Where:
    return Where(
        kind=kind,
        ranks=ranks,
        dtype=_DTYPES.get(row.dtype, row.dtype),
        setting=setting,
        placement=placement,
        size_bytes=row.size_bytes,
    )


def _ranks_by_rates(test: LoggedTest, kind: str) -> int | None:
    """Return the number of ranks that the ratio of the rates means, where only one fits what was printed."""
    sides = [side for row in test.rows for side in (row.out_of_place, row.in_place) if side is not None]
    best = max(sides, key=lambda side: side.algbw, default=None)
    twice = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}.get(kind)
    if best is None or twice is None or best.algbw < _TELLING_GB_PER_S:
        return None
    half_digit = 0.005
    low = (best.busbw - half_digit) / (best.algbw + half_digit) / twice
    high = (best.busbw + half_digit) / (best.algbw - half_digit) / twice
    if not 0 < low <= high < 1:
        return None
    first, last = -int(-1 / (1 - low) // 1), int(1 / (1 - high) // 1)
    return first if first == last and 1 < first < _MOST_RANKS else None


def _compare_rates(test: LoggedTest, kind: str, ranks: int, source: CollectivesSource) -> None:
    """Complain where the rates contradict the kind or the number of ranks."""
    ratio, factor = _ratio(test), bus_factor(kind, ranks)
    if ratio is not None and factor is not None and abs(ratio - factor) > _RATIO_TOLERANCE * factor:
        source.complaints.append(
            f"busbw / algbw is {ratio:.3g} where {kind} of {ranks} ranks has {factor:.3g}: kind or ranks may be wrong"
        )


def _add(rows: _Joined, test: LoggedTest, side: LoggedSide) -> None:
    rows.times_ns.append(round(side.time_us * _NS_PER_US))
    if test.repeats is not None:
        rows.repeats = (rows.repeats or 0) + test.repeats
    if side.wrong is not None:
        rows.wrong = (rows.wrong or 0) + side.wrong
    rows.said.append(_correctness(test, side))


def _correctness(test: LoggedTest, side: LoggedSide) -> Correctness:
    """Return what the log says of a result: the row's own count, else the foot of a table of errors."""
    if side.wrong is not None:
        return "failed" if side.wrong else "passed"
    counted = any(one is not None and one.wrong for row in test.rows for one in (row.out_of_place, row.in_place))
    if test.out_of_bounds and not counted:
        return "failed"  # some row was wrong, and the log does not say which
    return "not_checked"


def _point(where: Where, rows: _Joined) -> CollectivesPoint:
    said: Correctness = "passed"
    if "failed" in rows.said:
        said = "failed"
    elif "not_checked" in rows.said:
        said = "not_checked"
    return logged_point(where, rows.times_ns, rows.repeats, said, rows.wrong)
