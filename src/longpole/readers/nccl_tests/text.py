"""Read the tables that nccl-tests and rccl-tests print; everything else between them is passed over.

    prefix of a launcher     size  count  type  redop  root    time  algbw  busbw  #wrong    time  algbw  busbw  #wrong
    ├─ `0: `, `[1,0]<stdout>:`                                ├─────── out of place ─────┤  ├──────── in place ───────┤

Which columns there are is in the head of each table: it grew over the versions (`error` for `#wrong`, no `root`,
`cputime` for `time`, four more with figures of each iteration). Lines with other prefixes are other programs' that
wrote into the same file, and are kept apart.

Layouts: NVIDIA/nccl-tests src/util.cu (2.19.6) and src/common.cu (2.0 to 2.13), ROCm/rccl-tests src/common.cu.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from longpole.records.nccl_log import LoggedRow, LoggedSide, LoggedTest

if TYPE_CHECKING:
    from collections.abc import Iterable

_TYPES: Final = (
    "int8|uint8|int32|uint32|int64|uint64|half|float|double|bfloat16|fp8_e4m3|fp8_e5m2|f8e4m3|f8e5m2|char|int|"
    "float16|float32|float64"
)
_FIGURE: Final = r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|N/A|-?nan|-?inf)"
_ROW: Final = re.compile(
    rf"^(?P<prefix>.*?)(?<![^\s:>\]|])(?P<size>\d{{1,19}})\s+(?P<count>\d{{1,19}})\s+(?P<type>{_TYPES})\s+"
    rf"(?:(?P<redop>sum|prod|max|min|avg|mulsum|none)\s+)?(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_BROKEN_ROW: Final = re.compile(rf"(?<!\S)\d{{1,19}}\s+\d{{1,19}}\s+(?:{_TYPES})\b|^\s*\d{{3,}}\s+\d+\s*$")
_COLUMNS: Final = re.compile(r"#\s+size\s+count\s+type\b(?P<rest>.*)$")
_HEAD: Final = re.compile(r"#\s*nThread\s+(?P<threads>\d+)\s+nGpus\s+(?P<gpus>\d+)\s+minBytes\b(?P<rest>.*)$")
_ITERATIONS: Final = re.compile(r"warmup iters:\s*(\d+)\s+iters:\s*(\d+)")
_STARTING: Final = re.compile(r"#\s*Collective test starting:\s*(?P<program>\S+)")
_DEVICE: Final = re.compile(
    r"#\s+Rank\s+(?P<rank>\d+)(?:\s+Group\s+(?P<group>\d+))?\s+Pid\s+\d+\s+on\s+(?P<host>\S+)\s+device\s+\d+\s+"
    r"\[[^\]]*\]\s*(?P<name>.*?)\s*$"
)
_FOOT_WRONG: Final = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)")
_FOOT_RATE: Final = re.compile(rf"#\s*Avg bus bandwidth\s*:\s*({_FIGURE})")
_VARIABLE: Final = re.compile(r"\b((?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by environment )?to ([^\s,;]{1,80})")
_VERSION_AHEAD: Final = re.compile(r"#\s*nccl-tests version\b.*\bnccl-library=(\d+)")  # of the test that follows
_VERSION: Final = re.compile(r"\b(?:NCCL|RCCL) version[ :]+([\w.+-]+)")
_PROGRAM: Final = re.compile(r"(?<![\w-])([a-z_]+_perf)(?![\w])")
_STAMP: Final = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[T ]?(?:\d\d:\d\d:\d\d\S*)?|\d\d:\d\d:\d\d\S*")
_EXTRAS: Final = ("i_min", "i_max", "i_p99", "i_cv%")
_MOST_COMPLAINTS: Final = 20


def looks_like_nccl_text(head: str) -> bool:
    """Tell whether a text has the head of a table, or the line that comes before one."""
    return _COLUMNS.search(head) is not None or any(
        _COLUMNS.search(line) or _HEAD.search(line) for line in head.splitlines()
    )


def read_nccl_text(lines: Iterable[str]) -> list[LoggedTest]:
    """Read all tests of a log; a line that is cut off costs only itself.

    Args:
        lines: Of the log, without their ends.
    """
    writers: dict[str, _Writer] = {}
    order: list[LoggedTest] = []
    shared: dict[str, str] = {}
    program = ""
    for number, line in enumerate(lines, 1):
        shared.update(_VARIABLE.findall(line))
        named = _PROGRAM.search(line)
        program = named[1] if named is not None else program
        before = _prefix(line)
        if before is None:
            continue
        writer = writers.setdefault(before, _Writer(order))
        writer.hear(line, number, program)
    for test in order:
        test.variables = dict(shared)
    return [test for test in order if test.rows or test.complaints]


def _prefix(line: str) -> str | None:
    """Return what a launcher wrote before a line of ours, without times; None for a line that is none."""
    mark = line.find("#")
    row = _ROW.match(line)
    if row is not None and (mark < 0 or mark > row.end("type")):
        before = row["prefix"]
    elif mark >= 0:
        before = line[:mark]
    elif _BROKEN_ROW.search(line) is not None:
        before = line[: _BROKEN_ROW.search(line).start()]  # type: ignore[union-attr]  # it was found
    else:
        return None
    return " ".join(_STAMP.sub("", before).split())


class _Writer:
    """One program's lines: the test that it is at."""

    def __init__(self, order: list[LoggedTest]) -> None:
        self._order = order
        self._test: LoggedTest | None = None
        self._columns: list[str] | None = None
        self._hosts: set[str] = set()
        self._ranks: dict[str, set[int]] = {}
        self._threads_gpus = 0
        self._version = ""

    def hear(self, line: str, number: int, program: str) -> None:
        """Take in one line."""
        text = line[line.find("#") :] if "#" in line else line
        row = _ROW.match(line)
        if row is not None and self._columns is not None and self._test is not None:
            self._row(row, number)
        elif not self._head(text, program):
            self._body(text, number)

    def _head(self, text: str, program: str) -> bool:
        """Read a line that begins a test; False where it begins none."""
        starting, head = _STARTING.search(text), _HEAD.search(text)
        if starting is not None:
            self._begin(starting["program"])
        elif head is not None:
            if self._test is None or self._columns is not None or self._threads_gpus:
                self._begin(program)
            self._threads_gpus = int(head["threads"]) * int(head["gpus"])
            iterations = _ITERATIONS.search(head["rest"])
            if iterations is not None and self._test is not None:
                self._test.warmup, self._test.repeats = int(iterations[1]), int(iterations[2])
        return starting is not None or head is not None

    def _begin(self, program: str) -> None:
        self._test = LoggedTest(program=program.rpartition("/")[2], version=self._version)
        self._order.append(self._test)
        self._columns, self._hosts, self._ranks, self._threads_gpus = None, set(), {}, 0

    def _body(self, text: str, number: int) -> None:
        ahead, version = _VERSION_AHEAD.search(text), _VERSION.search(text)
        self._version = ahead[1] if ahead is not None else self._version
        columns = _COLUMNS.search(text)
        if columns is not None and self._test is None:
            self._begin("")  # a log whose beginning was cut off
        test = self._test
        if test is None:
            return
        if version is not None:
            test.version = version[1]
        if columns is not None:
            self._columns = columns["rest"].split()
            test.reports_errors = "error" in self._columns
            return
        device = _DEVICE.search(text)
        if device is not None:
            self._device(test, device)
            return
        wrong, rate = _FOOT_WRONG.search(text), _FOOT_RATE.search(text)
        if wrong is not None:
            test.out_of_bounds = int(wrong[1])
        elif rate is not None:
            test.busbw = _number(rate[1])
        elif self._columns is not None and _BROKEN_ROW.search(text) is not None:
            _complain(test, f"line {number}: a row that is cut off")

    def _device(self, test: LoggedTest, match: re.Match[str]) -> None:
        self._hosts.add(match["host"])
        self._ranks.setdefault(match["group"] or "0", set()).add(int(match["rank"]))
        test.ranks = max(len(ranks) for ranks in self._ranks.values())
        test.nodes = len(self._hosts)
        if match["name"] and match["name"] not in test.devices:
            test.devices.append(match["name"])

    def _row(self, match: re.Match[str], number: int) -> None:
        columns, test = self._columns or [], self._test
        if test is None:
            return
        figures = match["rest"].split()
        root = None
        if "root" in columns and re.fullmatch(r"-?\d+", figures[0]):
            root = int(figures.pop(0))
        sides = _sides(columns, figures)
        if sides is None:
            _complain(test, f"line {number}: a row that is cut off, or has other columns than the head of its table")
            return
        row = LoggedRow(
            int(match["size"]), int(match["count"]), match["type"].lower(), match["redop"] or "", root, *sides
        )
        test.rows.append(row)


def _sides(columns: list[str], figures: list[str]) -> tuple[LoggedSide | None, LoggedSide | None] | None:
    """Return both halves of a row, None where its figures do not fit the head of the table."""
    times = [place for place, name in enumerate(columns) if name in ("time", "cputime")]
    extra = len(_EXTRAS) if _EXTRAS[0] in columns else 0
    width = 4 + extra
    figures = [figure for figure in figures if re.fullmatch(_FIGURE, figure, re.IGNORECASE)]
    if not times or len(figures) not in (width, len(times) * width):
        return None
    checked = "#wrong" in columns
    read = [_side(figures[at : at + width], checked=checked) for at in range(0, len(figures), width)]
    # A table of one half, and a row whose first half was left blank, hold what was measured in place.
    return (read[0], read[1]) if len(read) == 2 else (None, read[0])


def _side(figures: list[str], *, checked: bool) -> LoggedSide | None:
    time_us, algbw, busbw = (_number(figure) for figure in figures[:3])
    if time_us is None or algbw is None or busbw is None:
        return None
    wrong = _number(figures[3]) if checked else None
    return LoggedSide(time_us, algbw, busbw, round(wrong) if wrong is not None else None)


def _number(text: str) -> float | None:
    """Return a figure, None for one that is not there or no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None  # false for nan, too


def _complain(test: LoggedTest, text: str) -> None:
    if len(test.complaints) < _MOST_COMPLAINTS:
        test.complaints.append(text)
