"""From the columns of operation tables to records: what is bad is counted, named and left out, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from longpole.errors import InputError
from longpole.readers.operations.decode import FILE, coarsest_ns, read_frame
from longpole.readers.operations.layout import place_workers
from longpole.readers.operations.steps import whole_steps
from longpole.records.operations import NONE_ID, OperationTable, operation_type
from longpole.timeline.integrity import CODES, Example, Finding
from longpole.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

    from longpole.settings import Settings

    Array: TypeAlias = NDArray[Any]

ROW: Final = "row"
_WHOLE: Final = ["/slowdown", "/culprit"]
_NS_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class LeftOutStep:
    """A step that no figure counts, and why."""

    step: int
    why: str


@dataclass(frozen=True, slots=True)
class OperationRecords:
    """What operation tables hold, and what is wrong with them.

    Attributes:
        table: The operations of all whole steps.
        rows: Rows of each file.
        used: Operations of each file that are in the table.
        left_out: Steps that are not in the table.
        missing_workers: Places of the layout that no rank holds, as `dp 0, stage 1`; at most the first few.
        n_missing: How many such places there are.
        findings: What is wrong.
    """

    table: OperationTable
    rows: list[int]
    used: list[int]
    left_out: list[LeftOutStep]
    missing_workers: list[str]
    n_missing: int
    findings: list[Finding]


class _Notes:
    """Findings about rows, with the place of the first one."""

    def __init__(self, names: Sequence[str], starts: Sequence[int]) -> None:
        self.found: list[Finding] = []
        self._names, self._starts = names, starts

    def add(self, code: str, rows: pl.DataFrame | None, count: int, message: str, voids: list[str]) -> None:
        """Note something, `warn` where it limits figures."""
        if count:
            self.found.append(
                Finding(code, "warn" if voids else "note", None, count, self.example(rows), message, voids)
            )

    def example(self, rows: pl.DataFrame | None) -> Example:
        """Return where the first of some rows stands: the file, and the row in it from 0."""
        if rows is None or not len(rows):
            return Example(self._names[0])
        place, row = int(rows[FILE][0]), int(rows[ROW][0])
        return Example(self._names[place], event=row - self._starts[place])


def read_operations(paths: Sequence[Path], names: Sequence[str], settings: Settings) -> OperationRecords:
    """Read operation tables of one job.

    Args:
        paths: The files.
        names: What each is called in messages.
        settings: `operation_resolution_max_ns`, `span_max_ns`.

    Raises:
        InputError: A file cannot be read, lacks a column, or no operation is left.
    """
    import polars as pl

    frame = read_frame(paths).with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
    rows = [len(frame.filter(pl.col(FILE) == place)) for place in range(len(paths))]
    notes = _Notes(names, [sum(rows[:place]) for place in range(len(paths))])
    clean, spoilt = _usable(frame, notes, settings)
    if not len(clean):
        why = "".join(f"; {finding.message}" for finding in notes.found[:2])
        found = f"no usable operation in {format_count(len(frame), 'row')}{why}"
        raise InputError.at(names[0], None, found, _NOTHING)
    clean = _without_duplicates(_with_sequences(clean), notes)
    _check_resolution(clean, notes, settings)
    clean, workers, missing, n_missing = place_workers(clean, notes.add)
    table = _to_table(clean, workers)
    keep, left_out = whole_steps(table, spoilt)
    _note_left_out(left_out, notes, n_steps=len(np.unique(table.step)))
    table = table.take(keep)
    of_file = clean.sort(ROW)[FILE].to_numpy()[np.searchsorted(clean.sort(ROW)[ROW].to_numpy(), table.row)]
    used = np.bincount(of_file, minlength=len(paths)).tolist()
    left = [LeftOutStep(step, why) for step, why in left_out]
    return OperationRecords(table, rows, used, left, missing, n_missing, notes.found)


_NOTHING: Final = "Expected rows with a step, a rank, its place, a type, a start and a duration"
_NEEDED: Final = ("step", "rank", "dp_rank", "stage", "optype")


def _usable(frame: pl.DataFrame, notes: _Notes, settings: Settings) -> tuple[pl.DataFrame, set[int]]:
    """Return the rows whose times and places can be used, and the steps that lost one."""
    import polars as pl

    start = pl.coalesce("start_ns", "start_ts")
    lasts_ns = pl.coalesce(pl.col("duration_ns").cast(pl.Float64), pl.col("duration") * NS_PER_S)
    kept, spoilt = frame, set[int]()
    places = [pl.col("rank"), pl.col("dp_rank"), pl.col("stage"), pl.col("tp_rank").fill_null(0)]
    small = pl.all_horizontal(place.is_between(0, (1 << 20) - 1) for place in places)
    far = (start.cast(pl.Float64) - start.cast(pl.Float64).median().over("step")).abs()
    far_ns = pl.when(pl.col("start_ns").is_null()).then(far * NS_PER_S).otherwise(far)
    checks = (
        ("operation.incomplete", pl.any_horizontal(pl.col(name).is_null() for name in _NEEDED) | ~small),
        (
            "operation.time_unusable",
            start.is_null() | lasts_ns.is_null() | ~start.cast(pl.Float64).is_finite() | ~lasts_ns.is_finite(),
        ),
        ("operation.time_stray", far_ns > settings.span_max_ns),
        ("operation.negative_duration", lasts_ns < 0),
        ("operation.duration_impossible", lasts_ns > settings.span_max_ns),
    )
    for code, is_bad in checks:
        bad = kept.filter(is_bad.fill_null(value=True))
        kept = kept.filter(~is_bad.fill_null(value=True))
        spoilt |= set(bad["step"].drop_nulls().to_list())
        notes.add(code, bad, len(bad), f"{len(bad):,} × {CODES[code]}", ["/steps"])
    return kept, spoilt


def _with_sequences(frame: pl.DataFrame) -> pl.DataFrame:
    """Give the operations of each type numbers by their start where a table does not."""
    import polars as pl

    per = ["step", "rank", "optype"]
    start = pl.coalesce(pl.col("start_ns").cast(pl.Float64), "start_ts")
    counted = start.rank("ordinal").over(per).cast(pl.Int64) - 1
    unnumbered = pl.col("seq_id").is_null().any().over(per)
    return frame.with_columns(pl.when(unnumbered).then(counted).otherwise("seq_id").alias("seq_id"))


def _without_duplicates(frame: pl.DataFrame, notes: _Notes) -> pl.DataFrame:
    """Keep the first of the rows that name one operation."""
    import polars as pl

    same = ["step", "rank", "optype", "seq_id"]
    copies = frame.filter(~pl.struct(same).is_first_distinct())
    originals = frame.filter(pl.struct(same).is_first_distinct()).select(*same, pl.col(FILE).alias("other"))
    across = copies.join(originals, on=same).filter(pl.col(FILE) != pl.col("other"))
    # Tables of the ranks of one job have nothing in common but a slip; those of two jobs, most of what they hold.
    if len(across) * 4 > len(frame):
        msg = (
            f"{len(copies):,} operations stand in two of the files: expected the tables of one job, found several."
            " Name the files of one"
        )
        raise InputError(msg)
    exact = ["start_ts", "start_ns", "duration", "duration_ns", *same]
    identical = frame.filter(~pl.struct(exact).is_first_distinct())
    message = (
        f"{format_count(len(copies), 'operation')} written twice ({len(identical):,} of them alike); the first counts"
    )
    notes.add("operation.duplicate", copies, len(copies), message, [] if len(identical) == len(copies) else ["/steps"])
    return frame.filter(pl.struct(same).is_first_distinct())


def _check_resolution(frame: pl.DataFrame, notes: _Notes, settings: Settings) -> None:
    coarse_ns = coarsest_ns(frame)
    if coarse_ns > settings.operation_resolution_max_ns:
        message = (
            f"starts are written in steps of {format_ns(coarse_ns)}, too coarse to order operations; write them as"
            " float64, or since the step's start"
        )
        notes.add("operation.resolution", None, 1, message, _WHOLE)


def _note_left_out(left_out: list[tuple[int, str]], notes: _Notes, *, n_steps: int) -> None:
    if not left_out:
        return
    named = "; ".join(f"step {step}: {why}" for step, why in left_out[:3])
    more = f"; and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    message = f"{len(left_out)} of {format_count(n_steps, 'step')} left out ({named}{more})"
    notes.add("operation.step_incomplete", None, len(left_out), message, ["/steps"])


def _to_table(frame: pl.DataFrame, workers: tuple[Any, ...]) -> OperationTable:
    """Return the table of rows that passed, with times in ns since their step's first start."""
    import polars as pl

    since = pl.col("start_ts") - pl.col("start_ts").min().over("step")
    since_ns = pl.col("start_ns") - pl.col("start_ns").min().over("step")
    frame = frame.with_columns(
        pl.coalesce(since_ns, (since * NS_PER_S).round().cast(pl.Int64)).alias("from_ns"),
        pl.coalesce("duration_ns", (pl.col("duration") * NS_PER_S).round().cast(pl.Int64)).alias("lasts_ns"),
    )
    names, optype = _codes(frame, ["optype", "kind"])
    types = tuple(operation_type(name, kind or "") for name, kind in names)
    kind_of = np.array([t.kind for t in types], np.uint8)
    _, group = _codes(frame, ["group"])
    group = np.where(frame["group"].is_null().to_numpy(), NONE_ID, group).astype(np.int32)
    order = np.lexsort(
        [
            frame["seq_id"].to_numpy(),
            optype,
            (frame["from_ns"] + frame["lasts_ns"]).to_numpy(),
            frame["from_ns"].to_numpy(),
            frame["worker"].to_numpy(),
            frame["step"].to_numpy(),
        ]
    )
    small = {
        name: frame[name].fill_null(NONE_ID).clip(NONE_ID, (1 << 31) - 1).to_numpy() for name in ("mb_id", "mc", "gmc")
    }
    return OperationTable(
        step=frame["step"].to_numpy()[order].astype(np.int64),
        rank=frame["rank"].to_numpy()[order].astype(np.int32),
        worker=frame["worker"].to_numpy()[order].astype(np.int32),
        optype=optype[order],
        kind=kind_of[optype][order],
        sequence=frame["seq_id"].clip(0, (1 << 31) - 1).to_numpy()[order].astype(np.int32),
        micro_batch=small["mb_id"][order].astype(np.int32),
        chunk=small["mc"][order].astype(np.int32),
        model_chunk=small["gmc"][order].astype(np.int32),
        group=group[order],
        start_ns=frame["from_ns"].to_numpy()[order].astype(np.int64),
        duration_ns=frame["lasts_ns"].to_numpy()[order].astype(np.int64),
        row=frame[ROW].to_numpy()[order].astype(np.int64),
        types=types,
        workers=workers,
    )


def _codes(frame: pl.DataFrame, names: list[str]) -> tuple[list[tuple[Any, ...]], Array]:
    """Return the distinct values of some columns, ascending, and `[N]` int32: which of them each row has."""
    import polars as pl

    distinct = frame.select(names).unique().sort(names, nulls_last=False)
    joined = frame.select(names).join(
        distinct.with_row_index("code"), on=names, how="left", nulls_equal=True, maintain_order="left"
    )
    return distinct.rows(), joined["code"].cast(pl.Int32).to_numpy()
