"""What one log of nccl-tests or rccl-tests holds, as it was written; made into a record by the pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoggedSide:
    """One of the two halves of a row: out of place, or in place.

    Attributes:
        time_us: Mean over iterations and, unless asked for otherwise, ranks.
        algbw, busbw: In decimal GB/s, rounded as printed.
        wrong: Elements that are not what they must be; None where it was not checked, or only an error was given.
    """

    time_us: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """One size.

    Attributes:
        size_bytes: Of the full buffer.
        count: Elements as the test counts them, of one rank's part for some kinds.
        dtype: As nccl-tests calls it.
        redop: `sum`, …; empty or `none` for kinds that reduce nothing.
        root: -1 for kinds without one; None where the log has no such column.
    """

    size_bytes: int
    count: int
    dtype: str
    redop: str
    root: int | None
    out_of_place: LoggedSide | None
    in_place: LoggedSide | None


@dataclass(slots=True)
class LoggedTest:
    """One test: its head, its rows, its foot.

    Attributes:
        program: As the log names it (`all_reduce_perf`), empty where it does not.
        ranks: None where not known.
        nodes: Machines, None where not known.
        devices: Models, each once.
        repeats, warmup: Iterations, None where not said.
        reports_errors: The last column is the largest error and not a count of wrong elements (before 2.9).
        out_of_bounds: What the foot says of all rows; None where the log ends before it.
        busbw: Average of the foot, GB/s.
        variables: `NCCL_*` and `RCCL_*` that the log says were set.
        version: Of NCCL or RCCL, as written.
        complaints: What could not be used, each with its line.
    """

    program: str = ""
    ranks: int | None = None
    nodes: int | None = None
    devices: list[str] = field(default_factory=list)
    repeats: int | None = None
    warmup: int | None = None
    reports_errors: bool = False
    out_of_bounds: int | None = None
    busbw: float | None = None
    variables: dict[str, str] = field(default_factory=dict)
    version: str = ""
    rows: list[LoggedRow] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
